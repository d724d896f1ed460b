// What `postern lock` prints.

import { toVisibleJson } from '../../platform/invisible.ts';
import { countNoun } from '../../platform/text.ts';
import type { LockDifference } from '../../upstreams/lock/compare.ts';
import type { LockFile } from '../../upstreams/lock/lock-file.ts';

export interface LockResult {
  /** Of the lock file. */
  readonly path: string;
  readonly differences: readonly LockDifference[];
  /** Servers that need a user, and none was given. */
  readonly skipped: readonly string[];
  /** Servers that could not be read, and why. */
  readonly unread: readonly { readonly server: string; readonly problem: string }[];
}

/** What was compared with, undefined where there was none; or what was written. */
type LockOutcome = { readonly former: LockFile | undefined } | { readonly updated: LockFile };

export function describeResult(result: LockResult, outcome: LockOutcome): string {
  const { differences, skipped, unread } = result;
  const next = 'updated' in outcome ? ` ${KEPT}` : '';
  return [
    ...differences.map(describeDifference),
    ...(skipped.length === 0
      ? []
      : [`Not read: ${skipped.join(', ')}, as they answer users only. Add --token-file FILE.`]),
    ...unread.map(({ server, problem }) => `${server} could not be read: ${problem}.${next}`),
    'updated' in outcome
      ? `Wrote ${result.path}: ${summarizeLock(outcome.updated)}.`
      : describeCheck(result, outcome.former !== undefined),
  ].join('\n');
}

const KEPT =
  'What was approved of it before stays approved. Run `postern lock` again once it answers.';

function describeCheck({ path, differences, unread }: LockResult, hasLock: boolean): string {
  if (!hasLock)
    return `Nothing is locked: ${path} is not there, or is {}. \`postern lock\` approves what the servers say now.`;
  if (differences.length === 0 && unread.length > 0) {
    return `${path} is what the other servers say now.`;
  }
  return differences.length === 0
    ? `${path} is what the servers say now.`
    : 'The gateway hides what is new or has changed. `postern lock` approves it.';
}

/** `github: tool "search" has changed: description, inputSchema`. */
function describeDifference({ server, kind, name, change, members }: LockDifference): string {
  const item = name === undefined ? kind : `${kind} ${toVisibleJson(name)}`;
  const which = kind === 'instructions' || members.length === 0 ? '' : `: ${members.join(', ')}`;
  return `${server}: ${item} ${CHANGES[change]}${which}`;
}

const CHANGES: Readonly<Record<LockDifference['change'], string>> = {
  added: 'is new',
  removed: 'is gone',
  changed: 'has changed',
};

/** `12 tools and 3 prompts of 2 servers`. */
function summarizeLock({ servers }: LockFile): string {
  const all = [...servers.values()];
  const tools = all.reduce((sum, server) => sum + server.tools.size, 0);
  const prompts = all.reduce((sum, server) => sum + server.prompts.size, 0);
  return `${countNoun(tools, 'tool')} and ${countNoun(prompts, 'prompt')} of ${countNoun(all.length, 'server')}`;
}
