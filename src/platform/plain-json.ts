// Numbers as they were spelled, for code that knows JavaScript's alone, and back again.
import { JsonNumber } from './exact-json.ts';

/** Which value each object stands for that was made anew. */
export type Originals = Map<unknown, unknown>;

/** What nests deeper is no JSON of ours, or leads to itself: it stays as it is. */
const MAX_LEVELS = 250;

/** With what JavaScript makes of each `JsonNumber`; the same value where it has none. */
export function toPlain(value: unknown, levels = MAX_LEVELS): unknown {
  if (value instanceof JsonNumber) return value.valueOf();
  if (typeof value !== 'object' || value === null || levels === 0) return value;
  return mapMembers(value, (member) => toPlain(member, levels - 1));
}

/** The same, made anew at every depth: whoever gets it may change it. */
export function copyPlain(value: unknown, originals: Originals, levels = MAX_LEVELS): unknown {
  if (value instanceof JsonNumber) return value.valueOf();
  if (typeof value !== 'object' || value === null || levels === 0) return value;
  const copy = copyMembers(value, (member) => copyPlain(member, originals, levels - 1));
  originals.set(copy, value);
  return copy;
}

/**
 * The reverse of `toPlain`, after somebody has changed something: numbers that are the same as before are spelled as before. Objects
 * are found again wherever they are now; else members and entries count by their names and positions.
 */
export function restoreNumbers(
  value: unknown,
  before: unknown,
  originals: Originals,
  levels = MAX_LEVELS,
): unknown {
  if (before instanceof JsonNumber) return value === before.valueOf() ? before : value;
  if (typeof value !== 'object' || value === null || levels === 0) return value;
  const original = originals.get(value) ?? before;
  return mapMembers(value, (member, key) =>
    restoreNumbers(member, getMember(original, key), originals, levels - 1),
  );
}

const getMember = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined;

/** The same object where nothing changes. */
function mapMembers(value: object, map: (member: unknown, key: string) => unknown): object {
  let isChanged = false;
  const mapOne = (member: unknown, key: string) => {
    const mapped = map(member, key);
    isChanged ||= !Object.is(mapped, member);
    return mapped;
  };
  const mapped = copyMembers(value, mapOne);
  return isChanged ? mapped : value;
}

const copyMembers = (value: object, map: (member: unknown, key: string) => unknown): object =>
  Array.isArray(value)
    ? value.map((member, index) => map(member, String(index)))
    : Object.fromEntries(
        Object.entries(value).map(([key, member]) => [key, map(member, key)] as const),
      );
