// §18.2: joins the lists of all servers. The order of servers determines which one keeps a name, and is the same on every replica.

import { listDirectories, requireSkillRoot } from '../mcp/catalog/content.ts';
import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { isObject } from '../platform/json.ts';
import { CAPACITY } from '../platform/memory/capacity.ts';
import { isAppUri, toMovedUri } from './apps/app-tools.ts';
import type { WarnOfItem } from './check-item.ts';
import { BUILT_IN, type Entry, type Naming } from './prepare-list.ts';

/** The part of `/mcp` that a view consists of. */
export interface JoinedPart {
  readonly joinLists: JoinLists;
  /** `''` for the built-in catalogue. */
  hasServer(name: string): boolean;
}

export interface JoinedList {
  readonly entries: readonly Entry[];
  /** The position of each entry, by the name that clients see. */
  readonly positions: ReadonlyMap<string, number>;
}

/** The lists of all servers, in the order of the servers. */
type Parts = readonly (readonly Entry[])[];

/** Skills need the joined `resources`: the server that has a URI there keeps it for skills as well. */
type JoinLists = (kind: ListKind, parts: Parts, resources?: JoinedList) => JoinedList;

/** Joins the lists only once as long as the parts are the same arrays. */
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
    // Fast path: skills are joined for each unlisted resource, and nearly always there are none.
    if (kind === 'skills' && parts.every((part) => part.length === 0)) return NOTHING;
    const known = remembered.find(
      (one) =>
        one.kind === kind && one.resources === resources.entries && isSameList(one.parts, parts),
    );
    if (known) return known.list;
    const list = indexEntries(join(kind, parts, resources));
    remembered.unshift({ kind, parts, resources: resources.entries, list });
    remembered.length = Math.min(remembered.length, CAPACITY.joinedLists);
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

/** True if both lists have the very same members. */
export const isSameList = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  one.length === other.length && one.every((member, index) => member === other[index]);

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
    // The URI already contains the server's name, and its tools refer to it this way: a different name would lead nowhere.
    if (isAppUri(entry.name)) {
      hide(entry, 'the built-in catalogue has that URI, too');
      continue;
    }
    const name = toMovedUri(entry.server, entry.ownName);
    const item = { ...entry.ownItem, [LIST_KINDS[kind].key]: name };
    if (taken.has(name)) hide(entry, 'other servers have that URI, too');
    else taken.set(name, { ...entry, name, item });
  }
  return [...taken.values()];
}

const tellServer = (server: string): string =>
  server === BUILT_IN ? 'the built-in catalogue' : `server ${server}`;

// SEP-2640: joins the skills of all servers. Each skill keeps its URIs unless another server has them: a file that a client reads
// has to belong to the skill that names it.

/** `resources` is the joined list, in which the first server with a URI keeps it. */
function joinSkills(
  entries: readonly Entry[],
  resources: JoinedList,
  warn: WarnOfItem,
): readonly Entry[] {
  const take = createTakeUris(resources);
  const servers = new Set(entries.map(({ server }) => server));
  const joined: Entry[] = [];
  const later: Entry[] = [];
  for (const entry of entries) {
    const { server, name, ownName } = entry;
    const [named = ''] = name.split('+', 1);
    if (named !== server && named !== name && servers.has(named)) {
      warn(server, 'skills', ownName, `is hidden: its URI is one that server ${named} could have`);
    } else if (take(entry)) joined.push(entry);
    else later.push(entry);
  }
  for (const entry of later) {
    const renamed = renameSkill(entry);
    if (take(renamed)) joined.push(renamed);
    else {
      const problem = 'is hidden: other servers have URIs of its files, too';
      warn(entry.server, 'skills', entry.ownName, problem);
    }
  }
  return joined;
}

function createTakeUris({ entries, positions }: JoinedList) {
  const files = new Map<string, string>();
  const roots = new Map<string, string>();
  /** Directories that contain a skill, with the skill's server. */
  const above = new Map<string, string>();

  const ofResource = (uri: string) => entries[positions.get(uri) ?? -1]?.server;

  /** Returns false if one of the skill's URIs belongs to another server. */
  return function take({ server, name, files: own = [] }: Entry): boolean {
    const root = requireSkillRoot(name);
    const isOther = (owner: string | undefined) => owner !== undefined && owner !== server;
    if (own.some((file) => isOther(ofResource(file.name)) || isOther(files.get(file.name))))
      return false;
    // A file of one server would be looked up on another server that has the same directory.
    if (isOther(above.get(root))) return false;
    if (listDirectories(name).some((directory) => isOther(roots.get(directory)))) return false;
    for (const file of own) files.set(file.name, server);
    roots.set(root, server);
    for (const directory of listDirectories(root)) {
      // A directory that several servers have belongs, for each of them, to another server.
      above.set(directory, (above.get(directory) ?? server) === server ? server : SEVERAL);
    }
    return true;
  };
}

/** A value that is not the name of any server. */
const SEVERAL = ' ';

/** If two servers have the same skill URIs, the later server's skill gets these URIs. */
export function renameSkill(entry: Entry): Entry {
  const { server, ownName, ownItem, files = [] } = entry;
  const rename = (uri: string) => toMovedUri(server, uri);
  const name = rename(ownName);
  const { resources } = ownItem;
  return {
    ...entry,
    name,
    files: files.map((file) => ({ ...file, name: rename(file.name) })),
    item: {
      ...ownItem,
      uri: name,
      resources: Array.isArray(resources)
        ? resources.map((file: unknown) =>
            isObject(file) ? { ...file, uri: rename(String(file.uri)) } : file,
          )
        : resources,
    },
  };
}
