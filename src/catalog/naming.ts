// §18.2: how clients call what a server has, and to whom a name belongs.
import { hash } from 'node:crypto';
import type { ServersConfig } from '../mcp/upstream/upstream-config.ts';
import {
  countKeptCharacters,
  NAME_HASH_CHARACTERS,
  type UpstreamConfig,
} from '../mcp/upstream/upstream-config.ts';

const STRICT_NAME = /^[a-zA-Z0-9_-]*$/;
const NOT_STRICT = /[^a-zA-Z0-9_-]/gu;

export type Naming = ReturnType<typeof createNaming>;

/** The part of the configuration file that names follow from. */
export type NamingConfig = Pick<ServersConfig, 'servers' | 'separator' | 'maxNameLength' | 'names'>;

type Prefixed = Pick<UpstreamConfig, 'prefix'>;

export function createNaming({ servers, separator, maxNameLength, names }: NamingConfig) {
  const isStrict = names === 'strict';
  /** The part of a longer name that stays, before `_` and the hash. */
  const keptCharacters = countKeptCharacters(maxNameLength);
  const cutNames = new RegExp(`^.{${keptCharacters}}_[0-9a-f]{${NAME_HASH_CHARACTERS}}$`, 'su');
  const toStart = (prefix: string) => (prefix === '' ? '' : prefix + separator);
  // Names that are cut begin with no more than this of a prefix.
  const toMark = (prefix: string) => toStart(prefix).slice(0, keptCharacters);
  const marks = new Map<string, string[]>();
  for (const { prefix, name } of servers) {
    const mark = toMark(prefix);
    marks.set(mark, [...(marks.get(mark) ?? []), name]);
  }
  const longestFirst = [...marks].sort(([one], [other]) => other.length - one.length);
  const findMark = (name: string) =>
    isStrict && !STRICT_NAME.test(name)
      ? undefined
      : longestFirst.find(([mark]) => name.startsWith(mark));
  const clean = (name: string) => (isStrict ? name.replace(NOT_STRICT, '_') : name);

  function addHash(name: string): string {
    const kept = [...name].slice(0, keptCharacters).join('');
    return `${clean(kept)}_${hash('sha256', name, 'hex').slice(0, NAME_HASH_CHARACTERS)}`;
  }

  /** A name that is too long ends in characters of its SHA-256, so that it stays another than its like. */
  function join({ prefix }: Prefixed, ownName: string): string {
    const name = toStart(prefix) + ownName;
    return [...name].length <= maxNameLength ? clean(name) : addHash(name);
  }

  function joinAll(server: Prefixed, ownNames: readonly string[]): ReadonlyMap<string, string> {
    const isKept = (ownName: string) => !isStrict || STRICT_NAME.test(ownName);
    const kept = ownNames
      .filter(isKept)
      .map((ownName) => [ownName, join(server, ownName)] as const);
    const joined = new Map(kept);
    const taken = new Set(joined.values());
    for (const ownName of ownNames) {
      if (joined.has(ownName)) continue;
      const name = join(server, ownName);
      joined.set(ownName, taken.has(name) ? addHash(toStart(server.prefix) + ownName) : name);
      taken.add(name);
    }
    return joined;
  }

  return {
    /** True if clients get other names than servers write. */
    isStrict,
    /** As clients of `/mcp` see the server's own name. */
    join,
    /** The same of all that a server lists: where strict names would be the same, all but one end in a hash. */
    joinAll,
    /** The beginning of all names of the server. */
    findStart: ({ prefix }: Prefixed) => toMark(prefix),
    /** The beginnings of the names of each server; `''` for one without a prefix. */
    listStarts: () => [...marks.keys()],
    /**
     * The servers whose name it can be, in order: where it begins with a prefix and the separator, those of the longest
     * such prefix, and nobody else's; otherwise those without a prefix.
     */
    findOwners: (name: string): readonly string[] => findMark(name)?.[1] ?? [],
    /** True if the name can only be that of a server with a prefix. */
    hasPrefix: (name: string) => (findMark(name)?.[0] ?? '') !== '',
    /** The server's own name for it; undefined where the name may be cut or made strict, so that nobody can tell. */
    toOwnName({ prefix }: Prefixed, name: string): string | undefined {
      const ownName = name.slice(toStart(prefix).length);
      const isChanged = cutNames.test(name) || (isStrict && ownName.includes('_'));
      return isChanged ? undefined : ownName;
    },
  };
}
