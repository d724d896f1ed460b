// MCP 2026-07-28 "x-mcp-header": which arguments of a server's tool are repeated in headers.

import type { MirroredParam } from '../../mcp/catalog/content.ts';
import { isObject } from '../../platform/json.ts';

const KEYWORD = 'x-mcp-header';
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);
const MAX_LEVELS = 8;
const MAX_PARAMS = 32;

/** None where one annotation is wrong: clients may heed the others, or none. */
export function findMirroredParams(schema: unknown): readonly MirroredParam[] {
  const annotations = findAnnotations(schema, []);
  const params = annotations.flatMap(({ name, type, path }) =>
    typeof name === 'string' && TOKEN.test(name) && TYPES.has(type) && path.length > 0
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

function findAnnotations(member: unknown, path: readonly string[]): readonly Annotation[] {
  if (!isObject(member) || path.length > MAX_LEVELS) return [];
  const { type, properties } = member;
  const own = KEYWORD in member ? [{ name: member[KEYWORD], type, path }] : [];
  if (!isObject(properties)) return own;
  const inner = Object.entries(properties).flatMap(([key, value]) =>
    findAnnotations(value, [...path, key]),
  );
  return [...own, ...inner];
}
