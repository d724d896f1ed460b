// §25.1: a view, as a configuration has it: what it takes of what `/mcp` serves, in which order, and how it describes it.

import { decodeResource } from '../../mcp/catalog/resource-text.ts';
import { computeOnce } from '../../platform/compute-once.ts';
import { canBegin, compileGlob } from '../../platform/glob.ts';
import { createJoinLists, indexEntries, type JoinedList, type JoinedPart } from '../join-lists.ts';
import type { Naming } from '../naming.ts';
import type { Entry } from '../prepare-list.ts';
import type { ViewConfig } from './view-shape.ts';

export interface PlannedView extends JoinedPart {
  readonly config: ViewConfig;
  includes(item: CuratedItem): boolean;
  /** The same list as long as it is given the same. */
  curate(entries: readonly Entry[]): JoinedList;
}

/** As clients of `/mcp` see it. */
export interface CuratedItem extends Pick<Entry, 'kind' | 'server' | 'name'> {
  readonly namesBegin?: string | undefined;
}

export function createPlannedView(config: ViewConfig, naming: Naming): PlannedView {
  const servers = config.servers && new Map(config.servers.map((name, place) => [name, place]));
  const { tools, prompts, resources } = config;
  const patterns = {
    tool: tools && compile(tools),
    prompt: prompts && compile(prompts),
    resource: resources && compile(resources),
  };

  /** At which place of the file's patterns something stands; `NOWHERE` where none fits. */
  function rank({ kind, name, namesBegin }: CuratedItem): number {
    const given = patterns[kind];
    if (given === undefined) return 0;
    // The tool by which users log in at a server stands for all that they find there (§24.3).
    if (namesBegin !== undefined)
      return given.globs.findIndex((glob) => canBegin(glob, namesBegin));
    const text = kind === 'resource' ? decodeResource(name) : name;
    return text === undefined ? NOWHERE : given.fits.findIndex((fits) => fits(text));
  }

  const hasServer = (name: string) => servers === undefined || servers.has(name);
  const placeServer = (name: string): number => servers?.get(name) ?? 0;

  const curate = computeOnce((entries: readonly Entry[]): JoinedList => {
    const chosen = entries
      .map((entry) => ({ entry, place: rank(entry), server: placeServer(entry.server) }))
      .filter(({ entry, place }) => place !== NOWHERE && hasServer(entry.server))
      // A skill of which a file is missing could not be checked.
      .filter(({ entry: { files = [] } }) => files.every((file) => rank(file) !== NOWHERE));
    // Sorting is stable: what is alike in both stays in the order of /mcp.
    chosen.sort((one, other) => one.place - other.place || one.server - other.server);
    return indexEntries(
      chosen.map(({ entry }) => {
        const description = entry.kind === 'tool' ? config.describe[entry.name] : undefined;
        return description === undefined
          ? entry
          : { ...entry, item: { ...entry.item, description } };
      }),
    );
  });

  return {
    config,
    // A memory of its own: those of many views would push each other out of one.
    joinLists: createJoinLists(naming, IGNORED),
    hasServer,
    includes: (item) => hasServer(item.server) && rank(item) !== NOWHERE,
    curate,
  };
}

/** The joined list tells where names collide. */
const IGNORED = () => {};

const NOWHERE = -1;

const compile = (globs: readonly string[]) => ({ globs, fits: globs.map(compileGlob) });
