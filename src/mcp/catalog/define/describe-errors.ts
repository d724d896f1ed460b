// Describes mistakes: of values that a schema rejects, so that a model can correct them, and of authors in schemas and
// definitions.

import type { ErrorObject } from 'ajv';
import { DefinitionError } from '../../../errors/gateway-error.ts';
import { isObject } from '../../../platform/json.ts';
import { findNearestName } from '../../../platform/nearest-name.ts';
import { quote } from '../../../platform/text.ts';

/** One problem, and its position. */
interface Problem {
  /** JSON Pointer from the root of the value. */
  readonly path: string;
  /** The position in the schema. */
  readonly schemaPath: string;
  /** Follows the path in a line. */
  readonly description: string;
}

/** Enough for a model, and callers cannot make the service write long responses or log lines. */
const MAX_PROBLEMS = 20;
const MAX_PROBLEM = 300;
const MAX_VALUE = 100;

/** More than the number of problems shown: in schemas with alternatives, many errors form one problem. */
const MAX_ERRORS = 200;

/**
 * Returns one line per problem; `subject` is the name of the value. The errors come from Ajv with `verbose`, so that they include
 * schema and data.
 */
export function describeErrors(subject: string, errors: readonly ErrorObject[]): readonly string[] {
  const problems: Problem[] = [];
  for (const error of errors.slice(0, MAX_ERRORS)) {
    const isSummary = SUMMARIES.has(error.keyword);
    const hasInner = isSummary || ALTERNATIVES.has(error.keyword);
    const inner = hasInner ? findInnerProblems(problems, error) : [];
    if (inner.length === 0) problems.push(toProblem(error));
    else if (!isSummary) {
      problems.splice(-inner.length, inner.length, mergeAlternatives(subject, error, inner));
    }
  }
  const lines = [...new Set(problems.map((problem) => toLine(subject, problem)))];
  return lines.length > MAX_PROBLEMS ? [...lines.slice(0, MAX_PROBLEMS), 'and more'] : lines;
}

const toLine = (subject: string, { path, description }: Problem) =>
  truncate(`${subject}${truncate(path, 100)} ${description}`, MAX_PROBLEM);

/** Keywords whose error repeats details of the errors before it. */
const ALTERNATIVES = new Set(['anyOf', 'oneOf']);
const SUMMARIES = new Set(['if', 'propertyNames', 'contains']);

/** The immediately preceding problems from schemas inside the error's keyword, or that they refer to. */
function findInnerProblems(problems: readonly Problem[], error: ErrorObject): readonly Problem[] {
  const { instancePath, schemaPath, keyword, params } = error;
  const around = schemaPath.slice(0, schemaPath.lastIndexOf('/') + 1);
  const inside = `${keyword === 'if' ? around + params.failingKeyword : schemaPath}/`;
  const isInner = (problem: Problem) =>
    `${problem.path}/`.startsWith(`${instancePath}/`) &&
    (problem.schemaPath.startsWith(inside) || !problem.schemaPath.startsWith(around));
  return problems.slice(problems.findLastIndex((problem) => !isInner(problem)) + 1);
}

/** Alternatives form one problem, since one of them has to match. */
function mergeAlternatives(
  subject: string,
  { instancePath: path, schemaPath }: ErrorObject,
  inner: readonly Problem[],
): Problem {
  const isFlat = inner.every((problem) => problem.path === path);
  const descriptions = inner.map((problem) =>
    isFlat ? problem.description : toLine(subject, problem),
  );
  const merged = [...new Set(descriptions)].join(', or ');
  return { path, schemaPath, description: isFlat ? merged : `has none of its forms: ${merged}` };
}

function toProblem(error: ErrorObject): Problem {
  const { instancePath: path, schemaPath, keyword, params } = error;
  if (keyword === 'required') {
    const expected = describeMember(error.parentSchema, params.missingProperty);
    // RFC 6901.
    const step = String(params.missingProperty).replaceAll('~', '~0').replaceAll('/', '~1');
    return {
      path: `${path}/${step}`,
      schemaPath,
      description: expected === undefined ? 'is missing' : `is missing; it ${expected}`,
    };
  }
  const description = DESCRIPTIONS[keyword]?.(error) ?? error.message ?? 'does not fit its schema';
  return { path, schemaPath, description };
}

