// What is wrong with a schema itself, in words for its author.
import type { ErrorObject } from 'ajv';
import { isObject } from '../../../platform/json.ts';
import { findNearestName } from '../../../platform/nearest-name.ts';
import { quote } from '../../../platform/text.ts';

const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'] as const;

const MAX_VALUE = 80;

/**
 * The first thing that a meta-schema refuses: where it stands, what stands there, and what must.
 * Undefined when there is nothing.
 */
export function describeSchemaMistake(
  owner: string,
  schema: object,
  errors: readonly ErrorObject[],
): string | undefined {
  const first = findDeepest(errors);
  if (first === undefined) return undefined;
  const path = first.instancePath.split('/').slice(1).map(unescapePointer);
  const value = path.reduce(getMember, schema);
  const place = `${owner}${path.map(toPathStep).join('')} is ${quote(value, MAX_VALUE)}`;
  if (isTypePlace(path) && (typeof value === 'string' || value === null)) {
    const near = findNearestType(String(value));
    const hint = near === undefined ? '' : ` Did you mean "${near}"?`;
    return `${place}; allowed are ${TYPES.join(', ')}.${hint}`;
  }
  const samePlace = errors.filter(({ instancePath }) => instancePath === first.instancePath);
  const descriptions = samePlace
    .filter(({ keyword }) => !SUMMARIES.has(keyword))
    .map(describeError);
  return `${place}; it ${[...new Set(descriptions)].join(', or ')}.`;
}

/** Of alternatives, the one that goes deepest is the one that was meant. */
function findDeepest(errors: readonly ErrorObject[]): ErrorObject | undefined {
  const countSegments = ({ instancePath }: ErrorObject) => instancePath.split('/').length;
  return [...errors].sort((one, other) => countSegments(other) - countSegments(one))[0];
}

/** Other languages write `int`, `str` or `bool`: the beginning of a type is enough to find it. */
const findNearestType = (text: string): string | undefined =>
  (text.length > 1 ? TYPES.find((type) => type.startsWith(text.toLowerCase())) : undefined) ??
  findNearestName(text, TYPES);

/** Where a keyword stands that nobody knows, and which was meant; undefined when it is not there. */
export function describeUnknownKeyword(
  owner: string,
  schema: object,
  keyword: string,
  known: readonly string[],
): string | undefined {
  const path = findPath(keyword, schema, []);
  if (path === undefined) return undefined;
  const near = findNearestName(keyword, known);
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`;
  return `${owner}${path.map(toPathStep).join('')}: there is no keyword "${keyword}".${hint}`;
}

/** Their members are names that authors choose. */
const SCHEMA_MAPS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'definitions',
  '$defs',
  'dependencies',
  'dependentSchemas',
]);
/** What stands below is no schema. */
const VALUE_KEYWORDS: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples']);

function findPath(
  keyword: string,
  schema: unknown,
  path: readonly string[],
): readonly string[] | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  if (Object.hasOwn(schema, keyword)) return path;
  for (const [key, below] of Object.entries(schema)) {
    if (VALUE_KEYWORDS.has(key)) continue;
    const keyPath = [...path, key];
    const found =
      SCHEMA_MAPS.has(key) && isObject(below)
        ? findFirst(Object.entries(below), ([name, member]) =>
            findPath(keyword, member, [...keyPath, name]),
          )
        : findPath(keyword, below, keyPath);
    if (found !== undefined) return found;
  }
  return undefined;
}

function findFirst<Item, Found>(
  items: readonly Item[],
  find: (item: Item) => Found | undefined,
): Found | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

const SUMMARIES: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf']);

const describeError = ({ message, params }: ErrorObject): string => {
  const allowed: unknown = params.allowedValues;
  const list = Array.isArray(allowed)
    ? `: ${allowed.map((value) => quote(value, MAX_VALUE)).join(', ')}`
    : '';
  return `${message ?? 'is not allowed'}${list}`;
};

const unescapePointer = (part: string): string => part.replaceAll('~1', '/').replaceAll('~0', '~');

const getMember = (value: unknown, key: string): unknown =>
  isObject(value) || Array.isArray(value)
    ? Object.entries(value).find(([name]) => name === key)?.[1]
    : undefined;

/** `.sides`, `[0]`, `["two words"]`. */
function toPathStep(key: string): string {
  if (/^\d+$/.test(key)) return `[${key}]`;
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

/** `type`, or one of its list; a member that is called so stands below `properties`. */
function isTypePlace(path: readonly string[]): boolean {
  const last = /^\d+$/.test(path.at(-1) ?? '') ? path.length - 2 : path.length - 1;
  return path[last] === 'type' && path[last - 1] !== 'properties';
}
