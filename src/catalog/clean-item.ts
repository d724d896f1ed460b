// §18.2: what a server says of its tools is read by people and models: nothing in it is invisible.

import type { RawItem } from '../mcp/catalog/catalog.ts';
import { computeOnce } from '../platform/bounded-map.ts';
import { createUnseenPattern, IGNORABLE } from '../platform/invisible.ts';
import { isObject } from '../platform/json.ts';

interface CleanItem {
  /** With texts that hide nothing. The same object where there is nothing to do. */
  readonly item: RawItem;
  /** A name or value that calls must have exactly so, and that has characters which cannot be seen. */
  readonly hiding: string | undefined;
  /** A name or value that looks like another one. */
  readonly lookAlike: string | undefined;
  /** It was not read: that would hold up everybody else. */
  readonly isTooLarge: boolean;
}

/** Characters of an item as JSON. No model could use one that is larger, and each is read at one go. */
export const MAX_ITEM = 131_072;

/** Characters of a description, a title. */
const MAX_TEXT: Readonly<Record<string, number>> = { description: 16_384, title: 256 };
/** That of a resource is read by people alone; it is called by its URI. */
const MAX_RESOURCE_TEXT: Readonly<Record<string, number>> = { ...MAX_TEXT, name: 256 };

/** Shorter than this no text in it is too long. */
const MIN_BOUND = 256;
const BEYOND_ASCII = /[^\p{ASCII}]/u;

export const cleanItem = computeOnce((item: RawItem): CleanItem => {
  const text = JSON.stringify(item);
  if (text.length > MAX_ITEM) return { ...NOTHING_FOUND, item, isTooLarge: true };
  const mayHide = MAY_HIDE.test(text);
  const isAscii = !BEYOND_ASCII.test(text);
  if (!mayHide && isAscii && text.length <= MIN_BOUND) return { ...NOTHING_FOUND, item };
  const isResource = 'uri' in item || 'uriTemplate' in item;
  const reading: Reading = {
    maxima: isResource ? MAX_RESOURCE_TEXT : MAX_TEXT,
    mayHide,
    isAscii,
    hiding: undefined,
    lookAlike: undefined,
  };
  const members = Object.entries(item).map(([key, value]) => {
    judgeName(reading, key);
    const place = key === 'inputSchema' || key === 'outputSchema' ? 'schema' : 'item';
    return [key, AS_IT_IS.has(key) ? value : readValue(reading, key, value, place)];
  });
  const { hiding, lookAlike } = reading;
  return { item: Object.fromEntries(members), hiding, lookAlike, isTooLarge: false };
});

const NOTHING_FOUND = { hiding: undefined, lookAlike: undefined, isTooLarge: false };

interface Reading {
  readonly maxima: Readonly<Record<string, number>>;
  readonly mayHide: boolean;
  readonly isAscii: boolean;
  hiding: string | undefined;
  lookAlike: string | undefined;
}

/** The context of a value. */
type Place =
  | 'item'
  | 'schema'
  /** An object whose members are names, each of a schema. */
  | 'schemas'
  /** A value that callers may put in: as it is, or not at all. */
  | 'value'
  /** An example that callers may begin with. */
  | 'example';

/** Read by programs; URIs are judged by themselves. */
const AS_IT_IS = new Set(['_meta', 'icons', 'uri', 'uriTemplate']);

/** JSON Schema: what stands in the members of a schema. */
const SCHEMA_PLACES: ReadonlyMap<string, Place> = new Map([
  ['properties', 'schemas'],
  ['patternProperties', 'schemas'],
  ['dependentSchemas', 'schemas'],
  ['$defs', 'schemas'],
  ['definitions', 'schemas'],
  ['default', 'example'],
  ['examples', 'example'],
  ...['enum', 'const', 'required', 'dependentRequired', 'type', 'format', 'x-mcp-header'].map(
    (key) => [key, 'value'] as const,
  ),
  ...['$ref', '$dynamicRef', '$id', '$anchor', '$dynamicAnchor', '$schema'].map(
    (key) => [key, 'value'] as const,
  ),
]);

function readValue(reading: Reading, key: string, value: unknown, place: Place): unknown {
  if (typeof value === 'string') return readText(reading, key, value, place);
  if (Array.isArray(value)) return value.map((one) => readValue(reading, key, one, place));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      judgeName(reading, name);
      return [name, readValue(reading, name, member, findPlace(name, place))];
    }),
  );
}

