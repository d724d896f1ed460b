/** A Markdown table, its columns padded as the formatter pads them. */
export function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const body = [head, ...rows].map((cells) => cells.map(escapeCell));
  const widths = head.map((_, at) => Math.max(3, ...body.map((cells) => cells[at]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, at) => (cells[at] ?? '').padEnd(width)).join(' | ')} |\n`;
  const [first = [], ...rest] = body;
  return [first, widths.map((width) => '-'.repeat(width)), ...rest].map(line).join('');
}

/** Outside of code a `<` would begin a tag. */
const escapeCell = (cell: string): string =>
  (cell.startsWith('`') ? cell : cell.replaceAll('<', '\\<')).replaceAll('|', '\\|');
