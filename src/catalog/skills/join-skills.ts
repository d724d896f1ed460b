// SEP-2640: the skills of all servers as one list. Each keeps its URIs where they are nobody else's: a file that is read has to be
// that of the skill which names it.
import { listDirectories, requireSkillRoot } from '../../mcp/catalog/content.ts';
import { isObject } from '../../platform/json.ts';
import { toMovedUri } from '../apps/app-tools.ts';
import type { WarnOfItem } from '../check-item.ts';
import type { Entry } from '../prepare-list.ts';

/** The lists of servers, joined. */
interface ListedResources {
  readonly entries: readonly Entry[];
  readonly positions: ReadonlyMap<string, number>;
}

/** `resources` are those that all of them list: there, too, the first that has a URI keeps it. */
export function joinSkills(
  entries: readonly Entry[],
  resources: ListedResources,
  warn: WarnOfItem,
): readonly Entry[] {
  const taken = createTakenUris(resources);
  const servers = new Set(entries.map(({ server }) => server));
  const joined: Entry[] = [];
  const later: Entry[] = [];
  for (const entry of entries) {
    const { server, name, ownName } = entry;
    const [named = ''] = name.split('+', 1);
    if (named !== server && named !== name && servers.has(named)) {
      warn(server, 'skills', ownName, `is hidden: its URI is one that server ${named} could have`);
    } else if (taken.take(entry)) joined.push(entry);
    else later.push(entry);
  }
  for (const entry of later) {
    const renamed = renameSkill(entry);
    if (taken.take(renamed)) joined.push(renamed);
    else {
      const problem = 'is hidden: other servers have URIs of its files, too';
      warn(entry.server, 'skills', entry.ownName, problem);
    }
  }
  return joined;
}

interface TakenUris {
  /** False where one of the skill's URIs belongs to another server. */
  take(skill: Entry): boolean;
}

function createTakenUris({ entries, positions }: ListedResources): TakenUris {
  const files = new Map<string, string>();
  const roots = new Map<string, string>();
  /** Directories in which somebody has a skill. */
  const above = new Map<string, string>();

  const ofResource = (uri: string) => entries[positions.get(uri) ?? -1]?.server;

  function isFree({ server, name, files: own = [] }: Entry, root: string): boolean {
    const isOther = (owner: string | undefined) => owner !== undefined && owner !== server;
    if (own.some((file) => isOther(ofResource(file.name)) || isOther(files.get(file.name))))
      return false;
    // A file that one server has in a directory would be found at another that has the directory.
    if (isOther(above.get(root))) return false;
    return !listDirectories(name).some((directory) => isOther(roots.get(directory)));
  }

  return {
    take(skill) {
      const { server, name, files: own = [] } = skill;
      const root = requireSkillRoot(name);
      if (!isFree(skill, root)) return false;
      for (const file of own) files.set(file.name, server);
      roots.set(root, server);
      for (const directory of listDirectories(root)) {
        // Each of several that have skills there is another's to the others.
        above.set(directory, isSame(above.get(directory), server) ? server : SEVERAL);
      }
      return true;
    },
  };
}

const isSame = (known: string | undefined, server: string): boolean =>
  known === undefined || known === server;

/** No server is called so. */
const SEVERAL = ' ';

/** As the later of two servers with the same URIs has it. */
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
