// Compiles authors' JSON Schemas, once, when a tool is defined.
import type { Ajv, ErrorObject, Options, ValidateFunction } from 'ajv';
import { DefinitionError } from '../../../errors/gateway-error.ts';
import { getMessage } from '../../../platform/error-code.ts';
import { isObject } from '../../../platform/json.ts';
import { createLoader } from '../../../platform/load-package.ts';
import type { ObjectSchema } from '../content.ts';
import { MIRROR_KEYWORD } from '../mirrored-params.ts';
import {
  describeErrors,
  describeSchemaMistake,
  describeUnknownKeyword,
} from './describe-errors.ts';

export interface SchemaCheck {
  /** True if a value is valid for the schema. */
  readonly fits: (value: unknown) => boolean;
  /** Describes the problems of a value that was just found invalid, one line per member. */
  describeProblem(value: unknown): string;
}

const DRAFT_2020_12 = 'https://json-schema.org/draft/2020-12/schema';

// Formats are documentation for people: only the other keywords are enforced.
const FIRST_ERROR: Options = {
  allowUnionTypes: true,
  validateFormats: false,
  logger: false,
  verbose: true,
};

/** For a value that is already known to be invalid. */
const ALL_ERRORS: Options = {
  ...FIRST_ERROR,
  allErrors: true,
  code: { regExp: Object.assign(createPattern, { code: 'new RegExp' }) },
};

const loadDraft7 = createLoader<typeof import('ajv')>('ajv');
const loadDraft2020 = createLoader<typeof import('ajv/dist/2020.js')>('ajv/dist/2020.js');

const createDraft7 = (options: Options): Ajv =>
  new (loadDraft7().Ajv)(options).addVocabulary([MIRROR_KEYWORD]);

/** Created on demand: each takes milliseconds of the startup time. */
const createDialect = (create: (options: Options) => Ajv) => ({
  firstError: once(() => create(FIRST_ERROR)),
  allErrors: once(() => create(ALL_ERRORS)),
});

const DIALECTS = {
  'Draft 7': createDialect(createDraft7),
  '2020-12': createDialect((options) =>
    new (loadDraft2020().Ajv2020)(options).addVocabulary([MIRROR_KEYWORD, '$anchor']),
  ),
};

const ofPlainSchemas = once(() =>
  createDraft7({ ...FIRST_ERROR, meta: false, validateSchema: false }),
);

/** Loading takes longer than a call should: it happens after startup, unless a call comes earlier. */
const loadSoon = once(() => setTimeout(ofPlainSchemas, LOAD_AFTER_MS).unref());
/** Longer than startup takes on a slow machine. */
const LOAD_AFTER_MS = 2000;

function once<Value>(create: () => Value): () => Value {
  let value: Value | undefined;
  return () => {
    value ??= create();
    return value;
  };
}

/**
 * Compiles an author's schema: Draft 7 (§2.4), or 2020-12 if `$schema` says so. `subject` is the name of the value in messages.
 *
 * @throws DefinitionError if it is not a valid schema; the message names `owner`.
 */
export function compileSchema(owner: string, subject: string, schema: ObjectSchema): SchemaCheck {
  if (!isObject(schema)) throw new DefinitionError(`${owner} is missing.`);
  if (schema.type !== 'object') throw new DefinitionError(`${owner} must have the type object.`);
  const dialect = schema.$schema === DRAFT_2020_12 ? '2020-12' : 'Draft 7';
  const { firstError, allErrors } = DIALECTS[dialect];
  const isPlain = isPlainSchema(schema);
  if (isPlain) loadSoon();
  const getValidate = isPlain
    ? // Always valid: the first call compiles it, so that the start does not wait.
      once(() => ofPlainSchemas().compile(schema))
    : compileNow(firstError());
  return {
    fits: (value) => getValidate()(value),
    describeProblem(value) {
      const firstLines = describeErrors(subject, getValidate().errors ?? []);
      const errors = isSmall(value) ? findErrors(allErrors().compile(schema), value) : undefined;
      const lines = errors ? describeErrors(subject, errors) : [...firstLines, NOT_ALL];
      return lines.join('\n');
    },
  };

  function compileNow(ajv: Ajv): () => ValidateFunction {
    try {
      const validate = ajv.compile(schema);
      return () => validate;
    } catch (error) {
      // Otherwise the invalid schema would pass the next time.
      ajv.removeSchema(schema);
      throw explainSchemaError(owner, schema, dialect, error);
    }
  }
}

