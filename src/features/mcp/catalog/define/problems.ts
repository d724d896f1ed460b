// What a schema refuses in a value, in words by which a model can mend it.
import type { ErrorObject } from 'ajv';
import { isObject } from '../../../../core/json.ts';
import { findNearestName } from '../../../../core/nearest-name.ts';

/** One thing that is wrong, and where. */
interface Problem {
  /** JSON Pointer from the value. */
  readonly at: string;
  /** Where in the schema. */
  readonly by: string;
  /** What is said behind the place. */
  readonly words: string;
}

/** More is no help to a model, and nobody can make the service, or its log, recite at length. */
const MAX_PROBLEMS = 20;
const MAX_PROBLEM = 300;

/** Of alternatives many errors make one problem. */
const MAX_ERRORS = 200;

/**
 * One line each; `subject` is what they call the value. The errors are Ajv's, with `verbose`, so
 * that they carry schema and data.
 */
export function describeErrors(subject: string, errors: readonly ErrorObject[]): readonly string[] {
  const found = problemsIn(subject, errors.slice(0, MAX_ERRORS));
  const lines = [...new Set(found.map((one) => lineOf(subject, one)))];
  return lines.length > MAX_PROBLEMS ? [...lines.slice(0, MAX_PROBLEMS), 'and more'] : lines;
}

const lineOf = (subject: string, { at, words }: Problem): string =>
  cut(`${subject}${cut(at, 100)} ${words}`, MAX_PROBLEM);

/** Keywords that repeat what errors before them say in detail. */
const ALTERNATIVES = new Set(['anyOf', 'oneOf']);
const SUMMARIES = new Set(['if', 'propertyNames', 'contains']);

function problemsIn(subject: string, errors: readonly ErrorObject[]): readonly Problem[] {
  const found: Problem[] = [];
  for (const error of errors) {
    const isSummary = SUMMARIES.has(error.keyword);
    const inner = isSummary || ALTERNATIVES.has(error.keyword) ? innerOf(found, error) : [];
    if (inner.length === 0) found.push(problemOf(error));
    else if (!isSummary) found.splice(-inner.length, inner.length, oneOf(subject, error, inner));
  }
  return found;
}

/** What was found just before by the schemas inside the error's keyword, or that they refer to. */
function innerOf(found: readonly Problem[], error: ErrorObject): readonly Problem[] {
  const { instancePath, schemaPath, keyword, params } = error;
  const around = schemaPath.slice(0, schemaPath.lastIndexOf('/') + 1);
  const inside = `${keyword === 'if' ? around + params.failingKeyword : schemaPath}/`;
  const isInner = ({ at, by }: Problem) =>
    `${at}/`.startsWith(`${instancePath}/`) && (by.startsWith(inside) || !by.startsWith(around));
  return found.slice(found.findLastIndex((one) => !isInner(one)) + 1);
}

/** One of them would have to hold, so they are one problem. */
function oneOf(
  subject: string,
  { instancePath: at, schemaPath: by }: ErrorObject,
  inner: readonly Problem[],
): Problem {
  const isFlat = inner.every((one) => one.at === at);
  const said = inner.map((one) => (isFlat ? one.words : lineOf(subject, one)));
  const words = [...new Set(said)].join(', or ');
  return { at, by, words: isFlat ? words : `has none of its forms: ${words}` };
}

function problemOf(error: ErrorObject): Problem {
  const { instancePath: at, schemaPath: by, keyword, params } = error;
  if (keyword === 'required') {
    const wanted = memberOf(error.parentSchema, params.missingProperty);
    const words = wanted === undefined ? 'is missing' : `is missing; it ${wanted}`;
    return { at: `${at}/${pointer(params.missingProperty)}`, by, words };
  }
  return { at, by, words: (WORDS[keyword] ?? ajvWords)(error) };
}

const ajvWords = ({ message }: ErrorObject): string => message ?? 'does not fit its schema';

/** Where Ajv's own words leave out what is allowed. */
const WORDS: Readonly<Record<string, (error: ErrorObject) => string>> = {
  type: ({ params, data }) => `must be ${typeNames(params.type)}, not ${shown(data)}`,
  enum: ({ params }) => mustBeOneOf(params.allowedValues),
  const: ({ params }) => `must be ${json(params.allowedValue)}`,
  additionalProperties: (error) => unknownMember(error, error.params.additionalProperty),
  unevaluatedProperties: (error) => unknownMember(error, error.params.unevaluatedProperty),
  propertyNames: ({ params }) => `must not have the member ${json(params.propertyName)}`,
  'false schema': () => 'is not allowed',
  oneOf: () => 'must have exactly one of its forms',
  anyOf: () => 'has none of its forms',
};

function unknownMember({ parentSchema, data }: ErrorObject, name: unknown): string {
  const refused = `must not have the member ${json(name)}`;
  const properties = isObject(parentSchema?.properties) ? Object.keys(parentSchema.properties) : [];
  const free = properties.filter((one) => !isObject(data) || !Object.hasOwn(data, one));
  const meant = findNearestName(String(name), free);
  if (meant !== undefined) return `${refused}; did you mean ${json(meant)}?`;
  return properties.length === 0 ? refused : `${refused}; it may have ${properties.join(', ')}`;
}

/** What the schema of an object says of one of its members. */
function memberOf(schema: ErrorObject['parentSchema'], name: unknown): string | undefined {
  const member = isObject(schema?.properties) ? schema.properties[String(name)] : undefined;
  if (!isObject(member)) return undefined;
  if (Array.isArray(member.enum)) return mustBeOneOf(member.enum);
  if ('const' in member) return `must be ${json(member.const)}`;
  return 'type' in member ? `must be ${typeNames(member.type)}` : undefined;
}

const mustBeOneOf = (values: unknown): string =>
  `must be one of ${Array.isArray(values) ? values.map(json).join(', ') : json(values)}`;

const typeNames = (type: unknown): string =>
  (Array.isArray(type) ? type : [type])
    .map((one) => (one === 'null' ? 'null' : `${/^[aio]/.test(one) ? 'an' : 'a'} ${one}`))
    .join(' or ');

/** Numbers and the like as they are; of the rest the type is enough. */
function shown(value: unknown): string {
  if (typeof value === 'string') return 'a string';
  if (Array.isArray(value)) return 'an array';
  return isObject(value) ? 'an object' : json(value);
}

const json = (value: unknown): string => cut(JSON.stringify(value) ?? 'undefined', 100);

/** RFC 6901. */
const pointer = (name: unknown): string => String(name).replaceAll('~', '~0').replaceAll('/', '~1');

const cut = (words: string, length: number) =>
  words.length > length ? `${words.slice(0, length)}…` : words;
