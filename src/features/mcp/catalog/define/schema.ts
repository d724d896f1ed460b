// JSON Schema, compiled once where a tool is defined, or for one answer of a client.
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { DefinitionError } from '../../../../core/errors/definition-error.ts';
import { isObject } from '../../../../core/json.ts';
import type { ObjectSchema } from '../descriptions.ts';
import { MIRROR } from './mirrored-params.ts';
import { describeErrors } from './problems.ts';
import { schemaMistake, unknownKeyword } from './schema-mistakes.ts';

/** What is wrong with a value, a line for each member; undefined when it fits. */
export type Check = (value: unknown) => string | undefined;

const DRAFT_2020_12 = 'https://json-schema.org/draft/2020-12/schema';

// Formats are for people: the schema's keywords are what is held to.
const OPTIONS: Options = {
  allowUnionTypes: true,
  validateFormats: false,
  logger: false,
  verbose: true,
};

/** Finds all that is wrong, where the first one was found already. */
const THOROUGH: Options = {
  ...OPTIONS,
  allErrors: true,
  code: { regExp: Object.assign(shortTextOnly, { code: 'new RegExp' }) },
};

const draft7 = (options: Options) => new Ajv(options).addVocabulary([MIRROR]);
const draft2020 = (options: Options) => new Ajv2020(options).addVocabulary([MIRROR, '$anchor']);

const DIALECTS = {
  'Draft 7': { first: draft7(OPTIONS), all: draft7(THOROUGH) },
  '2020-12': { first: draft2020(OPTIONS), all: draft2020(THOROUGH) },
} as const;

/**
 * The check for an author's schema: Draft 7 (Spec §2.4), or 2020-12 where `$schema` says so.
 * `subject` is what messages call the value.
 *
 * @throws DefinitionError when it is no such schema; `owner` is named.
 */
export function compile(owner: string, subject: string, schema: ObjectSchema): Check {
  if (!isObject(schema)) throw new DefinitionError(`${owner} is missing.`);
  if (schema.type !== 'object') throw new DefinitionError(`${owner} must have the type object.`);
  const dialect = schema.$schema === DRAFT_2020_12 ? '2020-12' : 'Draft 7';
  const { first, all } = DIALECTS[dialect];
  try {
    const fits = first.compile(schema);
    return function check(value) {
      if (fits(value)) return undefined;
      const known = describeErrors(subject, fits.errors ?? []);
      const errors = isSmall(value) ? allErrors(all.compile(schema), value) : undefined;
      const lines = errors ? describeErrors(subject, errors) : [...known, NOT_ALL];
      return lines.join('\n');
    };
  } catch (error) {
    const isValid = first.validateSchema(schema);
    const mistake = isValid === false && schemaMistake(owner, schema, first.errors ?? []);
    if (mistake) throw new DefinitionError(mistake);
    const reason = error instanceof Error ? error.message : String(error);
    const [, keyword] = /unknown keyword: "(.*)"$/.exec(reason) ?? [];
    const unknown =
      keyword && unknownKeyword(owner, schema, keyword, Object.keys(first.RULES.keywords));
    if (unknown) throw new DefinitionError(unknown);
    throw new DefinitionError(`${owner} is no JSON Schema ${dialect}: ${reason}.`);
  }
}

const NOT_ALL = 'There may be more: what is this large is checked up to the first problem.';

/**
 * A check that goes on after the first error costs a multiple of one that does not, and more the
 * worse the value is: who sends what is wrong must not get more work done than who sends what fits.
 */
const MAX_VALUES = 500;

/** Characters that an author's pattern is tried on, where `maxLength` beside it may have failed. */
const MAX_PATTERN_TEXT = 4096;

/** Undefined where it would cost too much. */
function allErrors(fits: ValidateFunction, value: unknown): readonly ErrorObject[] | undefined {
  try {
    fits(value);
    return fits.errors ?? undefined;
  } catch (error) {
    if (error instanceof TooLongError) return undefined;
    throw error;
  }
}

class TooLongError extends Error {}

function shortTextOnly(pattern: string, flags: string) {
  const expression = new RegExp(pattern, flags);
  return {
    test(text: string) {
      if (text.length > MAX_PATTERN_TEXT) throw new TooLongError();
      return expression.test(text);
    },
    toString: () => String(expression),
  };
}

function isSmall(value: unknown): boolean {
  let left = MAX_VALUES;
  const counts = (one: unknown): boolean => {
    left -= 1;
    if (left < 0) return false;
    return typeof one !== 'object' || one === null || Object.values(one).every(counts);
  };
  return counts(value);
}

/**
 * What is wrong with a value by a schema that nobody defined beforehand. What is compiled goes with
 * the schema: one that was made for a single question leaves nothing behind.
 */
export function problemBy(schema: object, subject: string, value: unknown): string | undefined {
  const fits = passing.get(schema) ?? compilePassing(schema);
  return fits(value) ? undefined : describeErrors(subject, fits.errors ?? []).join('\n');
}

const passing = new WeakMap<object, ValidateFunction>();

/** An Ajv keeps something of all that it has compiled: after so many schemas comes the next one. */
const SCHEMAS_PER_AJV = 100;

const compilePassing = (() => {
  let left = 0;
  let ajv: Ajv | undefined;
  return (schema: object): ValidateFunction => {
    if (ajv === undefined || left === 0) {
      ajv = new Ajv({ ...OPTIONS, strict: false });
      left = SCHEMAS_PER_AJV;
    }
    left -= 1;
    const fits = ajv.compile(schema);
    // Or the next one with its `$id` would be refused.
    ajv.removeSchema(schema);
    passing.set(schema, fits);
    return fits;
  };
})();
