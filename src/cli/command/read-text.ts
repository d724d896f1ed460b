import { readFileSync } from 'node:fs';

/** What the file says; where it cannot be read, what `explain` makes of the error. */
export function readText<Other>(path: string, explain: (error: unknown) => Other): string | Other {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    return explain(error);
  }
}

/** Empty where it cannot be read. */
export const readIfPresent = (path: string): string => readText(path, () => '');
