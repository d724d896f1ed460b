// MCP 2026-07-28 "x-mcp-header": arguments of a tool that clients mirror in headers.

import { DefinitionError } from '../../errors/gateway-error.ts';
import { isObject } from '../../platform/json.ts';
import type { MirroredParam, ObjectSchema } from './content.ts';

export const MIRROR_KEYWORD = 'x-mcp-header';

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/** @throws DefinitionError for an annotation that would make clients reject the tool. */
export function readMirroredParams(tool: string, schema: ObjectSchema): readonly MirroredParam[] {
  const failDefinition = (reason: string): never => {
    throw new DefinitionError(`Tool ${tool}: inputSchema: ${MIRROR_KEYWORD} ${reason}.`);
  };
  const annotations = findAnnotations(schema).filter(({ path }) => path.length > 0);
  for (const { name, type } of annotations) {
    if (typeof name !== 'string' || !TOKEN.test(name))
      failDefinition('must be a token, such as Region');
    if (!TYPES.has(type)) failDefinition('is allowed on strings, integers and booleans only');
  }
  if (countAnnotations(schema) > annotations.length)
    failDefinition('is allowed only on members that are reached through properties');
  const names = annotations.map(({ name }) => String(name).toLowerCase());
  if (new Set(names).size < names.length) failDefinition('must be different for each member');
  return annotations.map(({ name, path }) => ({ header: `Mcp-Param-${name}`, path }));
}

/** Counts all annotations, at any position; a member with this name does not count. */
function countAnnotations(schema: unknown): number {
  if (typeof schema !== 'object' || schema === null) return 0;
  const { properties, ...rest }: { readonly properties?: unknown } = schema;
  const members: readonly unknown[] = isObject(properties) ? Object.values(properties) : [];
  return [...members, ...Object.values(rest)].reduce<number>(
    (total, member) => total + countAnnotations(member),
    MIRROR_KEYWORD in schema ? 1 : 0,
  );
}

/** Limit for a schema written by a server. */
const MAX_NAME = 64;
const MAX_LEVELS = 8;
const MAX_PARAMS = 32;

/** The mirrored arguments of a server's tool. Empty if one annotation is invalid: clients may use the others, or none. */
export function findMirroredParams(schema: unknown): readonly MirroredParam[] {
  const annotations = findAnnotations(schema, MAX_LEVELS);
  const params = annotations.flatMap(({ name, type, path }) =>
    typeof name === 'string' &&
    name.length <= MAX_NAME &&
    TOKEN.test(name) &&
    TYPES.has(type) &&
    path.length > 0
      ? [{ header: `Mcp-Param-${name}`, path }]
      : [],
  );
  const isRight =
    params.length === annotations.length &&
    params.length <= MAX_PARAMS &&
    new Set(params.map(({ header }) => header.toLowerCase())).size === params.length;
  return isRight ? params : [];
}

interface Annotation {
  readonly name: unknown;
  readonly type: unknown;
  readonly path: readonly string[];
}

/** `path` leads from the arguments to the member. */
function findAnnotations(
  member: unknown,
  maxLevels = Number.POSITIVE_INFINITY,
  path: readonly string[] = [],
): readonly Annotation[] {
  if (!isObject(member) || path.length > maxLevels) return [];
  const { type, properties } = member;
  const own = MIRROR_KEYWORD in member ? [{ name: member[MIRROR_KEYWORD], type, path }] : [];
  if (!isObject(properties)) return own;
  const inner = Object.entries(properties).flatMap(([key, value]) =>
    findAnnotations(value, maxLevels, [...path, key]),
  );
  return [...own, ...inner];
}
