// Schemas that are right at a glance.
import { isObject } from '../../../../core/json.ts';

/**
 * Whether the schema has only the commonest keywords, each with a value that both meta-schemas allow. To check it
 * against a meta-schema would compile that first, which takes a tenth of the start.
 */
export const isPlainSchema = (schema: unknown): boolean =>
  isObject(schema) &&
  Object.entries(schema).every(([keyword, value]) => CHECKS.get(keyword)?.(value) === true);

const isText = (value: unknown): boolean => typeof value === 'string';
const isFlag = (value: unknown): boolean => typeof value === 'boolean';
const isNumber = (value: unknown): boolean => Number.isFinite(value);
const isCount = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 0;

const isListOfNames = (value: unknown): boolean =>
  Array.isArray(value) && value.every(isText) && new Set(value).size === value.length;

const isMapOfSchemas = (value: unknown): boolean =>
  isObject(value) && Object.values(value).every(isPlainSchema);

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
  ['properties', isMapOfSchemas],
  ['required', isListOfNames],
  ['additionalProperties', (value) => isFlag(value) || isPlainSchema(value)],
  ['items', isPlainSchema],
  ['enum', Array.isArray],
  ['default', () => true],
  ['minLength', isCount],
  ['maxLength', isCount],
  ['minItems', isCount],
  ['maxItems', isCount],
  ['minimum', isNumber],
  ['maximum', isNumber],
]);
