// Renders the findings for the terminal.
import type { WalkedFunction } from './call-order.ts';
import { renderArrow } from './find-arrows.ts';
import type { Room, WalkResult } from './take-walk.ts';

export function renderWalk(
  { walk, rooms, arrows, fileCount, functionCount }: WalkResult,
  { hasFunctions }: { readonly hasFunctions: boolean },
): string {
  const totals = [
    count(fileCount, 'file'),
    count(functionCount, 'function'),
    count(arrows.length, 'arrow'),
  ];
  return [
    `${walk.name}: ${walk.title}`,
    '',
    ...rooms.flatMap((room) => renderRoom(room, hasFunctions)),
    '',
    totals.join(', '),
    '',
    ...arrows.map((arrow) => `  ${renderArrow(arrow)}`).sort(),
  ].join('\n');
}

function renderRoom({ name, files }: Room, hasFunctions: boolean): readonly string[] {
  const functionCount = files.reduce((total, { functions }) => total + functions.length, 0);
  const fileColumn = count(files.length, 'file').padStart(9);
  const functionColumn = count(functionCount, 'function').padStart(13);
  return [
    `  ${name.padEnd(50)} ${fileColumn} ${functionColumn}`,
    ...files.flatMap((file) => [
      `    ${file.name.padEnd(60)} ${String(file.functions.length).padStart(3)}`,
      ...(hasFunctions ? file.functions.map(renderFunction) : []),
    ]),
  ];
}

const renderFunction = ({ name = '(anonymous)', line, calls }: WalkedFunction): string =>
  `      ${name} :${line ?? '?'}${calls === 1 ? '' : ` ×${calls}`}`;

/** All walks, a line each. */
export function renderTotals(results: readonly WalkResult[]): string {
  const rows = [
    ['walk', 'files', 'functions', 'arrows', ''],
    ...results.map(({ walk, fileCount, functionCount, arrows }) => [
      ...[walk.name, fileCount, functionCount, arrows.length].map(String),
      walk.title,
    ]),
  ];
  return rows
    .map(([name = '', files = '', functions = '', arrows = '', title = '']) => {
      const counts = [files.padStart(5), functions.padStart(10), arrows.padStart(7)].join(' ');
      return `${name.padEnd(12)} ${counts}   ${title}`.trimEnd();
    })
    .join('\n');
}

const count = (number: number, noun: string): string =>
  `${number} ${noun}${number === 1 ? '' : 's'}`;
