// JSON from elsewhere, read without trust.
import { isAscii } from 'node:buffer';
import { hash } from 'node:crypto';
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  findEndOfString,
  JsonNumber,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  RawJson,
  readKey,
  skipSpace,
} from './exact-json.ts';
import { createNote } from './note.ts';
import { openWorkspace } from './scan/scan-json.ts';

/** The members of a JSON object; of each nothing is known yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** `null` is none. */
export const isScalar = (value: unknown): boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof RawJson);

export const isStringArray = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

/** So that what many use none can change: plain data with all that is in it. */
export function freezeDeep<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) freezeDeep(member);
    Object.freeze(value);
  }
  return value;
}

/** The object that the text, or its bytes in UTF-8, spells; undefined for anything else. */
export function parseObject(source: Uint8Array | string): JsonObject | undefined {
  const value = parseJson(source);
  return isObject(value) ? value : undefined;
}

/** The value that the text, or its bytes in UTF-8, spells; undefined for what is no JSON. */
export function parseJson(source: Uint8Array | string): unknown {
  const text = typeof source === 'string' ? source : decodeUtf8(source);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** True if so many levels of objects and arrays are enough for the value. */
export const hasLevels = (value: unknown, levels: number): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((member) => hasLevels(member, levels - 1)));

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The text that bytes from elsewhere spell, or undefined for what is no UTF-8. A byte order mark is
 * a character like any other, in every place: JSON must not begin with one (RFC 8259 §8.1), and
 * skipping it would give two spellings to the same text.
 */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  // Most are: then nothing has to be decoded.
  if (isAscii(bytes)) return toBuffer(bytes).toString('latin1');
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

const toBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength);

/** Pieces that follow one another, as one. It is good until others are joined, or scanned. */
export function joinPieces(pieces: readonly Uint8Array[]): Buffer {
  const [first] = pieces;
  if (pieces.length === 1 && first !== undefined) return toBuffer(first);
  const length = countBytes(pieces);
  const workspace = openWorkspace(length)?.bytes;
  if (workspace === undefined) return Buffer.concat(pieces, length);
  let at = 0;
  for (const piece of pieces) {
    workspace.set(piece, at);
    at += piece.length;
  }
  return workspace.subarray(0, length);
}

const countBytes = (pieces: readonly Uint8Array[]) =>
  pieces.reduce((sum, piece) => sum + piece.length, 0);

/** True if every `%` of the text begins an encoded character (RFC 3986 §2.1), in UTF-8. */
export function isPercentDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

// Bounds of JSON text, checked before it is parsed.

/** The most that JSON text may have. */
interface JsonBounds {
  /** Arrays and objects around one another. */
  readonly levels: number;
  /** Objects, arrays, strings, numbers, `true`, `false` and `null`; names of members aside. */
  readonly values: number;
}

/**
 * Which bound JSON text breaks first. Looked at before parsing: many small values cost far more
 * memory and time than their text, and what looks at a deep value by calling itself fills the stack
 * (RFC 8259 §9 lets parsers set limits). For text that is not JSON the result means nothing.
 */
export function findExceededBound(
  text: string,
  { levels, values }: JsonBounds,
): keyof JsonBounds | undefined {
  // A level takes two characters, and so does a value with its comma.
  const hasFewValues = text.length < 2 * values - 1;
  if (hasFewValues && !hasOpeners(text, levels + 1)) return undefined;
  let depth = 0;
  let count = 1;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) at = findEndOfString(text, at);
    else if (character === COMMA) count++;
    else if (character === OPEN_ARRAY || character === OPEN_OBJECT) {
      depth++;
      const first = text.charCodeAt(skipSpace(text, at + 1));
      if (first !== CLOSE_ARRAY && first !== CLOSE_OBJECT) count++;
      if (depth > levels) return 'levels';
    } else if (character === CLOSE_ARRAY || character === CLOSE_OBJECT) depth--;
    if (count > values) return 'values';
  }
  return undefined;
}

