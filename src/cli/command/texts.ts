// Text that commands read from files, and that they print in columns.
import { readFileSync } from 'node:fs';

/** What the file says; where it cannot be read, what `explain` makes of the error. */
export function readTextFile<Other>(
  path: string,
  explain: (error: unknown) => Other,
): string | Other {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    return explain(error);
  }
}

/** Empty where it cannot be read. */
export const readIfPresent = (path: string): string => readTextFile(path, () => '');

/** A line for each row, whose cells stand below one another. */
export function alignColumns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_cell, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows.map((row) => {
    const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    return cells.join('  ').trimEnd();
  });
}
