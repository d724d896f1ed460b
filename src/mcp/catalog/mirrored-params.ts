// MCP 2026-07-28 "x-mcp-header": arguments of a tool that clients mirror in headers.

import { DefinitionError } from '../../errors/gateway-error.ts';
import { isObject } from '../../platform/json.ts';
import type { MirroredParam, ObjectSchema } from './content.ts';

export const MIRROR_KEYWORD = 'x-mcp-header';

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/** @throws DefinitionError for an annotation that would make clients reject the tool. */
export function readMirroredParams(tool: string, schema: ObjectSchema): readonly MirroredParam[] {
  const annotations = findAnnotations(schema).filter(({ path }) => path.length > 0);
  const isElsewhere = countAnnotations(schema) > annotations.length;
  const problem =
    findProblem(annotations) ??
    (isElsewhere ? 'is allowed only on members that are reached through properties' : undefined) ??
    (hasTwice(annotations) ? 'must be different for each member' : undefined);
  if (problem !== undefined)
    throw new DefinitionError(`Tool ${tool}: inputSchema: ${MIRROR_KEYWORD} ${problem}.`);
  return annotations.map(toParam);
}

function findProblem(annotations: readonly Annotation[]) {
  for (const { name, type } of annotations) {
    if (typeof name !== 'string' || !TOKEN.test(name)) return 'must be a token, such as Region';
    if (!TYPES.has(type)) return 'is allowed on strings, integers and booleans only';
  }
  return undefined;
}

const hasTwice = (annotations: readonly Annotation[]) =>
  new Set(annotations.map(({ name }) => String(name).toLowerCase())).size < annotations.length;

const toParam = ({ name, path }: Annotation) => ({ header: `Mcp-Param-${name}`, path });

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
  const isRight =
    findProblem(annotations) === undefined &&
    !hasTwice(annotations) &&
    annotations.length <= MAX_PARAMS &&
    annotations.every(({ name, path }) => String(name).length <= MAX_NAME && path.length > 0);
  return isRight ? annotations.map(toParam) : [];
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
