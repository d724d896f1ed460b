import type { FromSchema, JSONSchema } from 'json-schema-to-ts';

/**
 * The type of what fits a schema; never, when it is no JSON Schema. A member with a `default` may be
 * missing all the same: nothing is filled in.
 */
export type FromJsonSchema<Schema> = Schema extends JSONSchema
  ? FromSchema<Schema, { keepDefaultedPropertiesOptional: true }>
  : never;
