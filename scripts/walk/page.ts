// The section of docs/architecture.md that says what a call executes.
import { renderTable } from '../docs/table.ts';
import type { WalkResult } from './take-walk.ts';

/** Those that the page shows. */
const SHOWN = ['tools/call', 'relay', 'tools/list', 'token'];

const SECTION = /(<!-- walk -->\n)[\s\S]*?(<!-- end of walk -->)/;

/** @throws Error for a page without the section. */
export function writeSection(page: string, results: readonly WalkResult[]): string {
  if (!SECTION.test(page)) throw new Error('docs/architecture.md has no <!-- walk --> section.');
  const shown = results.filter(({ walk }) => SHOWN.includes(walk.name));
  return page.replace(SECTION, (_, start: string, end: string) =>
    [start, ...shown.map(renderRooms), renderTotals(shown), end].join('\n'),
  );
}

const renderRooms = ({ walk, rooms }: WalkResult): string =>
  `- ${walk.name}: ${rooms.map(({ name }) => `\`${name}\``).join(' → ')}`;

const renderTotals = (results: readonly WalkResult[]): string =>
  `\n${renderTable(
    ['Walk', 'Files', 'Functions', 'Arrows', 'What is called'],
    results.map(({ walk, fileCount, functionCount, arrows }) => [
      ...[walk.name, fileCount, functionCount, arrows.length].map(String),
      walk.title,
    ]),
  )}`;
