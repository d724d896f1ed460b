// Parses, checks and compares untrusted JSON.
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
import { cutPieces, toBuffer } from './pieces.ts';

/** A JSON object whose members have not been checked. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** False for `null`. */
export const isScalar = (value: unknown): boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof RawJson);

export const isStringArray = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

/** Freezes plain data at every depth, so that no user of a shared value can change that value. */
export function freezeDeep<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) freezeDeep(member);
    Object.freeze(value);
  }
  return value;
}

/** Parses text or UTF-8 bytes; undefined for anything but a JSON object. */
export function parseObject(source: Uint8Array | string): JsonObject | undefined {
  const value = parseJson(source);
  return isObject(value) ? value : undefined;
}

/** Parses text or UTF-8 bytes; undefined for invalid JSON. */
export function parseJson(source: Uint8Array | string): unknown {
  const text = typeof source === 'string' ? source : decodeUtf8(source);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** True if the value nests no deeper than `levels` objects and arrays. */
export const hasLevels = (value: unknown, levels: number): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((member) => hasLevels(member, levels - 1)));

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Decodes untrusted bytes; undefined for invalid UTF-8. A byte order mark is kept like any other character: JSON must not begin
 * with one (RFC 8259 §8.1), and skipping it would give the same text two spellings.
 */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  // Fast path: ASCII needs no decoding.
  if (isAscii(bytes)) return toBuffer(bytes).toString('latin1');
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/** Undefined unless every `%` in the text begins an encoded character (RFC 3986 §2.1) in UTF-8. */
export function decodePercent(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

// Limits on JSON text, checked before it is parsed.

/** Maximum depth and size of JSON text. */
interface JsonBounds {
  /** Maximum nesting of arrays and objects. */
  readonly levels: number;
  /** Maximum number of objects, arrays, strings, numbers, `true`, `false` and `null`, not counting member names. */
  readonly values: number;
}

/**
 * The first limit that JSON text exceeds. Checked before parsing: many small values cost far more memory and time than their text,
 * and recursion over a deep value overflows the stack (RFC 8259 §9 lets parsers set limits). Meaningless for invalid JSON.
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
 * True if the text has at least `count` opening brackets, in strings or elsewhere. Most documents have too few to be deep, and
 * `indexOf` is many times faster than checking each character.
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
 * True if any object in JSON text repeats a member name, in any spelling: parsers differ in which member they use (RFC 8259 §4).
 */
export function hasRepeatedNames(text: string): boolean {
  /** Names seen in each enclosing object, outermost first; undefined for an array. */
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

// Notes: facts attached to a value in addition to its members. Copies do not have them, so a changed value, which is a new one, has
// no notes.

/** The constructor returns its argument, so the private field of a subclass is added to that very value. */
class Given {
  constructor(value: object) {
    // biome-ignore lint/correctness/noConstructorReturn: adds a private field to the value.
    return value;
  }
}

interface ValueNote<Content> {
  set(value: object, content: Content): void;
  /** Also undefined for a value that merely inherits from the noted one. */
  find(value: object): Content | undefined;
}

/**
 * Creates one kind of note, stored in the value itself: a long-lived WeakMap would keep each text alive until the next full
 * garbage collection. A private field takes a tenth of the time of `defineProperty`, and can be changed.
 */
export function createNote<Content>(): ValueNote<Content> {
  return class Noted extends Given {
    #content: Content | undefined;

    static set(value: object, content: Content): void {
      const noted = #content in value ? value : new Noted(value);
      noted.#content = content;
    }

    static find(value: object): Content | undefined {
      return #content in value ? value.#content : undefined;
    }
  };
}

// Serialized JSON that is cached, or forwarded as received, so that it is not serialized again.

/**
 * Text, or UTF-8 bytes in consecutive pieces: large bodies are not copied if they arrived in several pieces, or if text is
 * added before or after them.
 */
export type Written = string | readonly Uint8Array[];

/** Note and find the serialized form of a value. */
export const { set: noteWritten, find: findWritten } = createNote<Written>();

/** Adds text before and after the content. */
export const surround = (before: string, content: Written, behind: string): Written =>
  typeof content === 'string'
    ? before + content + behind
    : [Buffer.from(before), ...content, Buffer.from(behind)];

/**
 * Adds members such as `"a":1` before and after those of a serialized object, which must not be empty or have these names.
 * Undefined if there is anything outside its braces.
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

// RFC 8785: canonical JSON, so that equal values have equal hashes. Exact numbers keep their spelling.

/**
 * Sorts members by the UTF-16 code units of their names, and writes numbers and strings as ECMAScript does (RFC 8785 §3.2.2).
 * Members that are `undefined` are left out. Lone surrogates, which RFC 8785 refuses, are written as `\u` escapes;
 * `hasHalfCharacters` finds them.
 *
 * @throws RangeError for a value nested deeper than `MAX_LEVELS`.
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

/** SHA-256 of a value in hex, which is the same for each spelling of the value. @throws RangeError like `toCanonicalJson`. */
export const digestJson = (value: unknown): string => hash('sha256', toCanonicalJson(value), 'hex');

/** Deeper than any schema, but keeps a server's value from overflowing the stack. */
const MAX_LEVELS = 200;

/** True if canonical JSON contains a lone surrogate, which servers interpret differently. */
export const hasHalfCharacters = (canonical: string): boolean =>
  HALF_CHARACTER.test(canonical.replaceAll('\\\\', ''));

/** Matches only lone surrogates, since pairs are never escaped. */
const HALF_CHARACTER = /\\ud[89a-f]/;
