// §18.2: people and models read the server's descriptions of its tools, so nothing in them may be invisible.

import type { RawItem } from '../mcp/catalog/catalog.ts';
import { computeOnce } from '../platform/bounded-map.ts';
import { createUnseenPattern, IGNORABLE } from '../platform/invisible.ts';
import { isObject } from '../platform/json.ts';

interface CleanItem {
  /** A copy whose text is free of invisible characters. The same object if nothing needs to be removed. */
  readonly item: RawItem;
  /** A name or value that contains invisible characters, although calls must repeat it exactly. */
  readonly hiding: string | undefined;
  /** A name or value that looks like another one. */
  readonly lookAlike: string | undefined;
  /** True if the item was not read, since that would hold up all other callers. */
  readonly isTooLarge: boolean;
}

/** Maximum size of an item as JSON, in characters. No model could use a larger one, and each item is read without a break. */
export const MAX_ITEM = 131_072;

/** Maximum length of a description and of a title, in characters. */
const MAX_TEXT: Readonly<Record<string, number>> = { description: 16_384, title: 256 };
/** The name of a resource is only read by people, since the resource is requested by its URI. */
const MAX_RESOURCE_TEXT: Readonly<Record<string, number>> = { ...MAX_TEXT, name: 256 };

/** In an item shorter than this, no text can be too long. */
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

/** The position of a value within an item, which determines how the value is read. */
type Place =
  | 'item'
  | 'schema'
  /** An object whose members are schemas. */
  | 'schemas'
  /** A value that callers may pass: kept unchanged, or not at all. */
  | 'value'
  /** An example that callers may start from. */
  | 'example';

/** Members that are kept unchanged: programs read them, and URIs are checked separately. */
const AS_IT_IS = new Set(['_meta', 'icons', 'uri', 'uriTemplate']);

/** JSON Schema: the kind of value in each member of a schema. */
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

// §18.2: invisible characters, which people cannot see but models can read.

/** Scripts in which words contain joiners. */
const JOINING = [
  ...['Arab', 'Syrc', 'Mong', 'Nkoo', 'Deva', 'Beng', 'Guru', 'Gujr', 'Orya', 'Taml', 'Telu'],
  ...['Knda', 'Mlym', 'Sinh', 'Khmr', 'Mymr', 'Tibt'],
].map((script) => `\\p{scx=${script}}`);

const PICTURE = '\\p{Extended_Pictographic}';
const BEFORE_JOINER = `[${JOINING.join('')}${PICTURE}\\p{Emoji_Modifier}\\ufe0f]`;
const AFTER_JOINER = `[${JOINING.join('')}${PICTURE}]`;

/** Characters that emoji, and languages such as Persian and Hindi, need: kept only where they have an effect. */
const NEEDED = [
  `(?<=${BEFORE_JOINER})[\\u200c\\u200d](?=${AFTER_JOINER})`,
  `(?<=${PICTURE})[\\ufe0e\\ufe0f]`,
  '(?<=[0-9#*])\\ufe0f(?=\\u20e3)',
].join('|');

/** Control characters except line feed and tab, and other invisible characters. */
const HIDDEN_IN_TEXT = createUnseenPattern(`\\p{Cc}${IGNORABLE}`, `[\\t\\n]|${NEEDED}`);

/** The same characters for values, except that any kind of line break may occur in them. */
const HIDDEN_IN_VALUE = createUnseenPattern(`\\p{Cc}${IGNORABLE}`, `[\\t\\n\\r]|${NEEDED}`);

/** The same characters for regular expressions, except that these may name control characters. */
const HIDDEN_IN_PATTERN = createUnseenPattern(IGNORABLE, NEEDED);

/** True if JSON text may contain any of these characters: the C0 controls are escaped in JSON. */
const MAY_HIDE = new RegExp(`\\\\u00[01]|\\\\[bfr]|[\\u007f-\\u009f${IGNORABLE}]`, 'u');

export const hasHidden = (text: string, hidden: RegExp = HIDDEN_IN_VALUE): boolean =>
  text.search(hidden) !== -1;

/** UTS 39: a word that mixes scripts whose letters look alike, or letters that resemble ASCII ones. */
const LOOKS_LIKE_ANOTHER = new RegExp(
  [
    '\\p{sc=Latn}[\\p{sc=Cyrl}\\p{sc=Grek}\\p{sc=Armn}\\p{sc=Cher}]',
    '[\\p{sc=Cyrl}\\p{sc=Grek}\\p{sc=Armn}\\p{sc=Cher}]\\p{sc=Latn}',
    '\\p{sc=Cyrl}\\p{sc=Grek}|\\p{sc=Grek}\\p{sc=Cyrl}',
    '[\\uff10-\\uff19\\uff21-\\uff3a\\uff41-\\uff5a\\u{1d400}-\\u{1d7ff}]',
  ].join('|'),
  'u',
);
