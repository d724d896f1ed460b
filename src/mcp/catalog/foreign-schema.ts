// Compiles JSON Schemas written by servers, without trusting them: to validate changed messages (§26.3), and to test schemas.

import { RE2JS } from '@bufbuild/re2';
import { Ajv, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { computeOnce, createBoundedMap } from '../../platform/bounded-map.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject } from '../../platform/json.ts';
import { describeErrors } from './define/describe-errors.ts';

/** Describes the problem with the value; undefined if the value is valid, or the schema is unusable. */
export type CheckSchema = (schema: unknown, subject: string, value: unknown) => string | undefined;

export const checkForeignSchema: CheckSchema = (schema, subject, value) => {
  if (!isObject(schema)) return undefined;
  const { validate } = compile(schema);
  if (validate === undefined || validate(value)) return undefined;
  return describeErrors(subject, validate.errors ?? []).join('; ');
};

const LENIENT: Options = {
  strict: false,
  validateFormats: false,
  validateSchema: false,
  logger: false,
};

/** Runs servers' patterns in linear time. */
const OPTIONS: Options = {
  ...LENIENT,
  verbose: true,
  code: {
    regExp: Object.assign(
      (pattern: string) => {
        const compiled = RE2JS.compile(pattern);
        return { test: (text: string) => compiled.test(text), toString: () => pattern };
      },
      { code: 'new RegExp' },
    ),
  },
};

/**
 * Empty for an invalid schema. Each schema has its own Ajv instance, since an instance retains data about every schema that
 * it compiles.
 */
const compile = computeOnce((schema: object): { readonly validate?: ValidateFunction } => {
  const dialect = '$schema' in schema ? String(schema.$schema) : '';
  try {
    const ajv = dialect.includes('draft-07') ? new Ajv(OPTIONS) : new Ajv2020(OPTIONS);
    return { validate: ajv.compile(schema) };
  } catch {
    return {};
  }
});

/** Maximum characters of a schema that is compiled only as a test. */
const MAX_TRIED = 16_384;

const tried = createBoundedMap<string, boolean>('schemas');

/**
 * True if official clients can compile the schema: they do so as soon as it is listed, and one invalid schema makes them reject
 * the whole list. A schema that is too large to test counts as valid.
 */
export function canCompile(schema: object): boolean {
  const text = JSON.stringify(schema);
  if (text.length > MAX_TRIED) return true;
  const key = hashSha256(text);
  const isGood = tried.get(key) ?? tryToCompile(schema);
  tried.set(key, isGood);
  return isGood;
}

/** Uses the engine's own regular expressions, like clients; none is executed here. */
function tryToCompile(schema: object) {
  try {
    new Ajv(LENIENT).compile(schema);
    return true;
  } catch {
    return false;
  }
}
