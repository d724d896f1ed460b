// §18.2: how clients call what a server has, and to whom a name belongs.
import { hash } from 'node:crypto';
import type { GatewayFile, UpstreamConfig } from '../../../core/gateway-file/gateway-file.ts';

/** Characters of a name; some clients take no more. */
const MAX_NAME = 64;
const HASH_CHARACTERS = 8;
/** What stays of a longer name, before `_` and the hash. */
const KEPT_CHARACTERS = MAX_NAME - HASH_CHARACTERS - 1;

export interface Naming {
  /** As clients of `/mcp` see the server's own name. */
  join(server: Pick<UpstreamConfig, 'prefix'>, ownName: string): string;
  /**
   * The servers whose name it can be, in order: where it begins with a prefix and the separator, those of the longest
   * such prefix, and nobody else's; otherwise those without a prefix.
   */
  findOwners(name: string): readonly string[];
  /** Whether the name can only be that of a server with a prefix. */
  hasPrefix(name: string): boolean;
  /** What the server itself would call it; undefined where the name may be cut, so that nobody can tell. */
  toOwnName(server: Pick<UpstreamConfig, 'prefix'>, name: string): string | undefined;
}

export function createNaming({
  servers,
  separator,
}: Pick<GatewayFile, 'servers' | 'separator'>): Naming {
  const toStart = (prefix: string) => (prefix === '' ? '' : prefix + separator);
  // Names that are cut begin with no more than this of a prefix.
  const toMark = (prefix: string) => toStart(prefix).slice(0, KEPT_CHARACTERS);
  const marks = new Map<string, string[]>();
  for (const { prefix, name } of servers) {
    const mark = toMark(prefix);
    marks.set(mark, [...(marks.get(mark) ?? []), name]);
  }
  const longestFirst = [...marks].sort(([one], [other]) => other.length - one.length);
  const findMark = (name: string) => longestFirst.find(([mark]) => name.startsWith(mark));

  return {
    join: ({ prefix }, ownName) => cutName(toStart(prefix) + ownName),
    findOwners: (name) => findMark(name)?.[1] ?? [],
    hasPrefix: (name) => (findMark(name)?.[0] ?? '') !== '',
    toOwnName: ({ prefix }, name) =>
      CUT_NAME.test(name) ? undefined : name.slice(toStart(prefix).length),
  };
}

const CUT_NAME = /^.{55}_[0-9a-f]{8}$/su;

/** A name that is too long ends in 8 characters of its SHA-256, so that it stays another than its like. */
function cutName(name: string): string {
  const characters = [...name];
  if (characters.length <= MAX_NAME) return name;
  const kept = characters.slice(0, KEPT_CHARACTERS).join('');
  return `${kept}_${hash('sha256', name, 'hex').slice(0, HASH_CHARACTERS)}`;
}
