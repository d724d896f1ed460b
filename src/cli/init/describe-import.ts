// What `postern init --servers` says of the file that it took over.
import { escapeInvisible } from '../../platform/visible-json.ts';
import type { Change } from './move-secrets.ts';

/** A table of what was moved, renamed and left, with an empty line behind it. */
export function describeImport(path: string, changes: readonly Change[]): string {
  const rows = changes.map(({ server, member, what }) =>
    // Names come from a file that somebody else may have written.
    [server, member, what].map((text) => escapeInvisible(text.replaceAll('\n', '\\n'))),
  );
  const [first, second] = [0, 1].map((column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  const lines = rows.map(
    ([server = '', member = '', what = '']) =>
      `  ${server.padEnd(first ?? 0)}  ${member.padEnd(second ?? 0)}  ${what}`,
  );
  return `From ${path}:\n${lines.join('\n')}\n`;
}