function explainSchemaError(
  owner: string,
  schema: ObjectSchema,
  dialect: keyof typeof DIALECTS,
  error: unknown,
): DefinitionError {
  const ajv = DIALECTS[dialect].firstError();
  const isValid = ajv.validateSchema(schema);
  const mistake = isValid === false && describeSchemaMistake(owner, schema, ajv.errors ?? []);
  if (mistake) return new DefinitionError(mistake);
  const reason = getMessage(error);
  const [, keyword] = /unknown keyword: "(.*)"$/.exec(reason) ?? [];
  const unknownKeyword =
    keyword && describeUnknownKeyword(owner, schema, keyword, Object.keys(ajv.RULES.keywords));
  return new DefinitionError(
    unknownKeyword || `${owner} is not a valid JSON Schema (${dialect}): ${reason}.`,
  );
}

const NOT_ALL =
  'There may be more problems: a value this large is checked only up to the first one.';

/**
 * Continuing after the first error costs several times as much, and more the worse the value is: a caller with an invalid value
 * must not cost more than one with a valid value.
 */
const MAX_VALUES = 500;

/** Maximum text length for an author's pattern, since `maxLength` may have failed as well. */
const MAX_PATTERN_TEXT = 4096;

/** Undefined if it would cost too much. */
function findErrors(
  validate: ValidateFunction,
  value: unknown,
): readonly ErrorObject[] | undefined {
  try {
    validate(value);
    return validate.errors ?? undefined;
  } catch (error) {
    if (error instanceof TooLongError) return undefined;
    throw error;
  }
}

class TooLongError extends Error {}

/** A regular expression that rejects long text. */
function createPattern(pattern: string, flags: string) {
  const expression = new RegExp(pattern, flags);
  return {
    test(text: string) {
      if (text.length > MAX_PATTERN_TEXT) throw new TooLongError();
      return expression.test(text);
    },
    toString: () => String(expression),
  };
}

function isSmall(value: unknown) {
  let left = MAX_VALUES;
  const isWithinLimit = (item: unknown) => {
    left -= 1;
    if (left < 0) return false;
    return typeof item !== 'object' || item === null || Object.values(item).every(isWithinLimit);
  };
  return isWithinLimit(value);
}

// Schemas that are obviously valid.

/**
 * True if the schema has only the most common keywords, each with a value that both meta-schemas allow. Validation against a
 * meta-schema would compile it first, which takes a tenth of the startup time.
 */
const isPlainSchema = (schema: unknown) =>
  isObject(schema) &&
  Object.entries(schema).every(([keyword, value]) => CHECKS.get(keyword)?.(value) === true);

const isText = (value: unknown) => typeof value === 'string';

const isNumber = (value: unknown) => Number.isFinite(value);
const isCount = (value: unknown) => Number.isInteger(value) && Number(value) >= 0;

const isListOfNames = (value: unknown) =>
  Array.isArray(value) && value.every(isText) && new Set(value).size === value.length;

const TYPES: ReadonlySet<unknown> = new Set([
  'string',
  'number',
  'integer',
  'boolean',
  'object',
  'array',
]);

const CHECKS: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ['type', (value) => TYPES.has(value)],
  ['title', isText],
  ['description', isText],
  ['properties', (value) => isObject(value) && Object.values(value).every(isPlainSchema)],
  ['required', isListOfNames],
  ['additionalProperties', (value) => typeof value === 'boolean' || isPlainSchema(value)],
  ['items', isPlainSchema],
  ['enum', (value) => Array.isArray(value) && value.length > 0],
  ['default', () => true],
  ['minLength', isCount],
  ['maxLength', isCount],
  ['minItems', isCount],
  ['maxItems', isCount],
  ['minimum', isNumber],
  ['maximum', isNumber],
]);
