// JSON Schemas that servers wrote: compiled only where something was changed on its way (§26.3), and read without trust.

import { RE2JS } from '@bufbuild/re2';
import { Ajv, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { computeOnce } from '../../platform/compute-once.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject } from '../../platform/json.ts';
import { describeErrors } from './define/describe-errors.ts';

/** Says what is wrong with the value; undefined where it fits, and where the schema is none that can be read. */
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

/** Patterns of servers run in time that grows with the text alone. */
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

/** Nothing of what is no schema. An Ajv keeps something of all that it has compiled: each has one of its own. */
const compile = computeOnce((schema: object): { readonly validate?: ValidateFunction } => {
  const dialect = '$schema' in schema ? String(schema.$schema) : '';
  try {
    const ajv = dialect.includes('draft-07') ? new Ajv(OPTIONS) : new Ajv2020(OPTIONS);
    return { validate: ajv.compile(schema) };
  } catch {
    return {};
  }
});

/** Characters of a schema that is compiled only to see whether that is possible. */
const MAX_TRIED = 16_384;

const tried = createBoundedMap<string, boolean>('schemas');

/**
 * True if official clients can compile it: they do so as soon as it is listed, and one that they cannot compile costs
 * them the whole list. One that is too large to be tried counts as good.
 */
export function canCompile(schema: object): boolean {
  const text = JSON.stringify(schema);
  if (text.length > MAX_TRIED) return true;
  const key = hashSha256(text);
  const isGood = tried.get(key) ?? tryToCompile(schema);
  tried.set(key, isGood);
  return isGood;
}

/** With the engine's own regular expressions, as clients have them: none is run here. */
function tryToCompile(schema: object): boolean {
  try {
    new Ajv(LENIENT).compile(schema);
    return true;
  } catch {
    return false;
  }
}
