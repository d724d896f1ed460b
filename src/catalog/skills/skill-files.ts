// SEP-2640: files of skills, and the server to which each belongs: it need not be in the list of resources.
import { listDirectories, requireSkillRoot } from '../../mcp/catalog/skill-directories.ts';
import { isObject } from '../../platform/json.ts';
import { toMovedUri, toOwnUri } from '../apps/app-tools.ts';
import type { WarnOfItem } from '../check-item.ts';
import type { JoinedList } from '../join-lists.ts';
import { BUILT_IN, type Entry } from '../prepare-list.ts';
import type { FoundResource, View } from '../view.ts';

type Shown = View['shown'];

interface SkillPlaces {
  /** Keyed by URIs as clients see them. */
  readonly files: ReadonlyMap<string, Entry>;
  readonly roots: ReadonlyMap<string, Entry>;
}

const known: Readonly<Record<Shown, WeakMap<readonly Entry[], SkillPlaces>>> = {
  own: new WeakMap(),
  joined: new WeakMap(),
};

/** Looks at each list once. */
function placeSkills(skills: readonly Entry[], shown: Shown): SkillPlaces {
  const placed = known[shown].get(skills) ?? place(skills, shown);
  known[shown].set(skills, placed);
  return placed;
}

function place(skills: readonly Entry[], shown: Shown): SkillPlaces {
  const files = new Map<string, Entry>();
  const roots = new Map<string, Entry>();
  for (const skill of skills) {
    for (const { name } of skill.files ?? []) {
      const shownUri = shown === 'own' ? toOwnFile(skill, name) : name;
      if (!files.has(shownUri)) files.set(shownUri, skill);
    }
    roots.set(requireSkillRoot(shown === 'own' ? skill.ownName : skill.name), skill);
  }
  return { files, roots };
}

/** The file of a skill that says so itself. */
export const findSkillFile = (
  skills: readonly Entry[],
  uri: string,
  shown: Shown,
): FoundResource | undefined => toFound(placeSkills(skills, shown).files.get(uri), uri, shown);

/** The skill whose folder the URI is, or lies in: the innermost. */
export function findSkillAround(
  skills: readonly Entry[],
  uri: string,
  shown: Shown,
): Entry | undefined {
  const { roots } = placeSkills(skills, shown);
  const around = [...listDirectories(uri), uri].reverse();
  const root = around.find((directory) => roots.has(directory));
  return root === undefined ? undefined : roots.get(root);
}

/** Finds what lies in the folder of a skill, whether the skill names it or not. */
export const findInSkillFolder = (
  skills: readonly Entry[],
  uri: string,
  shown: Shown,
): FoundResource | undefined => toFound(findSkillAround(skills, uri, shown), uri, shown);

const toFound = (skill: Entry | undefined, uri: string, shown: Shown): FoundResource | undefined =>
  skill && locateFile(skill, uri, shown);

/** `uri` as clients see it at the path. */
export function locateFile(skill: Entry, uri: string, shown: Shown): FoundResource {
  const { server } = skill;
  const found = { server, annotations: {} };
  return shown === 'own'
    ? { ...found, ownUri: uri, uri: isRenamed(skill) ? toMovedUri(server, uri) : uri }
    : { ...found, ownUri: toOwnFile(skill, uri), uri };
}

export const isRenamed = ({ server, name, ownName }: Entry): boolean =>
  server !== BUILT_IN && name !== ownName;

const toOwnFile = (skill: Entry, uri: string): string =>
  isRenamed(skill) ? toOwnUri(skill.server, uri) : uri;

// SEP-2640: the skills of all servers as one list. Each keeps its URIs where they are nobody else's: a file that is read has to be
// that of the skill which names it.

/** `resources` are those that all of them list: there, too, the first that has a URI keeps it. */
export function joinSkills(
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

/** False where one of the skill's URIs belongs to another server. */
type TakeUris = (skill: Entry) => boolean;

function createTakeUris({ entries, positions }: JoinedList): TakeUris {
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

  return function take(skill) {
    const { server, name, files: own = [] } = skill;
    const root = requireSkillRoot(name);
    if (!isFree(skill, root)) return false;
    for (const file of own) files.set(file.name, server);
    roots.set(root, server);
    for (const directory of listDirectories(root)) {
      // Each of several that have skills there is another's to the others.
      above.set(directory, (above.get(directory) ?? server) === server ? server : SEVERAL);
    }
    return true;
  };
}

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
