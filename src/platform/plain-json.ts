// Numbers as they were spelled, for code that knows JavaScript's alone, and back again.
import { JsonNumber } from './exact-json.ts';

/** For each object that was made anew the value that it stands for. */
export type Originals = Map<unknown, unknown>;

/** A value that nests deeper is no JSON of ours, or contains itself: it stays as it is. */
const MAX_LEVELS = 250;

/** With what JavaScript makes of each `JsonNumber`; the same value where it has none. */
export function toPlain(value: unknown, originals?: Originals, levels = MAX_LEVELS): unknown {
  if (value instanceof JsonNumber) return value.valueOf();
  if (typeof value !== 'object' || value === null || levels === 0) return value;
  const plain = mapMembers(value, (member) => toPlain(member, originals, levels - 1));
  if (plain !== value) originals?.set(plain, value);
  return plain;
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
  const mapped = Array.isArray(value)
    ? value.map((member, index) => mapOne(member, String(index)))
    : Object.fromEntries(
        Object.entries(value).map(([key, member]) => [key, mapOne(member, key)] as const),
      );
  return isChanged ? mapped : value;
}
