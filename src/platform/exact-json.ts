// JSON whose numbers stay as they were spelled. A double keeps neither 7205759403792793601 nor 1e400, and 1.0 is written as 1.
import { randomUUID } from 'node:crypto';
import { findEndOfString } from './json-text.ts';

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
function normalize(number: string): string {
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
  const marked = markNumbers(text);
  return marked === undefined ? plain : readMarks(JSON.parse(marked));
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
    const json = typeof member === 'object' ? writeMember(member) : JSON.stringify(member);
    members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${json}`;
  }
  return `{${members}}`;
}

const writeMember = (member: object | null): string =>
  member instanceof RawJson ? member.text : writeExactJson(member);

/** The text with a marked string for each such number; undefined where it has none. */
function markNumbers(text: string): string | undefined {
  let marked = '';
  let copied = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) at = findEndOfString(text, at);
    else if (character === MINUS || isDigit(character)) {
      const end = findEndOfNumber(text, at);
      const number = text.slice(at, end);
      if (!isKept(number)) {
        marked += `${text.slice(copied, at)}"${MARK}${number}"`;
        copied = end;
      }
      at = end - 1;
    }
  }
  return copied === 0 ? undefined : marked + text.slice(copied);
}

const QUOTE = 0x22;
const PLUS = 0x2b;
const MINUS = 0x2d;
const DOT = 0x2e;

const isDigit = (character: number): boolean => character >= 0x30 && character <= 0x39;

/** Letters that begin an exponent: `e`, `E`. */
const isExponent = (character: number): boolean => (character | 0x20) === 0x65;

function findEndOfNumber(text: string, start: number): number {
  let at = start + 1;
  while (isPartOfNumber(text.charCodeAt(at))) at++;
  return at;
}

const isPartOfNumber = (character: number): boolean =>
  isDigit(character) ||
  character === DOT ||
  isExponent(character) ||
  character === PLUS ||
  character === MINUS;

/** True if `JSON.stringify` writes the same. */
const isKept = (number: string): boolean => String(Number(number)) === number;

/** Marked strings become numbers, in place, however deep they are. */
function readMarks(value: unknown): unknown {
  const top = { value };
  const open: object[] = [top];
  for (let parent = open.pop(); parent !== undefined; parent = open.pop()) {
    for (const name of Object.keys(parent)) {
      const member: unknown = Reflect.get(parent, name);
      // A member of its own is set even if it is called `__proto__`.
      if (isMarked(member)) Reflect.set(parent, name, new JsonNumber(member.slice(MARK.length)));
      else if (typeof member === 'object' && member !== null) open.push(member);
    }
  }
  return top.value;
}

const isMarked = (value: unknown): value is string =>
  typeof value === 'string' && value.startsWith(MARK);
