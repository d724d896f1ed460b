// §25.1: one view, as a configuration has it: what it takes of what `/mcp` serves, in which order, and how it describes it.
import { canBegin, compileGlob } from '../../platform/glob.ts';
import { findNearestName } from '../../platform/nearest-name.ts';
import { quote } from '../../platform/text.ts';
import { decodeResource } from '../../policy/rules/may.ts';
import { type ItemKind, LIST_KINDS, type ListKind } from '../../protocol/list-kinds.ts';
import {
  createJoinLists,
  indexEntries,
  type JoinedList,
  type JoinLists,
} from '../catalog/join-lists.ts';
import type { Naming } from '../catalog/naming.ts';
import type { Entry } from '../catalog/prepare-list.ts';
import type { ViewConfig } from './view-config.ts';

export interface PlannedView {
  readonly config: ViewConfig;
  /** Of its own: those of many views would push each other out of one memory. */
  readonly joinLists: JoinLists;
  /** `''` for the built-in catalogue. */
  hasServer(name: string): boolean;
  includes(item: CuratedItem): boolean;
  /** The same list as long as it is given the same; `isComplete` where all of its servers have said what they have. */
  curate(kind: ListKind, list: JoinedList, isComplete: boolean): JoinedList;
}

/** As clients of `/mcp` see it. */
export interface CuratedItem extends Pick<Entry, 'kind' | 'server' | 'name'> {
  readonly namesBegin?: string | undefined;
}

/** A sentence; each once. */
export type WarnOfView = (view: string, problem: string) => void;

interface PlannedViewDeps {
  readonly naming: Naming;
  readonly warn: WarnOfView;
}

export function createPlannedView(
  config: ViewConfig,
  { naming, warn }: PlannedViewDeps,
): PlannedView {
  const servers = config.servers && new Map(config.servers.map((name, place) => [name, place]));
  const rank = createRank(config);
  const curated = new WeakMap<readonly Entry[], JoinedList>();
  const told = new WeakSet<readonly Entry[]>();
  /** By kind and pattern: a server that changes its names all the time changes the nearest name, and must not fill the log. */
  const warned = new Set<string>();
  const hasServer = (name: string) => servers === undefined || servers.has(name);
  const placeServer = (name: string): number => servers?.get(name) ?? 0;

  function curate(kind: ListKind, { entries }: JoinedList, isComplete: boolean): JoinedList {
    const known = curated.get(entries) ?? select(kind, entries);
    curated.set(entries, known);
    if (isComplete && !told.has(entries)) {
      told.add(entries);
      warnOfStrangers(kind, entries);
    }
    return known;
  }

  function select(kind: ListKind, entries: readonly Entry[]): JoinedList {
    const chosen = entries
      .map((entry) => ({ entry, place: rank(entry), server: placeServer(entry.server) }))
      .filter(({ entry, place }) => place !== NOWHERE && hasServer(entry.server))
      .filter(({ entry }) => hasAllFiles(entry));
    // Sorting is stable: what is alike in both stays in the order of /mcp.
    chosen.sort((one, other) => one.place - other.place || one.server - other.server);
    return indexEntries(
      chosen.map(({ entry }) => (kind === 'tools' ? describe(entry) : entry)),
      ({ name }) => name,
    );
  }

  /** A skill of which a file is missing could not be checked. */
  const hasAllFiles = ({ files = [] }: Entry): boolean =>
    files.every((file) => rank(file) !== NOWHERE);

  function describe(entry: Entry): Entry {
    const description = config.describe[entry.name];
    return description === undefined ? entry : { ...entry, item: { ...entry.item, description } };
  }

  /** What the file names, and no server of the view has. Resources are left out: not all that can be read are listed. */
  function warnOfStrangers(kind: ListKind, entries: readonly Entry[]): void {
    const { ruled, noun } = LIST_KINDS[kind];
    if (ruled === 'resource') return;
    const there = entries.filter(({ server }) => hasServer(server));
    const names = there.map(({ name }) => name);
    const given = ruled === 'tool' ? [...(config.tools ?? []), ...config.pinned] : config.prompts;
    const idle = (given ?? []).filter((glob) => !there.some((entry) => fitsOne(glob, entry)));
    const described = ruled === 'tool' ? Object.keys(config.describe) : [];
    const unknown = [...idle, ...described.filter((name) => !names.includes(name))];
    for (const glob of new Set(unknown)) {
      if (warned.has(`${ruled} ${glob}`)) continue;
      warned.add(`${ruled} ${glob}`);
      const nearest = suggest(glob, names, naming);
      const whose = config.servers === undefined ? '' : ' of its servers';
      warn(
        config.name,
        `no ${noun}${whose} ${/[*?]/.test(glob) ? 'fits' : 'is called'} ${quote(glob, MAX_SHOWN)}.${nearest === undefined ? '' : ` Did you mean ${quote(nearest, MAX_SHOWN)}?`}`,
      );
    }
  }

  return {
    config,
    joinLists: createJoinLists(naming, IGNORED),
    hasServer,
    includes: (item) => hasServer(item.server) && rank(item) !== NOWHERE,
    curate,
  };
}

const MAX_SHOWN = 100;

/** Where names collide is said of the joined list. */
const IGNORED = () => {};

const NOWHERE = -1;

/** At which place of the file's patterns something stands; `NOWHERE` where none fits. */
function createRank({ tools, prompts, resources }: ViewConfig): (item: CuratedItem) => number {
  const patterns: Readonly<Record<ItemKind, CompiledPatterns | undefined>> = {
    tool: tools && compile(tools),
    prompt: prompts && compile(prompts),
    resource: resources && compile(resources),
  };

  return function rank({ kind, name, namesBegin }) {
    const given = patterns[kind];
    if (given === undefined) return 0;
    // The tool by which users log in at a server stands for all that they find there (§24.3).
    if (namesBegin !== undefined)
      return given.globs.findIndex((glob) => canBegin(glob, namesBegin));
    const text = kind === 'resource' ? decodeResource(name) : name;
    return text === undefined ? NOWHERE : given.fits.findIndex((fits) => fits(text));
  };
}

interface CompiledPatterns {
  readonly globs: readonly string[];
  readonly fits: readonly ((text: string) => boolean)[];
}

const compile = (globs: readonly string[]): CompiledPatterns => ({
  globs,
  fits: globs.map(compileGlob),
});

const fitsOne = (glob: string, { name, namesBegin }: Entry): boolean =>
  namesBegin === undefined ? compileGlob(glob)(name) : canBegin(glob, namesBegin);

/** The name that is most like it; of a pattern, the same with the beginning that a server has. */
function suggest(glob: string, names: readonly string[], naming: Naming): string | undefined {
  const [head = ''] = glob.split(/[*?]/, 1);
  if (head === glob) return findNearestName(glob, names);
  const begin = naming.listStarts().find((start) => start !== '' && head.startsWith(start));
  if (begin !== undefined) return undefined;
  const nearest = findNearestName(head, naming.listStarts());
  return nearest === undefined ? undefined : nearest + glob.slice(head.length);
}
