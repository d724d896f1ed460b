// §26.4: a guard that looks for something in texts: as they stand, and as whoever gets them may read them.

import { isUtf8 } from 'node:buffer';
import { choice } from '../../config/file/shapes/scalar.ts';
import { defineMember } from '../../config/file/shapes/shape.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { PASS } from './ask-guard.ts';
import { A_VALUE, type JudgeMessage, MANY, type Steps } from './define-guard.ts';

/** Something in a text that may not go through. */
export interface FoundText {
  readonly start: number;
  readonly end: number;
  readonly name: string;
}

interface TextGuard {
  /** In their order. None is longer than `OVERLAP`. */
  find(text: string, form: Form): readonly FoundText[];
  /** Written in its place. */
  toMark(name: string): string;
  /** The guard's words, where it refuses. */
  tell(found: ReadonlySet<string>): string;
  /** The last step of readers of a text, by the name of the member that has it. */
  findLast?(name: string): ReadText;
}

export type GuardAction = 'redact' | 'refuse';

export const action = defineMember<GuardAction>(
  'action',
  choice('redact', 'refuse'),
  'what is found is replaced (redact, the default), or nothing passes (refuse).',
);

export function createTextJudge(
  { find, toMark, tell, findLast }: TextGuard,
  chosen: GuardAction,
): JudgeMessage {
  return function* judgeText({ value }) {
    const found = new Set<string>();
    const redacted = yield* mapTexts(value, (text, name, form) => {
      // Most texts are short, and read in one way.
      const isAsItStands = text.length <= PART && !SPECIAL.test(text);
      return isAsItStands && find(text, form).length === 0
        ? text
        : redactParts(text, name, form, found);
    });
    if (found.size === 0) return PASS;
    return chosen === 'redact'
      ? { kind: 'change', value: redacted }
      : { kind: 'refuse', message: tell(found) };
  };

  function* redactParts(text: string, name: string, form: Form, found: Set<string>): Steps<string> {
    const shown: FoundText[] = [];
    const hidden = new Set<string>();
    const closer = text.length > PART ? text.replace(GAP, ([first = '']) => first) : text;
    if (closer !== text) yield* redactParts(closer, name, form, hidden);
    for (const { from, start, end, part } of cutParts(text)) {
      const known = find(part, form);
      for (const one of known) {
        const at = from + one.start;
        if (at >= start && at < end) shown.push({ ...one, start: at, end: from + one.end });
      }
      yield part.length + A_VALUE;
      for (const reading of listReadings(part, findLast?.(name))) {
        yield part.length + A_VALUE;
        if (reading === undefined) continue;
        for (const one of findHidden(part, known, reading, form)) hidden.add(one.name);
      }
    }
    for (const one of [...hidden, ...shown.map((each) => each.name)]) found.add(one);
    // Its place in the text itself is not known.
    return hidden.size > 0
      ? [...new Set([...hidden].map(toMark))].join(' ')
      : replaceAll(text, shown, toMark);
  }

  /** Finds what a reading has beyond what stands in the text itself: in other words, or left where that has been replaced. */
  function findHidden(
    part: string,
    known: readonly FoundText[],
    { text, read }: Reading,
    form: Form,
  ): readonly FoundText[] {
    const found = find(text, form);
    if (known.length === 0) return found;
    const asKnown = new Set(known.map(({ start, end }) => read(part.slice(start, end))));
    const others = found.filter(({ start, end }) => !asKnown.has(text.slice(start, end)));
    return [...others, ...find(read(replaceAll(part, known, toMark)), form)];
  }
}

/** Characters of escapes, and those that `findLast` looks at. */
const SPECIAL = /[\\%&\t\n\r]/;

/** The first of what overlaps counts, for all of it. */
function replaceAll(text: string, all: readonly FoundText[], toMark: TextGuard['toMark']): string {
  let replaced = '';
  let copied = 0;
  for (const { start, end, name } of all) {
    if (start >= copied) replaced += text.slice(copied, start) + toMark(name);
    copied = Math.max(copied, end);
  }
  return replaced + text.slice(copied);
}

// A long text is looked at in parts, each with what stands around it.

const PART = 40_960;
/** More than the longest that is looked for. */
const OVERLAP = 24_576;
/** Enough to tell whether something begins there. */
const BEFORE = 64;
/**
 * White space that readers of addresses pass over, so that what stands around it could be in two parts. Written so that its length
 * needs no stack: megabytes of it made the guard fail, and so pass with `"onError": "pass"`.
 */
