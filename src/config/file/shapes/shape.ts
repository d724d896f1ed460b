// What a value of the configuration file may be: read from the file, and described as JSON Schema, by one
// object, so that the two cannot differ.
import type { JsonObject } from '../../../platform/json.ts';
import type { Env } from '../../setting.ts';
import type { FileNode, MemberNode, ObjectNode } from '../syntax/file-node.ts';

export interface Shape<T> {
  /** JSON Schema (draft 7). */
  readonly schema: JsonObject;
  /** Undefined for what is not allowed, which it has reported. */
  read(node: FileNode, place: FilePlace): T | undefined;
}

/** Where a value stands. */
export interface FilePlace {
  /** `mcpServers.github.tools.include[0]`; empty for the whole file. */
  readonly path: string;
  readonly context: ReadContext;
}

export interface ReadContext {
  readonly env: Env;
  report(line: number, path: string, message: string): void;
  /** What works, but may not be what was meant. */
  warn(line: number, path: string, message: string): void;
  /** Of a member of another program. */
  reportIgnored(name: string): void;
}

export const placeMember = ({ path, context }: FilePlace, name: string): FilePlace => ({
  path: /^[A-Za-z_$][\w$-]*$/.test(name)
    ? [...(path === '' ? [] : [path]), name].join('.')
    : `${path}[${JSON.stringify(name.slice(0, 64))}]`,
  context,
});

export const placeItem = ({ path, context }: FilePlace, index: number): FilePlace => ({
  path: `${path}[${index}]`,
  context,
});

export function report({ path, context }: FilePlace, line: number, message: string): undefined {
  context.report(line, path, message);
}

/** What it is, for what is neither text, number nor flag. */
export const nameKind = ({ kind }: FileNode): string =>
  kind === 'list' ? 'A list' : kind === 'object' ? 'An object' : 'This value';

/** The object, each name once; undefined for what is none. Reports what is wrong. */
export function openObject(
  node: FileNode,
  place: FilePlace,
  allowed: string,
): ObjectNode | undefined {
  if (node.kind !== 'object')
    return report(place, node.line, `${nameKind(node)} is not valid. It must be ${allowed}.`);
  const first = new Map<string, MemberNode>();
  for (const member of node.members) {
    const earlier = first.get(member.name);
    if (earlier === undefined) first.set(member.name, member);
    else
      report(
        placeMember(place, member.name),
        member.line,
        `This is given twice, first in line ${earlier.line}. Remove one of them.`,
      );
  }
  return { ...node, members: [...first.values()] };
}
