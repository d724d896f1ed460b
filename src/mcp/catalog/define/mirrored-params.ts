// MCP 2026-07-28 "x-mcp-header": arguments of a tool that clients repeat in headers.
import { DefinitionError } from '../../../errors/definition-error.ts';
import { isObject, type JsonObject } from '../../../platform/json.ts';
import type { MirroredParam, ObjectSchema } from '../descriptions.ts';

export const MIRROR_KEYWORD = 'x-mcp-header';

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const MIRRORED_TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/** @throws DefinitionError for an annotation that clients would refuse the tool for. */
export function readMirroredParams(tool: string, schema: ObjectSchema): readonly MirroredParam[] {
  const failDefinition = (reason: string): never => {
    throw new DefinitionError(`Tool ${tool}: inputSchema: ${MIRROR_KEYWORD} ${reason}.`);
  };
  const annotations = findAnnotations(schema, []);
  for (const { name, type } of annotations) {
    if (typeof name !== 'string' || !TOKEN.test(name))
      failDefinition('must be a token, such as Region');
    if (!MIRRORED_TYPES.has(type))
      failDefinition('is allowed on strings, integers and booleans only');
  }
  if (countAnnotations(schema) > annotations.length) {
    failDefinition('is allowed only on members that are reached through properties');
  }
  const names = annotations.map(({ name }) => String(name).toLowerCase());
  if (new Set(names).size < names.length) failDefinition('must be different for each member');
  return annotations.map(({ name, path }) => ({ header: `Mcp-Param-${name}`, path }));
}

interface Annotation {
  readonly name: unknown;
  readonly type: unknown;
  readonly path: readonly string[];
}

function findAnnotations({ properties }: JsonObject, path: readonly string[]): Annotation[] {
  if (!isObject(properties)) return [];
  return Object.entries(properties).flatMap(([key, member]) => {
    if (!isObject(member)) return [];
    const memberPath = [...path, key];
    const annotation =
      MIRROR_KEYWORD in member
        ? [{ name: member[MIRROR_KEYWORD], type: member.type, path: memberPath }]
        : [];
    return [...annotation, ...findAnnotations(member, memberPath)];
  });
}

/** Of all annotations, wherever they stand; a member that is called so is none. */
function countAnnotations(schema: unknown): number {
  if (Array.isArray(schema)) return sum(schema.map(countAnnotations));
  if (!isObject(schema)) return 0;
  const ownCount = MIRROR_KEYWORD in schema ? 1 : 0;
  const { properties, ...rest } = schema;
  const members = isObject(properties) ? Object.values(properties) : [];
  return ownCount + sum([...members, ...Object.values(rest)].map(countAnnotations));
}

const sum = (numbers: readonly number[]): number =>
  numbers.reduce((total, number) => total + number, 0);