const GAP = /(?<!\s)\s{4096}\s*/g;
/** A cut is made within so many characters, where nothing that has no space can go on. */
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
    // Anything that begins between `start` and `end` is this part's. The place of `part` in the whole text is `from`.
    yield { start, end, from, part: text.slice(from, end + OVERLAP) };
    start = end;
  }
}

/** `base64`: what stands for bytes. `bytes`: one character for each of what is no text. */
export type Form = 'text' | 'base64' | 'bytes';

/** At once where that is no work; `name` is that of the member that has it, if any. */
type MapText = (text: string, name: string, form: Form) => string | Steps<string>;

/**
 * The value with each of its texts replaced, names of members included; the same object where nothing is. What a member called
 * `blob` or `data` has in base64 is looked at as the text that it stands for, too.
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

/** There is no text in it. */
const isPlain = (value: unknown): boolean => typeof value !== 'string' && typeof value !== 'object';

/** MCP: bytes of resources, images and sounds. */
const ENCODED = new Set(['blob', 'data']);

/** A text in which nothing else is, such as `//` of an address. */
const BASE64 = /^[A-Za-z0-9+/=\r\n]*$/;

function* mapEncoded(given: string, map: MapText, name: string): Steps<string> {
  const ofText = map(given, name, BASE64.test(given) ? 'base64' : 'text');
  const text = typeof ofText === 'string' ? ofText : yield* ofText;
  // Readers pass over white space, and some over whatever else is no base64.
  const bytes = Buffer.from(text.replaceAll('=', ''), 'base64');
  const [encoding, form] = isUtf8(bytes)
    ? (['utf8', 'text'] as const)
    : (['latin1', 'bytes'] as const);
  const decoded = bytes.toString(encoding);
  const ofBytes = map(decoded, name, form);
  const next = typeof ofBytes === 'string' ? ofBytes : yield* ofBytes;
  yield text.length + A_VALUE;
  return next === decoded ? text : Buffer.from(next, encoding).toString('base64');
}

// §26.4: other texts that readers make of one before they act on it: JSON within a text, addresses, Markdown, HTML.

export type ReadText = (text: string) => string;

const unescapeJson: ReadText = (text) =>
  text.replace(/\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))/g, (_, letter: string | undefined, code) =>
    letter === undefined ? toCharacter(code, 16) : (JSON_LETTERS[letter] ?? letter),
  );

const JSON_LETTERS: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

const decodePercent: ReadText = (text) =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, (encoded) =>
    Buffer.from(encoded.replaceAll('%', ''), 'hex').toString(),
  );

/** CommonMark "Backslash escapes". */
const unescapeMarkdown: ReadText = (text) => text.replace(/\\([!-/:-@[-`{-~])/g, '$1');

/** Reads each by its number, or by its name where it is one of ASCII. */
const decodeHtml: ReadText = (text) =>
  text.replace(CHARACTER, (_, decimal, hex, name, old) => {
    if (decimal !== undefined) return toCharacter(decimal, 10);
    return hex === undefined ? (NAMES[name ?? old] ?? '') : toCharacter(hex, 16);
  });

const toCharacter = (digits: string, base: number): string => {
  const code = Number.parseInt(digits, base);
  return code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd';
};

/** Names of characters in HTML, which have one case: what no browser reads hides nothing. */
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
/** Some names of old are read without a semicolon. */
const CHARACTER = new RegExp(
  `&(?:#0*(\\d{1,7});?|#[xX]0*([0-9a-fA-F]{1,6});?|(${Object.keys(NAMES).join('|')});|(amp|AMP|lt|LT|gt|GT|quot|QUOT))`,
  'g',
);

export interface Reading {
  readonly text: string;
  readonly read: ReadText;
}

/**
 * Each text that comes of it by one reader, or by two in a row, and is another; undefined for one that is none, so that others may
 * have their turn. `last` is what whoever reads it does at the end.
 */
function* listReadings(text: string, last?: ReadText): Generator<Reading | undefined, void> {
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
  for (const first of READERS) {
    const once = first(text);
    if (once === text) continue;
    yield* list(once, first);
    for (const second of READERS) yield* list(second(once), join(first, second));
  }
}

const READERS: readonly ReadText[] = [unescapeJson, decodePercent, unescapeMarkdown, decodeHtml];
const ESCAPE = /[\\%&]/;

const join =
  (first: ReadText, second: ReadText): ReadText =>
  (text) =>
    second(first(text));
