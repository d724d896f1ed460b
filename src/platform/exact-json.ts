// JSON whose numbers stay as they were spelled. A double keeps neither 7205759403792793601 nor 1e400, and 1.0 is written as 1.
import { randomUUID } from 'node:crypto';
import { findEndOfString } from './json.ts';

/** A number that `JSON.stringify` would spell in another way than it was read. */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** What JavaScript makes of it: maybe another number, or `Infinity`. */
  valueOf(): number {
    return Number(this.text);
  }

  /** For whoever writes it without `writeExactJson`. */
  toJSON(): number | string {
    return isWritingExactly ? MARK + this.text : this.valueOf();
  }
}

let isWritingExactly = false;

/** Begins texts that stand for numbers while the engine's parser or writer works. Nobody else knows it, and it goes nowhere. */
const MARK = `${randomUUID()} `;
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g');

/**
 * As `JSON.parse`, but numbers that a double would not spell so are `JsonNumber`.
 *
 * @throws SyntaxError as `JSON.parse` does.
 */
export function parseExactJson(text: string): unknown {
  const marked = markNumbers(text);
  // What the parser takes for a number is found in its texts only, so nothing that is no JSON becomes some.
  const plain: unknown = JSON.parse(text);
  return marked === undefined ? plain : readMarks(JSON.parse(marked));
}

/**
 * As `JSON.stringify`, with each `JsonNumber` as it was spelled.
 *
 * @throws RangeError as `JSON.stringify` does, where it nests deeper than the stack.
 */
export function writeExactJson(value: unknown): string | undefined {
  isWritingExactly = true;
  try {
    return JSON.stringify(value)?.replace(MARKED, '$1');
  } finally {
    isWritingExactly = false;
  }
}

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

/** Of `e` and `E`. */
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

/** Whether a double spells it so. */
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
