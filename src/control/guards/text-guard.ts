// §26.4: a guard that searches strings: as they are, and as their recipient may interpret them.

import { isUtf8 } from 'node:buffer';
import { choice } from '../../config/file/shapes/scalar.ts';
import { defineMember } from '../../config/file/shapes/shape.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { dropTerminalSequences } from '../../platform/text.ts';
import { PASS } from './ask-guard.ts';
import { A_VALUE, type JudgeMessage, MANY, type Steps } from './define-guard.ts';

/** Something in a string that must not pass. */
export interface FoundText {
  readonly start: number;
  readonly end: number;
  readonly name: string;
}

interface TextGuard {
  /** In order of position. None is longer than `OVERLAP`. `name` is the name of the member with the text. */
  find(text: string, form: Form, name: string): readonly FoundText[];
  /** The replacement text. */
  toMark(name: string): string;
  /** The guard's message if it refuses. */
  tell(found: ReadonlySet<string>): string;
  /** The last decoding step of a text's reader, by the name of the member with the text. */
  findLast?(name: string): ReadText;
}

export type GuardAction = 'redact' | 'refuse';

export const action = defineMember<GuardAction>(
  'action',
  choice('redact', 'refuse'),
  'replace the matches (redact, the default), or refuse the message (refuse).',
);

export function createTextJudge(
  { find, toMark, tell, findLast }: TextGuard,
  chosen: GuardAction,
): JudgeMessage {
  return function* judgeText({ value }) {
    const found = new Set<string>();
    const redacted = yield* mapTexts(value, (text, name, form) => {
      // Most strings are short, and have only one reading.
      const isAsItStands = text.length <= PART && !SPECIAL.test(text);
      return isAsItStands && find(text, form, name).length === 0
        ? text
        : redactParts(text, name, form, found);
    });
    if (found.size === 0) return PASS;
    return chosen === 'redact'
      ? { kind: 'change', value: redacted }
      : { kind: 'refuse', message: tell(found) };
  };

  function* redactParts(text: string, name: string, form: Form, found: Set<string>): Steps<string> {
    const findHere = (one: string) => find(one, form, name);
    const shown: FoundText[] = [];
    const hidden = new Set<string>();
    const closer = text.length > PART ? text.replace(GAP, ([first = '']) => first) : text;
    if (closer !== text) yield* redactParts(closer, name, form, hidden);
    for (const { from, start, end, part } of cutParts(text)) {
      const known = findHere(part);
      for (const one of known) {
        const at = from + one.start;
        if (at >= start && at < end) shown.push({ ...one, start: at, end: from + one.end });
      }
      yield part.length + A_VALUE;
      for (const reading of listReadings(part, form, findLast?.(name))) {
        yield part.length + A_VALUE;
        if (reading === undefined) continue;
        for (const one of findHidden(part, known, reading, findHere)) hidden.add(one.name);
      }
    }
    for (const one of [...hidden, ...shown.map((each) => each.name)]) found.add(one);
    // Its position in the text itself is unknown.
    return hidden.size > 0
      ? [...new Set([...hidden].map(toMark))].join(' ')
      : replaceAll(text, shown, toMark);
  }

  /**
   * Finds matches in a reading that are not in the text itself: with different wording, or left over where the text was replaced.
   */
  function findHidden(
    part: string,
    known: readonly FoundText[],
    { text, read }: Reading,
    findHere: (text: string) => readonly FoundText[],
  ): readonly FoundText[] {
    const found = findHere(text);
    if (known.length === 0) return found;
    const asKnown = new Set(known.map(({ start, end }) => read(part.slice(start, end))));
    const others = found.filter(({ start, end }) => !asKnown.has(text.slice(start, end)));
    return [...others, ...findHere(read(replaceAll(part, known, toMark)))];
  }
}

/** Characters used in escapes, and those that `findLast` looks for. */
const SPECIAL = /[\\%&\t\n\r\u001b\u009b]/;

