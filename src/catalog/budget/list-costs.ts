// §25.2: the cost of each path's tool list for a model that reads it.

import type { Policies } from '../../mcp/calls/policy.ts';
import { LISTING_CONTEXT, listTools, type OwnCatalog } from '../../mcp/catalog/own-catalog.ts';
import type { CallerContext, ServedCatalog } from '../../mcp/catalog/served-catalog.ts';
import { type Clock, createTurns } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import { createBuiltIn } from '../built-in.ts';
import type { FetchedList } from '../fetch-list.ts';
import { createJoinLists } from '../join-lists.ts';
import {
  type CatalogSetup,
  createPlannedView,
  listGuardServers,
  type Plan,
  toWho,
} from '../plan.ts';
import { createNaming, createPrepareList, type Entry } from '../prepare-list.ts';
import { listSearched } from '../search/search-catalog.ts';
import { loadCountTokens } from '../search/search-tools.ts';
import type { View } from '../view.ts';

export interface ListCost {
  readonly kind: 'all' | 'server' | 'view';
  /** Name of the server or view; `''` for `/mcp`. */
  readonly name: string;
  /** The title that people see instead of a view's name. */
  readonly title?: string | undefined;
  /** The number of tools that are listed. */
  readonly tools: number;
  /** The approximate number of tokens. */
  readonly tokens: number;
  /** The ten most expensive ones, in descending order. */
  readonly expensive: readonly ToolCost[];
  /** True if some servers list different tools for each user, or require a login first: users may then see more tools. */
  readonly isPersonal: boolean;
}

interface ToolCost {
  readonly name: string;
  readonly tokens: number;
}

/** A longer list causes a warning: models choose worse from long lists, and every conversation begins with the list. */
export const WARNED_TOKENS = 20_000;
const MOST_EXPENSIVE = 10;

/** A list to measure. */
interface MeasuredPath extends Pick<ListCost, 'kind' | 'name' | 'title' | 'isPersonal'> {
  /** The tools in the form that clients of this path get. */
  list(): Promise<readonly JsonObject[]>;
}

/** Measures the lists one after another, each in its own turn of the event loop. */
export async function measureLists(
  paths: readonly MeasuredPath[],
  clock: Clock,
): Promise<readonly ListCost[]> {
  const countTokens = await loadCountTokens();
  const measured: ListCost[] = [];
  for (const { list, ...path } of paths) {
    const work = createTurns(clock);
    const costs: ToolCost[] = [];
    for (const tool of await list()) {
      if (work.isOver()) await work.next();
      costs.push({ name: String(tool.name), tokens: countTokens(tool) });
    }
    measured.push({
      ...path,
      tools: costs.length,
      tokens: costs.reduce((sum, { tokens }) => sum + tokens, 0),
      expensive: costs.toSorted((one, other) => other.tokens - one.tokens).slice(0, MOST_EXPENSIVE),
    });
  }
  return measured;
}

// §25.2: the paths whose lists are measured: /mcp, each server, each view.

type PlannedView = ReturnType<typeof createPlannedView>;

/**
 * `isUnknown` is true if a server's list is not known, or not completely. `name` is the name of the server or view; `''` for
 * `/mcp`.
 */
function listPaths(
  servers: readonly string[],
  views: Iterable<PlannedView>,
  isUnknown: (server: string) => boolean,
  list: (name: string, view?: PlannedView) => Promise<readonly JsonObject[]>,
): readonly MeasuredPath[] {
  return [
    { kind: 'all', name: '', isPersonal: servers.some(isUnknown), list: () => list('') },
    ...servers.map(
      (name): MeasuredPath => ({
        kind: 'server',
        name,
        isPersonal: isUnknown(name),
        list: () => list(name),
      }),
    ),
    ...Array.from(views, (view): MeasuredPath => {
      const { name, title } = view.config;
      const isPersonal = servers.some((one) => view.hasServer(one) && isUnknown(one));
      return { kind: 'view', name, title, isPersonal, list: () => list(name, view) };
    }),
  ];
}

const listServedPaths = (plan: Plan, list: Parameters<typeof listPaths>[3]) =>
  listPaths(
    [...plan.servers.keys()],
    plan.views.values(),
    (name) => {
      const server = plan.servers.get(name)?.server;
      // The lists of a server that is down are unknown, like those that differ between users.
      return server?.isPersonal === true || server?.isDown() === true;
    },
    list,
  );

/** Before rules are applied, and as far as the lists are known: nothing is requested. */
export const listPathsForOperators = (
  plan: Plan,
  openView: (name: string) => View,
): readonly MeasuredPath[] =>
  listServedPaths(plan, async (name, planned) => {
    const view = openView(name);
    const who = toWho(LISTING_CONTEXT, LISTING_CONTEXT);
    const { entries } = await view.list('tools', who, 'peek');
    return view.shown === 'own'
      ? entries.map(({ ownItem }) => ownItem)
      : showTools(entries, planned);
  });

const showTools = (entries: readonly Entry[], view: PlannedView | undefined) =>
  view?.config.search === true
    ? listSearched(entries, view.config)
    : entries.map(({ item }) => item);

/** `/mcp` and the views, as far as the rules let the caller see them. */
export const listPathsOf = (
  plan: Plan,
  findCatalog: (name: string) => ServedCatalog | undefined,
  caller: Pick<CallerContext, 'user' | 'clientId'>,
): readonly MeasuredPath[] =>
  listServedPaths(plan, async (name) => {
    const catalog = findCatalog(name);
    return catalog === undefined
      ? []
      : listTools(catalog, { ...LISTING_CONTEXT, ...caller, view: catalog.view });
  }).filter(({ kind }) => kind !== 'server');

// §25.2: the costs for the paths of a configuration file, from lists that were requested without running a gateway.

export interface FetchedTools {
  /** The file's servers that responded, by name. */
  readonly tools: ReadonlyMap<string, FetchedList>;
  /** Servers whose list is the list of one user, or only the part that is known without a user. */
  readonly personal: ReadonlySet<string>;
}

/** The lists that the gateway would serve, before rules are applied. */
export async function listFetchedPaths(
  file: CatalogSetup['file'],
  { tools, personal }: FetchedTools,
  ownCatalog: OwnCatalog,
  policies: Pick<Policies, 'findHidden'>,
): Promise<readonly MeasuredPath[]> {
  const naming = createNaming(file);
  const guardServers = listGuardServers(file);
  const servers = file.servers.filter(({ name }) => !guardServers.includes(name));
  const prepared = new Map(
    servers.map((config) => {
      const list = tools.get(config.name);
      // Servers that users log in to are not queried.
      const prepareList = createPrepareList({ config, naming, policies });
      return [config.name, list === undefined ? [] : prepareList(list).entries];
    }),
  );
  const own = file.builtIn
    ? (await createBuiltIn(ownCatalog).list('tools', LISTING_CONTEXT)).entries
    : [];
  const joined = createJoinLists(naming, IGNORED)('tools', [own, ...prepared.values()]);
  return listPaths(
    [...prepared.keys()],
    (file.views ?? []).map((config) => createPlannedView(config, naming)),
    (name) => personal.has(name) || !tools.has(name),
    async (name, view) =>
      prepared.get(name)?.map(({ ownItem }) => ownItem) ??
      showTools((view?.curate(joined) ?? joined).entries, view),
  );
}

/** Hidden items do not matter here. */
const IGNORED = () => {};