/**
 * True if the text has so many brackets that open, in strings or not: most texts have too few to be deep. Found by the
 * engine's own search, many times faster than a look at each character.
 */
function hasOpeners(text: string, count: number) {
  let left = count;
  for (const opener of ['{', '[']) {
    let at = text.indexOf(opener);
    while (at !== -1) {
      left -= 1;
      if (left === 0) return true;
      at = text.indexOf(opener, at + 1);
    }
  }
  return false;
}

/**
 * True if an object anywhere in JSON text has a member twice, however its name is written: then readers differ in which one
 * counts (RFC 8259 §4).
 */
export function hasRepeatedNames(text: string): boolean {
  /** The names of each object around, from the outside; undefined for an array. */
  const around: (Set<string> | undefined)[] = [];
  let isName = false;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) {
      const end = findEndOfString(text, at);
      const names = isName ? around.at(-1) : undefined;
      if (names !== undefined) {
        const name = readKey(text, at);
        if (names.has(name)) return true;
        names.add(name);
        isName = false;
      }
      at = end;
    } else if (character === OPEN_OBJECT || character === OPEN_ARRAY) {
      isName = character === OPEN_OBJECT;
      around.push(isName ? new Set() : undefined);
    } else if (character === CLOSE_OBJECT || character === CLOSE_ARRAY) around.pop();
    else if (character === COMMA) isName = around.at(-1) !== undefined;
  }
  return false;
}

// JSON that was read, or is the same each time, and goes on as it is, so that nobody has to write it again.

/**
 * As text, or as bytes in UTF-8. Bytes are in pieces that follow one another: large ones are copied neither where they came in
 * several, nor where something is put before and behind them.
 */
export type Written = string | readonly Uint8Array[];

const WRITTEN = createNote<Written>();

/** Notes how the value was written. */
export const noteWritten = (value: object, how: Written): void => WRITTEN.set(value, how);

export const findWritten = (value: object): Written | undefined => WRITTEN.find(value);

/** Puts text before and behind it. */
export const surround = (before: string, content: Written, behind: string): Written =>
  typeof content === 'string'
    ? before + content + behind
    : [Buffer.from(before), ...content, Buffer.from(behind)];

/** Without so many bytes at the start and at the end. */
export function cutPieces(
  pieces: readonly Uint8Array[],
  start: number,
  end: number,
): readonly Uint8Array[] {
  const length = countBytes(pieces);
  let at = 0;
  return pieces.map((piece) => {
    const from = Math.max(0, start - at);
    const to = Math.max(0, Math.min(piece.length, length - end - at));
    at += piece.length;
    return piece.subarray(from, to);
  });
}

/**
 * An object that is written already, with members before and behind its own, such as `"a":1`; it has some, and none of their
 * names. Undefined where something stands around its braces.
 */
export function addMembers(object: Written, before: string, behind: string): Written | undefined {
  const isText = typeof object === 'string';
  const isBare = isText
    ? object.startsWith('{') && object.endsWith('}')
    : object[0]?.[0] === OPEN_OBJECT && object.at(-1)?.at(-1) === CLOSE_OBJECT;
  if (!isBare) return undefined;
  const members = isText ? object.slice(1, -1) : cutPieces(object, 1, 1);
  return surround(`{${before},`, members, `,${behind}}`);
}

// RFC 8785: one spelling for each JSON value, so that equal values have equal hashes. Of an exact value, numbers keep theirs.

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

/** The SHA-256 of a value, in hex: the same for the same value however it is written. @throws as `toCanonicalJson`. */
export const digestJson = (value: unknown): string => hash('sha256', toCanonicalJson(value), 'hex');

/** More than any schema has; a server must not fill the stack. */
const MAX_LEVELS = 200;

/** True if a text of canonical JSON has a half of a character, which servers read as they like. */
export const hasHalfCharacters = (canonical: string): boolean =>
  HALF_CHARACTER.test(canonical.replaceAll('\\\\', ''));

/** Whole characters are never written so. */
const HALF_CHARACTER = /\\ud[89a-f]/;
