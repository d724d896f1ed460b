// §33: tools of servers of the stateless era, as clients of the session era can read them. Since 2026-07-28 a schema may be any
// JSON Schema; clients of the revisions before refuse a whole list for one tool whose schema is not an object's.
import type { RawItem } from '../../mcp/catalog/catalog.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { Entry } from './prepare-list.ts';

/** The very item where nothing of it has to change, as of nearly all. */
export function toSessionTool(item: RawItem): RawItem {
  const { inputSchema, outputSchema, ...members } = item;
  const [input, output] = [narrow(inputSchema), narrow(outputSchema)];
  if (input === inputSchema && output === outputSchema) return item;
  return {
    ...members,
    inputSchema: input,
    // The text of a result has what it would describe.
    ...(isOfObject(output) && { outputSchema: output }),
  };
}

/** Of each list once. */
export function createHasOthers(): (entries: readonly Entry[]) => boolean {
  const known = new WeakMap<readonly Entry[], boolean>();

  return function hasOthers(entries) {
    const found =
      known.get(entries) ?? entries.some(({ ownItem }) => toSessionTool(ownItem) !== ownItem);
    known.set(entries, found);
    return found;
  };
}

const isOfObject = (schema: unknown): boolean => isObject(schema) && schema.type === 'object';

/** Undefined for what those clients refuse. */
function narrow(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  if (!isOfObject(schema)) return undefined;
  const { properties } = schema;
  return !isObject(properties) || Object.values(properties).every(isObject)
    ? schema
    : { ...schema, properties: writeAsObjects(properties) };
}

/** `true` allows everything, as `{}` does; `false` nothing. */
const writeAsObjects = (properties: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      typeof schema === 'boolean' ? (schema ? {} : { not: {} }) : schema,
    ]),
  );
