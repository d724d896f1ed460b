// MCP 2026-07-28 "x-mcp-header": arguments of a server's tool that are repeated in headers.

import type { MirroredParam } from '../../mcp/catalog/descriptions.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { Entry } from './entry.ts';

const KEYWORD = 'x-mcp-header';
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);
const MAX_LEVELS = 8;
const MAX_PARAMS = 32;

const known = new WeakMap<Entry, readonly MirroredParam[]>();

/** None where one annotation is wrong: clients may heed the others, or none. */
export function readMirroredParams(entry: Entry): readonly MirroredParam[] {
  const params = known.get(entry) ?? findParams(entry.ownItem.inputSchema);
  known.set(entry, params);
  return params;
}

function findParams(schema: unknown): readonly MirroredParam[] {
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

/** The headers of a call, by name; the transport encodes their values. */
export function mirrorArguments(entry: Entry, args: JsonObject): Readonly<Record<string, string>> {
  const params = readMirroredParams(entry);
  if (params.length === 0) return NONE;
  return Object.fromEntries(
    params.flatMap(({ header, path }) => {
      const value = getMember(args, path);
      return MIRRORED.has(typeof value) ? [[header, String(value)]] : [];
    }),
  );
}

const NONE = {};
const MIRRORED: ReadonlySet<string> = new Set(['string', 'number', 'boolean']);

const getMember = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (at, key) => (isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined),
    value,
  );
