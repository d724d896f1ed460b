// What a value of the configuration file may be: read from the file, and described as JSON Schema, by one
// object, so that the two cannot differ.
import type { JsonObject } from '../../../platform/json.ts';
import type { Env } from '../expand.ts';
import type { FileNode } from '../syntax/file-node.ts';

export interface Shape<T> {
  /** JSON Schema (draft 7). */
  readonly schema: JsonObject;
  /** Undefined for what is not allowed, which it has reported. */
  read(node: FileNode, place: Place): T | undefined;
}

/** Where a value stands. */
export interface Place {
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

export const placeMember = ({ path, context }: Place, name: string): Place => ({
  path: /^[A-Za-z_$][\w$-]*$/.test(name)
    ? [...(path === '' ? [] : [path]), name].join('.')
    : `${path}[${JSON.stringify(name.slice(0, 64))}]`,
  context,
});

export const placeItem = ({ path, context }: Place, index: number): Place => ({
  path: `${path}[${index}]`,
  context,
});

export function report({ path, context }: Place, line: number, message: string): undefined {
  context.report(line, path, message);
}
