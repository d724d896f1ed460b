// Reads and writes JSON with numbers as spelled: a double cannot hold 7205759403792793601 or 1e400, and would write 1.0 as 1.
import { randomUUID } from 'node:crypto';

/** JSON text in place of a value; `writeExactJson` writes it verbatim. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Used by `JSON.stringify` outside `writeExactJson`. */
  toJSON(): unknown {
    if (written === undefined) return JSON.parse(this.text);
    written.push(this.text);
    return MARK + (written.length - 1);
  }
}

/** A number that `JSON.stringify` would spell differently from the text it was read from. */
export class JsonNumber extends RawJson {
  /** The number as JavaScript reads it: possibly a different one, or `Infinity`. */
  override valueOf(): number {
    return Number(this.text);
  }

  /** True if a double holds the same number: true for 1.0, false for 0.12345678901234567891. */
  isDouble(): boolean {
    return normalize(this.text) === normalize(String(this.valueOf()));
  }
}

/** Maps all spellings of a number to one string. */
function normalize(number: string) {
  const [, sign = '', whole = '', part = '', exponent = '0'] = NUMBER.exec(number) ?? [];
  const digits = (whole + part).replace(/^0+/, '');
  const short = digits.replace(/0+$/, '');
  if (short === '') return number === 'Infinity' || number === '-Infinity' ? number : '0';
  return `${sign}${short}e${Number(exponent) - part.length + digits.length - short.length}`;
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** Texts to insert while `writeExactJson` is running. */
let written: string[] | undefined;

/**
 * Prefix of placeholders while the engine's `JSON.stringify` is running. Random and never sent, so that no value can contain it.
 */
const MARK = `${randomUUID()} `;

/**
 * `JSON.parse`, with a `JsonNumber` for each number that a double would spell differently.
 *
 * @throws SyntaxError like `JSON.parse`.
 */
export function parseExactJson(text: string): unknown {
  const plain: unknown = JSON.parse(text);
  return addExactNumbers(plain, text);
}

/** `parseExactJson` for text already parsed by `JSON.parse`: returns the same value if no number was lost. */
export function addExactNumbers(plain: unknown, text: string): unknown {
  const { marked, numbers } = markNumbers(text);
  return numbers.length === 0 ? plain : readMarks(JSON.parse(marked), numbers);
}

/**
 * `JSON.stringify`, with each `RawJson` verbatim.
 *
 * @throws RangeError like `JSON.stringify`, for a value nested deeper than the stack.
 */
export function writeExactJson(value: unknown, indent?: number): string {
  const texts: string[] = [];
  written = texts;
  try {
    const json = JSON.stringify(value, undefined, indent) ?? 'null';
    if (texts.length === 0) return json;
    let exact = '';
    let copied = 0;
    // The placeholders appear in the order in which they were requested.
    for (const [index, text] of texts.entries()) {
      const mark = `"${MARK}${index}"`;
      const at = json.indexOf(mark, copied);
      exact += json.slice(copied, at) + text;
      copied = at + mark.length;
    }
    return exact + json.slice(copied);
  } finally {
    written = undefined;
  }
}

/** `writeExactJson` for an object, member by member, so that `RawJson` members cost nothing. */
export function writeMembers(object: Readonly<Record<string, unknown>>): string {
  let members = '';
  for (const name of Object.keys(object)) {
    const member = object[name];
    if (member === undefined) continue;
    const text = member instanceof RawJson ? member.text : undefined;
    const json =
      text ?? (typeof member === 'object' ? writeExactJson(member) : JSON.stringify(member));
    members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${json}`;
  }
  return `{${members}}`;
}

/**
 * In marked text, each number of at least this size is a mark: an index into a list of numbers. Numbers that really are this large
 * are marked as well. String marks would take seconds for hundreds of thousands of numbers.
 */
const MARKED_AS = 'e300';
const LEAST_MARKED = 1e300;

/** Returns the text with a mark for each such number, and the numbers in order. */
function markNumbers(text: string) {
  let marked = '';
  let copied = 0;
  const numbers: JsonNumber[] = [];
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) at = findEndOfString(text, at);
    else if (character === MINUS || isDigit(character)) {
      let end = at + 1;
      while (isPartOfNumber(text.charCodeAt(end))) end++;
      const number = text.slice(at, end);
      // `JSON.stringify` would spell the number differently, or it would be mistaken for a mark.
      if (String(Number(number)) !== number || Number(number) >= LEAST_MARKED) {
        numbers.push(new JsonNumber(number));
        marked += text.slice(copied, at) + numbers.length + MARKED_AS;
        copied = end;
      }
      at = end - 1;
    }
  }
  return { marked: marked + text.slice(copied), numbers };
}

const PLUS = 0x2b;
const MINUS = 0x2d;
const DOT = 0x2e;

const isDigit = (character: number) => character >= 0x30 && character <= 0x39;

/** Includes `e` and `E` for exponents. */
const isPartOfNumber = (character: number) =>
  isDigit(character) ||
  character === DOT ||
  (character | 0x20) === 0x65 ||
  character === PLUS ||
  character === MINUS;

/** Replaces marks with numbers as spelled, in place and at any depth. */
function readMarks(value: unknown, numbers: readonly JsonNumber[]): unknown {
  const top = { value };
  const open: object[] = [top];
  const read = (member: unknown): unknown => {
    if (typeof member === 'object' && member !== null) open.push(member);
    return typeof member === 'number' && member >= LEAST_MARKED
      ? numbers[Math.round(member / LEAST_MARKED) - 1]
      : member;
  };
  for (let parent = open.pop(); parent !== undefined; parent = open.pop()) {
    if (Array.isArray(parent)) {
      for (let index = 0; index < parent.length; index += 1) parent[index] = read(parent[index]);
      continue;
    }
    for (const name of Object.keys(parent)) {
      const member: unknown = Reflect.get(parent, name);
      const exact = read(member);
      // `Reflect.set` assigns an own member even if it is named `__proto__`.
      if (exact !== member) Reflect.set(parent, name, exact);
    }
  }
  return top.value;
}

// Scans JSON text.

export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_ARRAY = 0x5b;
export const CLOSE_ARRAY = 0x5d;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;

export function skipSpace(text: string, start: number): number {
  let at = start;
  while (text.charCodeAt(at) <= 0x20) at++;
  return at;
}

/** The string that begins here, decoded: `"a"` may be written `"\u0061"`. */
export function readKey(text: string, start: number): string {
  const quoted = text.slice(start, findEndOfString(text, start) + 1);
  return quoted.includes('\\') ? JSON.parse(quoted) : quoted.slice(1, -1);
}

/** Index of the closing quote, or the text's length if there is none. */
export function findEndOfString(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1);
  while (quote !== -1 && isEscaped(text, quote)) quote = text.indexOf('"', quote + 1);
  return quote === -1 ? text.length : quote;
}

/** True if the quote follows an odd number of backslashes. */
function isEscaped(text: string, quote: number) {
  let at = quote - 1;
  while (text.charCodeAt(at) === BACKSLASH) at--;
  return (quote - at) % 2 === 0;
}

const BACKSLASH = 0x5c;

// Conversion to plain JavaScript numbers, and back to the original spelling.

/** Maps each copied object to its original. */
export type Originals = Map<unknown, unknown>;

/** Values nested deeper than this were not parsed here, or contain themselves; they are left alone. */
const MAX_LEVELS = 250;

/** Converts each `JsonNumber` to a plain number; returns the same value if there is none. */
export function toPlain(value: unknown, levels = MAX_LEVELS): unknown {
  if (value instanceof JsonNumber) return value.valueOf();
  if (typeof value !== 'object' || value === null || levels === 0) return value;
  return mapMembers(value, (member) => toPlain(member, levels - 1));
}

/** Like `toPlain`, but makes a deep copy, which the recipient may change. */
export function copyPlain(value: unknown, originals: Originals, levels = MAX_LEVELS): unknown {
  if (value instanceof JsonNumber) return value.valueOf();
  if (typeof value !== 'object' || value === null || levels === 0) return value;
  const copy = copyMembers(value, (member) => copyPlain(member, originals, levels - 1));
  originals.set(copy, value);
  return copy;
}

/** Several numbers in a list are equal in JavaScript, so that their original spelling is ambiguous. */
export class UnclearNumber extends Error {
  override readonly name = 'UnclearNumber';
}

/**
 * Reverses `copyPlain` after changes: unchanged numbers get their original spelling back. Objects are found wherever they were
 * moved to, and so are numbers in a list whose length has changed. Everything else is matched by name and position.
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

/** Keyed by the plain JavaScript number. */
function listSpellings(list: readonly unknown[]): Spellings {
  const all = new Map<number, Map<string, JsonNumber>>();
  for (const one of list) {
    if (!(one instanceof JsonNumber)) continue;
    const spellings = all.get(one.valueOf()) ?? new Map();
    all.set(one.valueOf(), spellings.set(one.text, one));
  }
  return all;
}

function findOne(all: Spellings, number: number) {
  const [one, ...others] = all.get(number)?.values() ?? [];
  if (others.some((other) => !other.isDouble())) throw new UnclearNumber();
  return one;
}

const getMember = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined;

/** Returns the same object if nothing changes. */
function mapMembers(value: object, map: (member: unknown, key: string) => unknown): object {
  let isChanged = false;
  const mapped = copyMembers(value, (member, key) => {
    const one = map(member, key);
    isChanged ||= !Object.is(one, member);
    return one;
  });
  return isChanged ? mapped : value;
}

const copyMembers = (value: object, map: (member: unknown, key: string) => unknown): object =>
  Array.isArray(value)
    ? value.map((member, index) => map(member, String(index)))
    : Object.fromEntries(
        Object.entries(value).map(([key, member]) => [key, map(member, key)] as const),
      );