/** Of overlapping matches, the first one counts for all of them. */
function replaceAll(text: string, all: readonly FoundText[], toMark: TextGuard['toMark']): string {
  let replaced = '';
  let copied = 0;
  for (const { start, end, name } of all) {
    if (start >= copied) replaced += text.slice(copied, start) + toMark(name);
    copied = Math.max(copied, end);
  }
  return replaced + text.slice(copied);
}

// A long text is checked in parts, each with some surrounding text.

const PART = 40_960;
/** More than the longest possible match. */
const OVERLAP = 24_576;
/** Enough to tell whether a match begins there. */
const BEFORE = 64;
/**
 * Whitespace that parsers of addresses skip, so that a match around it could be split in two. The pattern uses no stack for long
 * runs: megabytes of whitespace used to make the guard fail, and therefore pass with `"onError": "pass"`.
 */
const GAP = /(?<!\s)\s{4096}\s*/g;
/** A cut is made within this many characters, at a point where no match without spaces can continue. */
const AROUND_CUT = 1_024;
const BOUNDARY = /[\s"'<>()][^\s"'<>()]*$/;

function* cutParts(text: string) {
  for (let start = 0; start < text.length; ) {
    const latest = start + PART;
    const boundary =
      latest < text.length
        ? BOUNDARY.exec(text.slice(latest - AROUND_CUT, latest))?.index
        : undefined;
    const end =
      boundary === undefined ? Math.min(latest, text.length) : latest - AROUND_CUT + boundary + 1;
    const from = Math.max(0, start - BEFORE);
    // Any match that begins between `start` and `end` belongs to this part. `from` is the position of `part` in the whole text.
    yield { start, end, from, part: text.slice(from, end + OVERLAP) };
    start = end;
  }
}

/** `base64`: text that encodes bytes. `bytes`: one character for each byte of data that is not text. */
export type Form = 'text' | 'base64' | 'bytes';

/** Synchronous if there is little to do; `name` is the name of the member with the text, if any. */
type MapText = (text: string, name: string, form: Form) => string | Steps<string>;

/**
 * The value with each of its strings replaced, including member names; the same object if nothing is replaced. The base64 of a
 * member `blob` or `data` is also checked in decoded form.
 */
function* mapTexts(value: unknown, map: MapText, name = ''): Steps<unknown> {
  if (typeof value === 'string') {
    if (ENCODED.has(name)) return yield* mapEncoded(value, map, name);
    const mapped = map(value, name, 'text');
    if (typeof mapped !== 'string') return yield* mapped;
    yield value.length + A_VALUE;
    return mapped;
  }
  if (Array.isArray(value)) return yield* mapItems(value, map, name);
  return isObject(value) ? yield* mapMembers(value, map) : value;
}

function* mapItems(
  items: readonly unknown[],
  map: MapText,
  name: string,
): Steps<readonly unknown[]> {
  let isChanged = false;
  const mapped: unknown[] = [];
  for (const item of items) {
    const next = isPlain(item) ? item : yield* mapTexts(item, map, name);
    isChanged ||= next !== item;
    mapped.push(next);
    if (mapped.length % MANY === 0) yield MANY * A_VALUE;
  }
  yield (mapped.length % MANY) * A_VALUE;
  return isChanged ? mapped : items;
}

function* mapMembers(members: JsonObject, map: MapText): Steps<JsonObject> {
  let isChanged = false;
  const mapped: (readonly [string, unknown])[] = [];
  for (const name of Object.keys(members)) {
    const member = members[name];
    const ofName = map(name, '', 'text');
    const nextName = typeof ofName === 'string' ? ofName : yield* ofName;
    const next = isPlain(member) ? member : yield* mapTexts(member, map, name);
    isChanged ||= nextName !== name || next !== member;
    mapped.push([nextName, next]);
    if (mapped.length % MANY === 0) yield MANY * A_VALUE;
  }
  yield (mapped.length % MANY) * A_VALUE;
  return isChanged ? Object.fromEntries(mapped) : members;
}

/** It contains no text. */
const isPlain = (value: unknown): boolean => typeof value !== 'string' && typeof value !== 'object';

/** MCP: bytes of resources, images and audio. */
const ENCODED = new Set(['blob', 'data']);

/** Text that contains nothing but this, such as the `//` of an address. */
const BASE64 = /^[A-Za-z0-9+/=\r\n]*$/;

function* mapEncoded(given: string, map: MapText, name: string): Steps<string> {
  const ofText = map(given, name, BASE64.test(given) ? 'base64' : 'text');
  const text = typeof ofText === 'string' ? ofText : yield* ofText;
  // Decoders skip whitespace, and some skip any characters outside base64.
  const bytes = Buffer.from(text.replaceAll('=', ''), 'base64');
  const plain = yield* mapBytes(bytes, isUtf8(bytes) ? 'utf8' : 'latin1', map, name);
  // Decoders that respect the byte order mark get a different text from those that do not.
  const wide = toUtf16(plain);
  const mapped = wide && (yield* mapBytes(wide, 'utf16le', map, name));
  const next = mapped === wide ? plain : (mapped ?? plain);
  yield text.length + A_VALUE;
  return next === bytes ? text : next.toString('base64');
}

function* mapBytes(
  bytes: Buffer,
  encoding: 'utf8' | 'latin1' | 'utf16le',
  map: MapText,
  name: string,
): Steps<Buffer> {
  const decoded = bytes.toString(encoding);
  const mapped = map(decoded, name, encoding === 'latin1' ? 'bytes' : 'text');
  const next = typeof mapped === 'string' ? mapped : yield* mapped;
  return next === decoded ? bytes : Buffer.from(next, encoding);
}

/** In the byte order that Node.js reads; undefined without a byte order mark. */
function toUtf16(bytes: Buffer): Buffer | undefined {
  const mark = bytes.subarray(0, 2).toString('hex');
  if (mark === 'fffe') return bytes;
  return mark === 'feff' ? Buffer.from(bytes.subarray(0, bytes.length & ~1)).swap16() : undefined;
}

// §26.4: other text that programs derive from a string before they act on it: JSON within a string, addresses, Markdown, HTML,
// CSS, terminals.

export type ReadText = (text: string) => string;

/** Escapes of JSON, and others from programming languages: `\v`, `\x41`, `\101`, `\e` for terminals. */
const unescapeStrings: ReadText = (text) =>
  text.replace(
    /\\(?:(["\\/bfnrtv]|0(?![0-7]{2})|e(?=[[\]]))|(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))|([0-3][0-7]{2}))/g,
    (_, ...[letter, code, byte, octal = '']: readonly (string | undefined)[]) => {
      if (letter !== undefined) return LETTERS[letter] ?? letter;
      const hex = code ?? byte;
      return hex === undefined ? toCharacter(octal, 8) : toCharacter(hex, 16);
    },
  );

const LETTERS: Readonly<Record<string, string>> = {
  0: '\0',
  b: '\b',
  e: '\u001b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

const decodePercent: ReadText = (text) =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, (encoded) =>
    Buffer.from(encoded.replaceAll('%', ''), 'hex').toString(),
  );

/** CommonMark "Backslash escapes". */
const unescapeMarkdown: ReadText = (text) => text.replace(/\\([!-/:-@[-`{-~])/g, '$1');

/**
 * CSS Syntax "Consume an escaped code point"; in a string, an escaped line feed is removed. Other characters stand for
 * themselves: this is decoded only in a CSS address, since `\n` is more often from JSON.
 */
const unescapeCss: ReadText = (text) =>
  text
    .replace(CSS_ADDRESS, (address) => address.replace(/\\([^0-9a-fA-F\n\r\f])/g, '$1'))
    .replace(
      /\\(?:([0-9a-fA-F]{1,6})(?:\r\n|[ \t\n\r\f])?|\r\n|[\n\r\f])/g,
      (_, hex: string | undefined) => (hex === undefined ? '' : toCharacter(hex, 16)),
    );

const CSS_ADDRESS = /(?:url\(|@import)[^()]{0,4096}/gi;

/** Decodes each character reference by number, or by name if it is an ASCII character. */
const decodeHtml: ReadText = (text) =>
  text.replace(
    CHARACTER,
    (_, ...[decimal, hex, name, old = '']: readonly (string | undefined)[]) => {
      if (decimal !== undefined) return toCharacter(decimal, 10);
      return hex === undefined ? (NAMES[name ?? old] ?? '') : toCharacter(hex, 16);
    },
  );

const toCharacter = (digits: string, base: number): string => {
  const code = Number.parseInt(digits, base);
  return code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd';
};

/** Names of characters in HTML, which are case-sensitive: a name that no browser decodes hides nothing. */
const NAMES: Readonly<Record<string, string>> = {
  Tab: '\t',
  NewLine: '\n',
  excl: '!',
  quot: '"',
  QUOT: '"',
  num: '#',
  dollar: '$',
  percnt: '%',
  amp: '&',
  AMP: '&',
  apos: "'",
  lpar: '(',
  rpar: ')',
  ast: '*',
  midast: '*',
  plus: '+',
  comma: ',',
  period: '.',
  sol: '/',
  colon: ':',
  semi: ';',
  lt: '<',
  LT: '<',
  equals: '=',
  gt: '>',
  GT: '>',
  quest: '?',
  commat: '@',
  lsqb: '[',
  lbrack: '[',
  bsol: '\\',
  rsqb: ']',
  rbrack: ']',
  Hat: '^',
  lowbar: '_',
  UnderBar: '_',
  grave: '`',
  DiacriticalGrave: '`',
  lcub: '{',
  lbrace: '{',
  verbar: '|',
  vert: '|',
  VerticalLine: '|',
  rcub: '}',
  rbrace: '}',
  fjlig: 'fj',
};
/** Some legacy names are accepted without a semicolon. */
const CHARACTER = new RegExp(
  `&(?:#0*(\\d{1,7});?|#[xX]0*([0-9a-fA-F]{1,6});?|(${Object.keys(NAMES).join('|')});|(amp|AMP|lt|LT|gt|GT|quot|QUOT))`,
  'g',
);

interface Reading {
  readonly text: string;
  readonly read: ReadText;
}

/**
 * Each different text that results from one decoder, or from two in a row; undefined if the result is unchanged, so that other
 * work gets a turn. `last` is the final decoding step of the recipient.
 */
function* listReadings(
  text: string,
  form: Form,
  last?: ReadText,
): Generator<Reading | undefined, void> {
  const seen = new Set([text]);

  function* list(reading: string, read: ReadText): Generator<Reading | undefined, void> {
    yield note(reading, read);
    if (last !== undefined) yield note(last(reading), join(read, last));
  }

  function note(reading: string, read: ReadText): Reading | undefined {
    if (seen.has(reading)) return undefined;
    seen.add(reading);
    return { text: reading, read };
  }

  if (last !== undefined) yield note(last(text), last);
  if (!ESCAPE.test(text)) return;
  const readers = form === 'bytes' ? READERS : READERS_OF_TEXT;
  for (const first of readers) {
    const once = first(text);
    if (once === text) continue;
    yield* list(once, first);
    for (const second of readers) yield* list(second(once), join(first, second));
  }
}

const READERS: readonly ReadText[] = [unescapeStrings, decodePercent, unescapeMarkdown, decodeHtml];
/** In the bytes of an image, all of these would occur by chance, and cost time. */
const READERS_OF_TEXT = [...READERS, unescapeCss, dropTerminalSequences];
const ESCAPE = /[\\%&\u001b\u009b]/;

const join =
  (first: ReadText, second: ReadText): ReadText =>
  (text) =>
    second(first(text));
