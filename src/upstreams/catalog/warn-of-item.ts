// §18.8: what is hidden is said once, however often it is listed.
import { type Log, truncateForLog } from '../../platform/log.ts';
import { stripUri } from '../../platform/strip-uri.ts';
import { quote } from '../../platform/text.ts';
import { LIST_KINDS, type ListKind } from '../../protocol/list-kinds.ts';

/** `problem` ends a sentence that begins with the item. */
export type WarnOfItem = (
  server: string,
  kind: ListKind | 'instructions',
  /** Undefined for the list itself. */
  name: string | undefined,
  problem: string,
) => void;

/** Of each server; it chooses its names, so that it could fill the log. */
const MAX_WARNINGS = 200;
const MAX_NAME = 100;

export function createWarnOfItem(log: Log): WarnOfItem {
  const said = new Map<string, Set<string>>();

  return function warnOfItem(server, kind, name, problem) {
    const ofServer = said.get(server) ?? new Set();
    said.set(server, ofServer);
    const line = `${kind} ${name} ${problem}`;
    if (ofServer.has(line) || ofServer.size > MAX_WARNINGS) return;
    ofServer.add(line);
    if (ofServer.size > MAX_WARNINGS) {
      log.warn(
        `Server ${server}: more of what it lists is hidden; the reasons are no longer logged.`,
      );
      return;
    }
    const isUri = kind === 'resources' || kind === 'templates';
    const shown = name !== undefined && isUri ? stripUri(name) : name;
    const what = tellItem(kind, shown);
    log.warn(`Server ${server}: ${what} ${problem}.`, {
      server,
      name: shown && truncateForLog(shown),
    });
  };
}

function tellItem(kind: ListKind | 'instructions', name: string | undefined): string {
  if (kind === 'instructions') return 'what it says of itself (its instructions)';
  return name === undefined
    ? `the list of its ${kind}`
    : `${LIST_KINDS[kind].noun} ${quote(name, MAX_NAME)}`;
}
