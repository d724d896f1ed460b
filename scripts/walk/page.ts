// Writes the section of docs/architecture.md on the path of a call.
import { renderTable } from '../docs/table.ts';
import type { WalkResult } from './take-walk.ts';

/** Walks on the page. */
export const SHOWN: readonly string[] = ['tools/call', 'relay', 'tools/list', 'token'];

const SECTION = /(<!-- walk -->\n)[\s\S]*?(<!-- end of walk -->)/;

/** @throws Error for a page without the section. */
export function writeSection(page: string, results: readonly WalkResult[]): string {
  if (!SECTION.test(page)) throw new Error('docs/architecture.md has no <!-- walk --> section.');
  return page.replace(SECTION, (_, start: string, end: string) =>
    [start, ...results.map(renderRooms), renderTotals(results), end].join('\n'),
  );
}

const renderRooms = ({ walk, rooms }: WalkResult): string =>
  `- ${walk.name}: ${rooms.map(({ name }) => `\`${name}\``).join(' → ')}`;

const renderTotals = (results: readonly WalkResult[]): string =>
  `\n${renderTable(
    ['Walk', 'Files', 'Functions', 'Types', 'Arrows', 'What is called'],
    results.map(({ walk, fileCount, functionCount, typeCount, arrows }) => [
      ...[walk.name, fileCount, functionCount, typeCount, arrows.length].map(String),
      walk.title,
    ]),
  )}`;
