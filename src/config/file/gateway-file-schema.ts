import type { JsonObject } from '../../platform/json.ts';
import { fileShape } from './members/file-members.ts';

/** The JSON Schema (draft 7) of the configuration file, by which editors complete and check it. */
export const createGatewayFileSchema = (): JsonObject => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Configuration file of Postern',
  ...fileShape.schema,
});