/** For keywords whose message in Ajv omits the allowed values. */
const DESCRIPTIONS: Readonly<Record<string, (error: ErrorObject) => string>> = {
  type: ({ params, data }) => `must be ${listTypes(params.type)}, not ${describeValue(data)}`,
  enum: ({ params }) => describeEnum(params.allowedValues),
  const: ({ params }) => `must be ${quote(params.allowedValue, MAX_VALUE)}`,
  additionalProperties: (error) => describeUnknownMember(error, error.params.additionalProperty),
  unevaluatedProperties: (error) => describeUnknownMember(error, error.params.unevaluatedProperty),
  propertyNames: ({ params }) =>
    `must not have the member ${quote(params.propertyName, MAX_VALUE)}`,
  'false schema': () => 'is not allowed',
  oneOf: () => 'must have exactly one of its forms',
  anyOf: () => 'has none of its forms',
};

function describeUnknownMember({ parentSchema, data }: ErrorObject, name: unknown) {
  const refused = `must not have the member ${quote(name, MAX_VALUE)}`;
  const properties = isObject(parentSchema?.properties) ? Object.keys(parentSchema.properties) : [];
  const free = properties.filter((property) => !isObject(data) || !Object.hasOwn(data, property));
  const meant = findNearestName(String(name), free);
  if (meant !== undefined) return `${refused}; did you mean ${quote(meant, MAX_VALUE)}?`;
  return properties.length === 0 ? refused : `${refused}; it may have ${properties.join(', ')}`;
}

/** Describes a member by the schema of its object. */
function describeMember(schema: ErrorObject['parentSchema'], name: unknown) {
  const member = isObject(schema?.properties) ? schema.properties[String(name)] : undefined;
  if (!isObject(member)) return undefined;
  if (Array.isArray(member.enum)) return describeEnum(member.enum);
  if ('const' in member) return `must be ${quote(member.const, MAX_VALUE)}`;
  return 'type' in member ? `must be ${listTypes(member.type)}` : undefined;
}

const describeEnum = (values: unknown) =>
  `must be one of ${Array.isArray(values) ? values.map((value) => quote(value, MAX_VALUE)).join(', ') : quote(values, MAX_VALUE)}`;

const listTypes = (type: unknown) =>
  (Array.isArray(type) ? type : [type])
    .map((name) => (name === 'null' ? 'null' : `${/^[aio]/.test(name) ? 'an' : 'a'} ${name}`))
    .join(' or ');

/** Numbers and other short values are shown; for others only the type. */
function describeValue(value: unknown) {
  if (typeof value === 'string') return 'a string';
  if (Array.isArray(value)) return 'an array';
  return isObject(value) ? 'an object' : quote(value, MAX_VALUE);
}

const truncate = (words: string, length: number) =>
  words.length > length ? `${words.slice(0, length)}…` : words;

// Describes mistakes in a schema for its author.

const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'] as const;

const MAX_SHOWN = 80;

/**
 * The first part of the schema that the meta-schema rejects: its position, its value, and the allowed values. Undefined if the
 * schema is valid.
 */
export function describeSchemaMistake(
  owner: string,
  schema: object,
  errors: readonly ErrorObject[],
): string | undefined {
  const countSegments = ({ instancePath }: ErrorObject) => instancePath.split('/').length;
  // The author most likely meant the alternative with the deepest error.
  const [first] = errors.toSorted((one, other) => countSegments(other) - countSegments(one));
  if (first === undefined) return undefined;
  const path = first.instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const value = path.reduce(getMember, schema);
  const place = `${owner}${path.map(toPathStep).join('')} is ${quote(value, MAX_SHOWN)}`;
  if (isTypePlace(path) && (typeof value === 'string' || value === null))
    return `${place}; allowed are ${TYPES.join(', ')}.${suggest(findNearestType(String(value)))}`;
  const samePlace = errors.filter(({ instancePath }) => instancePath === first.instancePath);
  const descriptions = samePlace
    .filter(({ keyword }) => !COMBINATIONS.has(keyword))
    .map(describeError);
  return `${place}; it ${[...new Set(descriptions)].join(', or ')}.`;
}

/** Other languages write `int`, `str` or `bool`: a type's first letters identify it. */
const findNearestType = (text: string) =>
  (text.length > 1 ? TYPES.find((type) => type.startsWith(text.toLowerCase())) : undefined) ??
  findNearestName(text, TYPES);

