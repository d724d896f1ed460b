// SEP-2640: files of skills, and the server that each belongs to. A file may be missing from the list of resources.
import { listDirectories, requireSkillRoot } from '../../mcp/catalog/content.ts';
import { computeOnce } from '../../platform/bounded-map.ts';
import { toMovedUri, toOwnUri } from '../apps/app-tools.ts';
import { BUILT_IN, type Entry } from '../prepare-list.ts';
import type { FoundResource, View } from '../view.ts';

type Shown = View['shown'];

const placeSkills = {
  own: computeOnce((skills: readonly Entry[]) => place(skills, 'own')),
  joined: computeOnce((skills: readonly Entry[]) => place(skills, 'joined')),
};

/** Keyed by the URIs that clients see. */
function place(skills: readonly Entry[], shown: Shown) {
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

/** Finds a file that a skill declares. */
export const findSkillFile = (
  skills: readonly Entry[],
  uri: string,
  shown: Shown,
): FoundResource | undefined => toFound(placeSkills[shown](skills).files.get(uri), uri, shown);

/** Finds the innermost skill whose folder is, or contains, the URI. */
export function findSkillAround(
  skills: readonly Entry[],
  uri: string,
  shown: Shown,
): Entry | undefined {
  const { roots } = placeSkills[shown](skills);
  const around = [...listDirectories(uri), uri].reverse();
  const root = around.find((directory) => roots.has(directory));
  return root === undefined ? undefined : roots.get(root);
}

/** Finds a resource in the folder of a skill, whether or not the skill declares it. */
export const findInSkillFolder = (
  skills: readonly Entry[],
  uri: string,
  shown: Shown,
): FoundResource | undefined => toFound(findSkillAround(skills, uri, shown), uri, shown);

const toFound = (skill: Entry | undefined, uri: string, shown: Shown): FoundResource | undefined =>
  skill && locateFile(skill, uri, shown);

/** `uri` is the URI that clients see at this path. */
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