function findPlace(name: string, place: Place): Place {
  if (place === 'schemas') return 'schema';
  return place === 'schema' ? (SCHEMA_PLACES.get(name) ?? 'schema') : place;
}

function readText(reading: Reading, key: string, text: string, place: Place): string {
  if (place === 'example') return text.replace(HIDDEN_IN_VALUE, '');
  const isName = place === 'item' && key === 'name' && reading.maxima.name === undefined;
  if (place === 'value' || isName) {
    judgeName(reading, text);
    return text;
  }
  if (place === 'schema' && key === 'pattern') {
    if (hasHidden(text, HIDDEN_IN_PATTERN)) reading.hiding ??= text;
    return text;
  }
  const max = Object.hasOwn(reading.maxima, key) ? reading.maxima[key] : undefined;
  return cutText(reading.mayHide ? text.replace(HIDDEN_IN_TEXT, '') : text, max ?? text.length);
}

function judgeName(reading: Reading, name: string): void {
  if (reading.mayHide && hasHidden(name)) reading.hiding ??= name;
  else if (!reading.isAscii && LOOKS_LIKE_ANOTHER.test(name)) reading.lookAlike ??= name;
}

export const cleanForeignText = (text: string, max: number): string =>
  cutText(text.replace(HIDDEN_IN_TEXT, ''), max);

const cutText = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max - 1).replace(HALF_AT_END, '')}…`;

const HALF_AT_END = /[\ud800-\udbff]$/;

// §18.2: characters that people do not see, and models read.

/** Scripts whose words are written with joiners. */
const JOINING = [
  ...['Arab', 'Syrc', 'Mong', 'Nkoo', 'Deva', 'Beng', 'Guru', 'Gujr', 'Orya', 'Taml', 'Telu'],
  ...['Knda', 'Mlym', 'Sinh', 'Khmr', 'Mymr', 'Tibt'],
].map((script) => `\\p{scx=${script}}`);

const PICTURE = '\\p{Extended_Pictographic}';
const BEFORE_JOINER = `[${JOINING.join('')}${PICTURE}\\p{Emoji_Modifier}\\ufe0f]`;
const AFTER_JOINER = `[${JOINING.join('')}${PICTURE}]`;

/** Needed by emoji, and by languages such as Persian and Hindi: only where it does something. */
const NEEDED = [
  `(?<=${BEFORE_JOINER})[\\u200c\\u200d](?=${AFTER_JOINER})`,
  `(?<=${PICTURE})[\\ufe0e\\ufe0f]`,
  '(?<=[0-9#*])\\ufe0f(?=\\u20e3)',
].join('|');

/** Control characters but for line feed and tab, and what else hides. */
const HIDDEN_IN_TEXT = createUnseenPattern(`\\p{Cc}${IGNORABLE}`, `[\\t\\n]|${NEEDED}`);

/** The same for values, which may be line ends of any kind. */
const HIDDEN_IN_VALUE = createUnseenPattern(`\\p{Cc}${IGNORABLE}`, `[\\t\\n\\r]|${NEEDED}`);

/** The same for regular expressions, which may name controls. */
const HIDDEN_IN_PATTERN = createUnseenPattern(IGNORABLE, NEEDED);

/** True if JSON text may have any of them: there the first controls are escaped. */
const MAY_HIDE = new RegExp(`\\\\u00[01]|\\\\[bfr]|[\\u007f-\\u009f${IGNORABLE}]`, 'u');

export const hasHidden = (text: string, hidden: RegExp = HIDDEN_IN_VALUE): boolean =>
  text.search(hidden) !== -1;

/** UTS 39: a word in several of the scripts whose letters look alike, or letters that are others of ASCII. */
const LOOKS_LIKE_ANOTHER = new RegExp(
  [
    '\\p{sc=Latn}[\\p{sc=Cyrl}\\p{sc=Grek}\\p{sc=Armn}\\p{sc=Cher}]',
    '[\\p{sc=Cyrl}\\p{sc=Grek}\\p{sc=Armn}\\p{sc=Cher}]\\p{sc=Latn}',
    '\\p{sc=Cyrl}\\p{sc=Grek}|\\p{sc=Grek}\\p{sc=Cyrl}',
    '[\\uff10-\\uff19\\uff21-\\uff3a\\uff41-\\uff5a\\u{1d400}-\\u{1d7ff}]',
  ].join('|'),
  'u',
);
