// JSON whose numbers stay as they were spelled. A double keeps neither 7205759403792793601 nor 1e400, and 1.0 is written as 1.
import { randomUUID } from 'node:crypto';

/** A value that is written as it was: `writeExactJson` puts its text there. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** For whoever writes it without `writeExactJson`. */
  toJSON(): unknown {
    if (written === undefined) return JSON.parse(this.text);
    written.push(this.text);
    return MARK + (written.length - 1);
  }
}

/** A number that `JSON.stringify` would spell in another way than it was read. */
export class JsonNumber extends RawJson {
  /** The number that JavaScript reads, which may be another one, or `Infinity`. */
  override valueOf(): number {
    return Number(this.text);
  }

  /** True if that is the same number, spelled as JavaScript does: so for 1.0, and not for 0.12345678901234567891. */
  isDouble(): boolean {
    return normalize(this.text) === normalize(String(this.valueOf()));
  }
}

/** The same text for all spellings of one number. */
function normalize(number: string) {
  const [, sign = '', whole = '', part = '', exponent = '0'] = NUMBER.exec(number) ?? [];
  const digits = (whole + part).replace(/^0+/, '');
  const short = digits.replace(/0+$/, '');
  if (short === '') return number === 'Infinity' || number === '-Infinity' ? number : '0';
  return `${sign}${short}e${Number(exponent) - part.length + digits.length - short.length}`;
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** While `writeExactJson` works, the texts that it has to put in. */
let written: string[] | undefined;

/** Begins texts that stand for values while the engine's parser or writer works. Nobody else knows it, and it goes nowhere. */
const MARK = `${randomUUID()} `;

/**
 * As `JSON.parse`, but numbers that a double would not spell so are `JsonNumber`.
 *
 * @throws SyntaxError as `JSON.parse` does.
 */
export function parseExactJson(text: string): unknown {
  const plain: unknown = JSON.parse(text);
  return addExactNumbers(plain, text);
}

/** As `parseExactJson`, for a text that `JSON.parse` has read: the same value if no number of the text was lost. */
export function addExactNumbers(plain: unknown, text: string): unknown {
  const { marked, numbers } = markNumbers(text);
  return numbers.length === 0 ? plain : readMarks(JSON.parse(marked), numbers);
}

/**
 * As `JSON.stringify`, with each `RawJson` as it was written.
 *
 * @throws RangeError as `JSON.stringify` does, where it nests deeper than the stack.
 */
export function writeExactJson(value: unknown, indent?: number): string {
  const texts: string[] = [];
  written = texts;
  try {
    const json = JSON.stringify(value, undefined, indent) ?? 'null';
    if (texts.length === 0) return json;
    let exact = '';
    let copied = 0;
    // They stand there in the order in which they were asked for.
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

/** The same of an object, member by member: what is a `RawJson` takes no time then. */
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
 * In a marked text each number of at least so much is a mark: it says where in a list the number is that it stands for. A number that
 * is so large itself is marked, too. Marks that are texts took seconds where there are hundreds of thousands.
 */
const MARKED_AS = 'e300';
const LEAST_MARKED = 1e300;

/** The text with a mark for each such number, and these in their order. */
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
      // `JSON.stringify` would write another, or it would be read as a mark.
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

/** An exponent begins with `e` or `E`. */
const isPartOfNumber = (character: number) =>
  isDigit(character) ||
  character === DOT ||
  (character | 0x20) === 0x65 ||
  character === PLUS ||
  character === MINUS;

/** Marks become numbers as they were spelled, in place, however deep they are. */
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
      // A member of its own is set even if it is called `__proto__`.
      if (exact !== member) Reflect.set(parent, name, exact);
    }
  }
  return top.value;
}

// The text of JSON.

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

/** The name, or text, that begins here: `"a"` is also written `"\u0061"`. */
export function readKey(text: string, start: number): string {
  const quoted = text.slice(start, findEndOfString(text, start) + 1);
  return quoted.includes('\\') ? JSON.parse(quoted) : quoted.slice(1, -1);
}

/** Its last quote; behind the text where there is none. */
export function findEndOfString(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1);
  while (quote !== -1 && isEscaped(text, quote)) quote = text.indexOf('"', quote + 1);
  return quote === -1 ? text.length : quote;
}

/** Behind an odd number of backslashes. */
function isEscaped(text: string, quote: number) {
  let at = quote - 1;
  while (text.charCodeAt(at) === BACKSLASH) at--;
  return (quote - at) % 2 === 0;
}

const BACKSLASH = 0x5c;

// Numbers as they were spelled, for code that knows JavaScript's alone, and back again.

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

/** Keyed by what JavaScript makes of them. */
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

/** The same object where nothing changes. */
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
