// Numbers as they were spelled, for code that knows JavaScript's alone, and back again.
import { JsonNumber } from './exact-json.ts';

/** For each object that was made anew the value that it stands for. */
export type Originals = Map<unknown, unknown>;

/** A value that nests deeper is no JSON of ours, or contains itself: it stays as it is. */
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

/** Several numbers of one list are the same for JavaScript, and it is not known which of them is meant. */
export class UnclearNumber extends Error {
  override readonly name = 'UnclearNumber';
}

/**
 * The reverse of `toPlain`, after somebody has changed something: numbers that are the same as before are spelled as before. Objects
 * are found again wherever they are now, and numbers in a list that is longer or shorter now; all else counts by names and positions.
 *
 * @throws UnclearNumber
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
  const isMoved =
    Array.isArray(value) && Array.isArray(original) && value.length !== original.length;
  const moved = isMoved ? listSpellings(original) : undefined;
  const find = (member: unknown, key: string) =>
    moved && typeof member === 'number' ? findOne(moved, member) : getMember(original, key);
  return mapMembers(value, (member, key) =>
    restoreNumbers(member, find(member, key), originals, levels - 1),
  );
}

type Spellings = ReadonlyMap<number, ReadonlyMap<string, JsonNumber>>;

/** By what JavaScript makes of them. */
function listSpellings(list: readonly unknown[]): Spellings {
  const all = new Map<number, Map<string, JsonNumber>>();
  for (const one of list) {
    if (!(one instanceof JsonNumber)) continue;
    const spellings = all.get(one.valueOf()) ?? new Map();
    all.set(one.valueOf(), spellings.set(one.text, one));
  }
  return all;
}

function findOne(all: Spellings, number: number): JsonNumber | undefined {
  const [one, ...others] = all.get(number)?.values() ?? [];
  if (others.some((other) => !other.isDouble())) throw new UnclearNumber();
  return one;
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