/** Gives the position of an unknown keyword, and the nearest known one; undefined if it cannot be found. */
export function describeUnknownKeyword(
  owner: string,
  schema: object,
  keyword: string,
  known: readonly string[],
): string | undefined {
  const path = findPath(keyword, schema, []);
  if (path === undefined) return undefined;
  const hint = suggest(findNearestName(keyword, known));
  return `${owner}${path.map(toPathStep).join('')}: there is no keyword "${keyword}".${hint}`;
}

const suggest = (near: string | undefined) =>
  near === undefined ? '' : ` Did you mean "${near}"?`;

/** Keywords that map names to schemas: authors choose the names, so these are not keywords. */
const SCHEMA_MAPS = new Set([
  'properties',
  'patternProperties',
  'definitions',
  '$defs',
  'dependencies',
  'dependentSchemas',
]);
/** Keywords whose values contain no schemas. */
const VALUE_KEYWORDS = new Set(['enum', 'const', 'default', 'examples']);

/** `isMap`: the members are schemas, and their names are not keywords. */
function findPath(
  keyword: string,
  schema: unknown,
  path: readonly string[],
  isMap = false,
): readonly string[] | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  if (!isMap && Object.hasOwn(schema, keyword)) return path;
  for (const [key, below] of Object.entries(schema)) {
    if (!isMap && VALUE_KEYWORDS.has(key)) continue;
    const isMapBelow = !isMap && SCHEMA_MAPS.has(key) && isObject(below);
    const found = findPath(keyword, below, [...path, key], isMapBelow);
    if (found !== undefined) return found;
  }
  return undefined;
}

const COMBINATIONS = new Set(['anyOf', 'oneOf', 'allOf']);

const describeError = ({ message, params }: ErrorObject) => {
  const allowed: unknown = params.allowedValues;
  const list = Array.isArray(allowed)
    ? `: ${allowed.map((value) => quote(value, MAX_SHOWN)).join(', ')}`
    : '';
  return `${message ?? 'is not allowed'}${list}`;
};

const getMember = (value: unknown, key: string): unknown =>
  isObject(value) || Array.isArray(value)
    ? Object.entries(value).find(([name]) => name === key)?.[1]
    : undefined;

/** `.sides`, `[0]`, `["two words"]`. */
function toPathStep(key: string) {
  if (/^\d+$/.test(key)) return `[${key}]`;
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

/** True for `type`, or an entry of its list; a member with this name is below `properties`. */
function isTypePlace(path: readonly string[]) {
  const last = /^\d+$/.test(path.at(-1) ?? '') ? path.length - 2 : path.length - 1;
  return path[last] === 'type' && path[last - 1] !== 'properties';
}

// Checks an author's definition at run time, for authors who do not use TypeScript.

const TYPE_NAMES = { text: 'a string that is not empty', function: 'a function' } as const;

/**
 * @param kind The kind of definition: `Tool`.
 * @param members All allowed members.
 * @param required The required members and their types; messages identify the definition by the first one.
 * @throws DefinitionError if a member is missing or unknown.
 */
export function checkMembers(
  kind: string,
  definition: unknown,
  members: readonly string[],
  required: Readonly<Record<string, keyof typeof TYPE_NAMES>> = {},
): void {
  if (!isObject(definition))
    throw new DefinitionError(
      `${kind}: the definition is ${describeType(definition)}; it must be an object.`,
    );
  const [nameMember = ''] = Object.keys(required);
  const name = definition[nameMember];
  const owner = typeof name === 'string' && name !== '' ? `${kind} ${name}` : kind;
  const unknown = Object.keys(definition).filter((member) => !members.includes(member));

  for (const [member, type] of Object.entries(required)) {
    const value = definition[member];
    if (
      type === 'function' ? typeof value === 'function' : typeof value === 'string' && value !== ''
    )
      continue;
    const state = value === undefined ? 'missing' : value === '' ? 'empty' : describeType(value);
    const near = value === undefined ? findNearestName(member, unknown) : undefined;
    const hint = near === undefined ? '' : ` There is "${near}": did you misspell it?`;
    throw new DefinitionError(
      `${owner}: ${member} is ${state}; it must be ${TYPE_NAMES[type]}.${hint}`,
    );
  }
  const [first] = unknown;
  if (first === undefined) return;
  const hint = suggest(findNearestName(first, members));
  throw new DefinitionError(
    `${owner}: unknown member "${first}".${hint} Allowed: ${members.join(', ')}.`,
  );
}

/** Names the type of a value for authors: `a string`, `nothing`. */
export function describeType(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
