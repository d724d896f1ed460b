// Which server things come from, as far as their names say it (§18.2).
import type { JsonObject } from './json.ts';
import { nameOf } from './state.ts';

/** Between a server's prefix and its own name for a thing, unless the gateway's file has another one. */
const SEPARATOR = '__';

export interface Group {
  /** Undefined for names without a prefix. */
  readonly server: string | undefined;
  readonly items: readonly JsonObject[];
}

/** In the order of the list, which is that of the servers. */
export function groupByServer(items: readonly JsonObject[]): readonly Group[] {
  const groups = new Map<string | undefined, JsonObject[]>();
  for (const item of items) {
    const { server } = splitName(nameOf(item));
    const members = groups.get(server) ?? [];
    members.push(item);
    groups.set(server, members);
  }
  return [...groups].map(([server, members]) => ({ server, items: members }));
}

/** `files__read_file` is `read_file` of `files`. */
export function splitName(name: string): {
  readonly server: string | undefined;
  readonly ownName: string;
} {
  const at = name.indexOf(SEPARATOR);
  const ownName = name.slice(at + SEPARATOR.length);
  return at > 0 && ownName !== ''
    ? { server: name.slice(0, at), ownName }
    : { server: undefined, ownName: name };
}
