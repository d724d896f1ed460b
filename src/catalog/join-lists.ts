// §18.2: the lists of all servers as one. The order decides who has a name, on every replica the same.

import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { isAppUri, toMovedUri } from './apps/app-tools.ts';
import type { WarnOfItem } from './check-item.ts';
import type { Naming } from './naming.ts';
import { BUILT_IN, type Entry } from './prepare-list.ts';
import { joinSkills } from './skills/skill-files.ts';

export interface JoinedList {
  readonly entries: readonly Entry[];
  /** The place of each, by the name that clients see. */
  readonly positions: ReadonlyMap<string, number>;
}

/** The lists of all servers, in their order. */
type Parts = readonly (readonly Entry[])[];

/** `resources`, joined, are needed for skills alone: who has a URI there has it. */
export type JoinLists = (kind: ListKind, parts: Parts, resources?: JoinedList) => JoinedList;

/** The number of users with lists of their own that are remembered. */
const MAX_REMEMBERED = 16;

/** Joined once as long as the parts are the same arrays. */
export function createJoinLists(naming: Naming, warn: WarnOfItem): JoinLists {
  const remembered: {
    readonly kind: ListKind;
    readonly parts: Parts;
    readonly resources: JoinedList['entries'];
    readonly list: JoinedList;
  }[] = [];

  function join(kind: ListKind, parts: Parts, resources: JoinedList): readonly Entry[] {
    if (kind === 'skills') return joinSkills(parts.flat(), resources, warn);
    return LIST_KINDS[kind].ruled === 'resource'
      ? joinResources(kind, parts, warn)
      : joinNames(kind, parts, naming, warn);
  }

  return function joinLists(kind, parts, resources = NOTHING) {
    // As nearly always: what has no skill is asked for with each resource that nobody lists.
    if (kind === 'skills' && parts.every((part) => part.length === 0)) return NOTHING;
    const known = remembered.find(
      (one) => one.kind === kind && one.resources === resources.entries && isSame(one.parts, parts),
    );
    if (known) return known.list;
    const list = indexEntries(join(kind, parts, resources));
    remembered.unshift({ kind, parts, resources: resources.entries, list });
    remembered.length = Math.min(remembered.length, MAX_REMEMBERED);
    return list;
  };
}

const NOTHING: JoinedList = { entries: [], positions: new Map() };

export const indexEntries = (
  entries: readonly Entry[],
  getName = ({ name }: Entry): string => name,
): JoinedList => ({
  entries,
  positions: new Map(entries.map((entry, position) => [getName(entry), position])),
});

const isSame = (one: Parts, other: Parts): boolean =>
  one.length === other.length && one.every((part, index) => part === other[index]);

function joinNames(
  kind: ListKind,
  parts: Parts,
  naming: Naming,
  warn: WarnOfItem,
): readonly Entry[] {
  const taken = new Map<string, Entry>();
  for (const entry of parts.flat()) {
    const { server, name, ownName } = entry;
    const owner = taken.get(name);
    if (owner !== undefined) {
      warn(server, kind, ownName, `is hidden: ${tellServer(owner.server)} has that name, too`);
    } else if (server !== BUILT_IN && !naming.findOwners(name).includes(server)) {
      warn(server, kind, ownName, 'is hidden: its name begins with the prefix of another server');
    } else {
      taken.set(name, entry);
    }
  }
  return [...taken.values()];
}

function joinResources(kind: ListKind, parts: Parts, warn: WarnOfItem): readonly Entry[] {
  const hide = ({ server, ownName }: Entry, why: string) =>
    warn(server, kind, ownName, `is hidden: ${why}`);
  const taken = new Map<string, Entry>();
  const later: Entry[] = [];
  for (const entry of parts.flat()) {
    if (taken.has(entry.name)) later.push(entry);
    else taken.set(entry.name, entry);
  }
  for (const entry of later) {
    // The server's name is in it already, and its tools name it so: another name would lead to nothing.
    if (isAppUri(entry.name)) {
      hide(entry, 'the built-in catalogue has that URI, too');
      continue;
    }
    const renamed = renameResource(kind, entry);
    if (taken.has(renamed.name)) hide(entry, 'other servers have that URI, too');
    else taken.set(renamed.name, renamed);
  }
  return [...taken.values()];
}

/** As the later of two servers with the same URI has it. */
function renameResource(kind: ListKind, entry: Entry): Entry {
  const name = toMovedUri(entry.server, entry.ownName);
  return { ...entry, name, item: { ...entry.ownItem, [LIST_KINDS[kind].key]: name } };
}

const tellServer = (server: string): string =>
  server === BUILT_IN ? 'the built-in catalogue' : `server ${server}`;
