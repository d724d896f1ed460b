// JSON Schema, compiled once where a tool is defined, or for one answer of a client.
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { DefinitionError } from '../../../core/errors/definition-error.ts';
import type { ObjectSchema } from '../descriptions.ts';
import { isObject } from '../json-rpc.ts';
import { MIRROR } from './mirrored.ts';

/** What is wrong with a value, naming the member; undefined when it fits. */
export type Check = (value: unknown) => string | undefined;

const DRAFT_2020_12 = 'https://json-schema.org/draft/2020-12/schema';

// Formats are for people: the schema's keywords are what is held to.
const OPTIONS: Options = { allowUnionTypes: true, validateFormats: false, logger: false };
const draft7 = new Ajv(OPTIONS).addVocabulary([MIRROR]);
const draft2020 = new Ajv2020(OPTIONS).addVocabulary([MIRROR, '$anchor']);

/**
 * The check for an author's schema: Draft 7 (Spec §2.4), or 2020-12 where `$schema` says so.
 * `subject` is what messages call the value.
 *
 * @throws DefinitionError when it is no such schema; `owner` is named.
 */
export function compile(owner: string, subject: string, schema: ObjectSchema): Check {
  if (!isObject(schema)) throw new DefinitionError(`${owner} is missing.`);
  if (schema.type !== 'object') throw new DefinitionError(`${owner} must have the type object.`);
  const ajv = schema.$schema === DRAFT_2020_12 ? draft2020 : draft7;
  try {
    const fits = ajv.compile(schema);
    return (value) => (fits(value) ? undefined : problemOf(subject, fits.errors?.[0]));
  } catch (error) {
    const dialect = ajv === draft2020 ? '2020-12' : 'Draft 7';
    const reason = error instanceof Error ? error.message : String(error);
    throw new DefinitionError(`${owner} is no JSON Schema ${dialect}: ${reason}.`);
  }
}

/**
 * What is wrong with a value by a schema that nobody defined beforehand. What is compiled goes with
 * the schema: one that was made for a single question leaves nothing behind.
 */
export function problemBy(schema: object, subject: string, value: unknown): string | undefined {
  const fits = passing.get(schema) ?? compilePassing(schema);
  return fits(value) ? undefined : problemOf(subject, fits.errors?.[0]);
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

function problemOf(subject: string, error: ErrorObject | undefined): string {
  if (error === undefined) return `${subject} does not fit its schema`;
  const path = shortened(`${subject}${error.instancePath}`);
  const extra: unknown = error.params.additionalProperty;
  if (typeof extra === 'string') return `${path} must not have the member "${shortened(extra)}"`;
  const allowed: unknown = error.params.allowedValues;
  if (Array.isArray(allowed)) return `${path} must be one of ${shortened(allowed.join(', '))}`;
  return `${path} ${error.message ?? 'does not fit its schema'}`;
}

/** The caller's own words: nobody can make the service, or its log, recite at length. */
const shortened = (words: string) => (words.length > 100 ? `${words.slice(0, 100)}…` : words);
