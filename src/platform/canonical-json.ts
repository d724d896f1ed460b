// RFC 8785: one spelling for each JSON value, so that equal values have equal hashes. Of an exact value, numbers keep theirs.
import { JsonNumber } from './exact-json.ts';
import { isObject } from './json.ts';

/**
 * Members are sorted by the UTF-16 code units of their names; numbers and strings are written as ECMAScript
 * writes them (RFC 8785 §3.2.2). Members that are `undefined` are left out. Halves of characters, which RFC 8785 refuses,
 * are written as `\u` and four digits: `hasHalfCharacters` finds them.
 *
 * @throws RangeError for a value that nests deeper than `MAX_LEVELS`.
 */
export function toCanonicalJson(value: unknown, levels = MAX_LEVELS): string {
  if (levels === 0) throw new RangeError(`nested deeper than ${MAX_LEVELS} levels`);
  const write = (item: unknown) => toCanonicalJson(item, levels - 1);
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`;
  if (value instanceof JsonNumber) return value.text;
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  const members = Object.keys(value)
    .filter((name) => value[name] !== undefined)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${write(value[name])}`);
  return `{${members.join(',')}}`;
}

/** More than any schema has; a server must not fill the stack. */
const MAX_LEVELS = 200;

/** Whether a text of canonical JSON has a half of a character, which servers read as they like. */
export const hasHalfCharacters = (canonical: string): boolean =>
  HALF_CHARACTER.test(canonical.replaceAll('\\\\', ''));

/** Whole characters are never written so. */
const HALF_CHARACTER = /\\ud[89a-f]/;
