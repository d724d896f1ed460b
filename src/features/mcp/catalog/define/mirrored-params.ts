// MCP 2026-07-28 "x-mcp-header": arguments of a tool that clients repeat in headers.
import { DefinitionError } from '../../../../core/errors/definition-error.ts';
import { isObject } from '../../../../core/json.ts';
import type { ObjectSchema } from '../descriptions.ts';

/** One argument that comes in a header as well. */
export interface MirroredParam {
  /** `Mcp-Param-Region`. */
  readonly header: string;
  /** The members that lead to it from the arguments. */
  readonly path: readonly string[];
}

export const MIRROR = 'x-mcp-header';

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/** @throws DefinitionError for an annotation that clients would refuse the tool for. */
export function mirroredParams(tool: string, schema: ObjectSchema): readonly MirroredParam[] {
  const refuse = (reason: string): never => {
    throw new DefinitionError(`Tool ${tool}: inputSchema: ${MIRROR} ${reason}.`);
  };
  const found = inProperties(schema, []);
  for (const { name, type } of found) {
    if (typeof name !== 'string' || !TOKEN.test(name)) refuse('must be a token, such as Region');
    if (!TYPES.has(type)) refuse('stands on strings, integers and booleans only');
  }
  if (annotationsIn(schema) > found.length) {
    refuse('stands on members that are reached by properties only');
  }
  const names = found.map(({ name }) => String(name).toLowerCase());
  if (new Set(names).size < names.length) refuse('must be different for each member');
  return found.map(({ name, path }) => ({ header: `Mcp-Param-${name}`, path }));
}

interface Annotated {
  readonly name: unknown;
  readonly type: unknown;
  readonly path: readonly string[];
}

function inProperties(
  { properties }: Record<string, unknown>,
  path: readonly string[],
): Annotated[] {
  if (!isObject(properties)) return [];
  return Object.entries(properties).flatMap(([key, member]) => {
    if (!isObject(member)) return [];
    const here = [...path, key];
    const own = MIRROR in member ? [{ name: member[MIRROR], type: member.type, path: here }] : [];
    return [...own, ...inProperties(member, here)];
  });
}

/** Wherever they stand; a member that is called so is none. */
function annotationsIn(schema: unknown): number {
  if (Array.isArray(schema)) return sum(schema.map(annotationsIn));
  if (!isObject(schema)) return 0;
  const own = MIRROR in schema ? 1 : 0;
  const { properties, ...rest } = schema;
  const members = isObject(properties) ? Object.values(properties) : [];
  return own + sum([...members, ...Object.values(rest)].map(annotationsIn));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);
