// What a schema refuses in a value, in words by which a model can mend it.
import type { ErrorObject } from 'ajv';
import { isObject } from '../../../platform/json.ts';
import { findNearestName } from '../../../platform/nearest-name.ts';
import { quote } from '../../../platform/text.ts';

/** One thing that is wrong, and where. */
interface Problem {
  /** JSON Pointer from the value. */
  readonly path: string;
  /** Where in the schema. */
  readonly schemaPath: string;
  /** What follows the path in a line. */
  readonly description: string;
}

/** A model needs no more, and no caller can make the service write long answers or log lines. */
const MAX_PROBLEMS = 20;
const MAX_PROBLEM = 300;
const MAX_VALUE = 100;

/** More than problems are shown: where a schema has alternatives, many errors are one problem. */
const MAX_ERRORS = 200;

/**
 * One line each; `subject` is what they call the value. The errors are Ajv's, with `verbose`, so
 * that they carry schema and data.
 */
export function describeErrors(subject: string, errors: readonly ErrorObject[]): readonly string[] {
  const problems = collectProblems(subject, errors.slice(0, MAX_ERRORS));
  const lines = [...new Set(problems.map((problem) => toLine(subject, problem)))];
  return lines.length > MAX_PROBLEMS ? [...lines.slice(0, MAX_PROBLEMS), 'and more'] : lines;
}

const toLine = (subject: string, { path, description }: Problem): string =>
  truncate(`${subject}${truncate(path, 100)} ${description}`, MAX_PROBLEM);

/** Keywords that repeat what errors before them say in detail. */
const ALTERNATIVES = new Set(['anyOf', 'oneOf']);
const SUMMARIES = new Set(['if', 'propertyNames', 'contains']);

function collectProblems(subject: string, errors: readonly ErrorObject[]): readonly Problem[] {
  const problems: Problem[] = [];
  for (const error of errors) {
    const isSummary = SUMMARIES.has(error.keyword);
    const hasInner = isSummary || ALTERNATIVES.has(error.keyword);
    const inner = hasInner ? findInnerProblems(problems, error) : [];
    if (inner.length === 0) problems.push(toProblem(error));
    else if (!isSummary) {
      problems.splice(-inner.length, inner.length, mergeAlternatives(subject, error, inner));
    }
  }
  return problems;
}

/** What was found just before by the schemas inside the error's keyword, or that they refer to. */
function findInnerProblems(problems: readonly Problem[], error: ErrorObject): readonly Problem[] {
  const { instancePath, schemaPath, keyword, params } = error;
  const around = schemaPath.slice(0, schemaPath.lastIndexOf('/') + 1);
  const inside = `${keyword === 'if' ? around + params.failingKeyword : schemaPath}/`;
  const isInner = (problem: Problem) =>
    `${problem.path}/`.startsWith(`${instancePath}/`) &&
    (problem.schemaPath.startsWith(inside) || !problem.schemaPath.startsWith(around));
  return problems.slice(problems.findLastIndex((problem) => !isInner(problem)) + 1);
}

/** One of them would have to hold, so they are one problem. */
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
    return {
      path: `${path}/${escapePointer(params.missingProperty)}`,
      schemaPath,
      description: expected === undefined ? 'is missing' : `is missing; it ${expected}`,
    };
  }
  return { path, schemaPath, description: (DESCRIPTIONS[keyword] ?? describeByAjv)(error) };
}

const describeByAjv = ({ message }: ErrorObject): string => message ?? 'does not fit its schema';

/** Where Ajv's own words leave out what is allowed. */
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

function describeUnknownMember({ parentSchema, data }: ErrorObject, name: unknown): string {
  const refused = `must not have the member ${quote(name, MAX_VALUE)}`;
  const properties = isObject(parentSchema?.properties) ? Object.keys(parentSchema.properties) : [];
  const free = properties.filter((property) => !isObject(data) || !Object.hasOwn(data, property));
  const meant = findNearestName(String(name), free);
  if (meant !== undefined) return `${refused}; did you mean ${quote(meant, MAX_VALUE)}?`;
  return properties.length === 0 ? refused : `${refused}; it may have ${properties.join(', ')}`;
}

/** What the schema of an object says of one of its members. */
function describeMember(schema: ErrorObject['parentSchema'], name: unknown): string | undefined {
  const member = isObject(schema?.properties) ? schema.properties[String(name)] : undefined;
  if (!isObject(member)) return undefined;
  if (Array.isArray(member.enum)) return describeEnum(member.enum);
  if ('const' in member) return `must be ${quote(member.const, MAX_VALUE)}`;
  return 'type' in member ? `must be ${listTypes(member.type)}` : undefined;
}

const describeEnum = (values: unknown): string =>
  `must be one of ${Array.isArray(values) ? values.map((value) => quote(value, MAX_VALUE)).join(', ') : quote(values, MAX_VALUE)}`;

const listTypes = (type: unknown): string =>
  (Array.isArray(type) ? type : [type])
    .map((name) => (name === 'null' ? 'null' : `${/^[aio]/.test(name) ? 'an' : 'a'} ${name}`))
    .join(' or ');

/** Numbers and the like as they are; of the rest the type is enough. */
function describeValue(value: unknown): string {
  if (typeof value === 'string') return 'a string';
  if (Array.isArray(value)) return 'an array';
  return isObject(value) ? 'an object' : quote(value, MAX_VALUE);
}

/** RFC 6901. */
const escapePointer = (name: unknown): string =>
  String(name).replaceAll('~', '~0').replaceAll('/', '~1');

const truncate = (words: string, length: number) =>
  words.length > length ? `${words.slice(0, length)}…` : words;
