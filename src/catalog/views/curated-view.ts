// §25.1: /mcp/<view>: some of what /mcp serves, under the same names. It only takes away: rules and lock hold here as there.

import { decodeResource } from '../../mcp/catalog/resource-text.ts';
import { LIST_KINDS, type ListKind } from '../../mcp/protocol/list-kinds.ts';
import { computeOnce } from '../../platform/compute-once.ts';
import { canBegin, compileGlob } from '../../platform/glob.ts';
import { isAppUri, readSharedUri } from '../apps/app-tools.ts';
import { findTemplate } from '../find-template.ts';
import { createJoinLists, indexEntries, type JoinedList, type JoinedPart } from '../join-lists.ts';
import { findIn, findUnlisted, isCalled, joinAll, joinKnown } from '../joined-view.ts';
import type { Naming } from '../naming.ts';
import type { Plan } from '../plan.ts';
import { BUILT_IN, type Entry } from '../prepare-list.ts';
import {
  askByCurrentPlan,
  EMPTY_LIST,
  type FoundItem,
  type ListView,
  type View,
  type Who,
} from '../view.ts';
import type { ViewConfig } from './view-shape.ts';

/** `joined` is the view of `/mcp`. */
export function createCuratedView(name: string, getPlan: () => Plan, joined: View): View {
  const findPlanned = () => getPlan().views.get(name);
  const hasServer = (server: string): boolean => findPlanned()?.hasServer(server) === true;
  const includes = (item: CuratedItem): boolean => findPlanned()?.includes(item) === true;
  const includesResource: View['includes'] = ({ server, uri }) =>
    includes({ kind: 'resource', server, name: uri });

  const list: View['list'] = (kind, who) =>
    askByCurrentPlan(getPlan, async (plan) => {
      const planned = plan.views.get(name);
      if (planned === undefined) return GONE;
      const whole = await joinAll(plan, planned, kind, who);
      return { ...whole, ...planned.curate(whole.entries) };
    });

  const listKnown = (kind: ListKind, who: Who): Promise<JoinedList> =>
    askByCurrentPlan(getPlan, async (plan) => {
      const planned = plan.views.get(name);
      if (planned === undefined) return GONE;
      return planned.curate((await joinKnown(plan, planned, kind, who)).entries);
    });

  /** Nearly always it is known at /mcp who has it: then nothing is waited for. */
  function find(kind: ListKind, wanted: string, who: Who) {
    if (!isCalled(kind)) return findInList(kind, wanted, who);
    // Nothing is asked of a server that is not of the view.
    if (!getPlan().naming.findOwners(wanted).some(hasServer)) return findKnown(kind, wanted, who);
    const found = joined.find(kind, wanted, who);
    return found instanceof Promise ? found.then((one) => admit(kind, one)) : admit(kind, found);
  }

  function admit(kind: ListKind, found: FoundItem | undefined): FoundItem | undefined {
    if (found === undefined) return undefined;
    const item =
      found.kind === 'absent'
        ? { kind: LIST_KINDS[kind].ruled, server: found.server.name, name: found.name }
        : found;
    return includes(item) ? found : undefined;
  }

  const findKnown = async (kind: ListKind, wanted: string, who: Who) =>
    findIn(await listKnown(kind, who), wanted);

  const findInList = async (kind: ListKind, wanted: string, who: Who) =>
    (await findKnown(kind, wanted, who)) ?? findIn(await list(kind, who), wanted);

  const findListed: View['findListed'] = async (uri, who) => {
    const listed = await joined.findListed(uri, who);
    return listed && includesResource(listed) ? listed : undefined;
  };

  /** The resource as its owner at /mcp has it; found here by its own URI, or by a template that is of the view. */
  const findResource: View['findResource'] = async (uri, who) => {
    const atHand = await joined.findListed(uri, who);
    // Skills need the list of resources: both are there then.
    if (atHand === undefined && !isAppUri(uri)) await list('skills', who);
    const listed = atHand ?? (await joined.findListed(uri, who));
    if (listed) return includesResource(listed) ? listed : undefined;
    return askByCurrentPlan(getPlan, async (plan) => {
      const planned = plan.views.get(name);
      if (planned === undefined) return undefined;
      const { server = BUILT_IN } = readSharedUri(uri) ?? {};
      if (plan.servers.has(server) && !planned.hasServer(server)) return undefined;
      const found = await findUnlisted(plan, planned, uri, who);
      if (found === undefined || !planned.hasServer(found.server)) return undefined;
      if (includesResource(found)) return found;
      const { entries } = await list('templates', who);
      return findTemplate(entries, uri)?.server === found.server ? found : undefined;
    });
  };

  return {
    path: name,
    isCurated: true,
    list,
    listAtHand: async (kind, who) => (await listKnown(kind, who)).entries,
    find,
    findListed,
    findResource,
    includes: includesResource,
    findServer: (wanted) => (hasServer(wanted) ? getPlan().servers.get(wanted)?.server : undefined),
    listServers: () =>
      [...getPlan().servers.values()]
        .filter(({ config }) => hasServer(config.name))
        .map(({ server }) => server),
    hasBuiltIn: () => hasServer(BUILT_IN),
    findConfig: () => findPlanned()?.config,
    shown: 'joined',
  };
}

/** The configuration has changed since it was found. */
const GONE: ListView = { ...EMPTY_LIST, ttlMs: 0 };

// §25.1: a view, as a configuration has it: what it takes of what `/mcp` serves, in which order, and how it describes it.

export interface PlannedView extends JoinedPart {
  readonly config: ViewConfig;
  includes(item: CuratedItem): boolean;
  /** The same list as long as it is given the same. */
  curate(entries: readonly Entry[]): JoinedList;
}

/** As clients of `/mcp` see it. */
interface CuratedItem extends Pick<Entry, 'kind' | 'server' | 'name'> {
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
