// §25.2: the paths whose lists are measured: /mcp, each server, each view.

import type { Policies } from '../../mcp/calls/policy.ts';
import type { Cursor } from '../../mcp/catalog/catalog.ts';
import { LISTING_CONTEXT, type OwnCatalog } from '../../mcp/catalog/own-catalog.ts';
import type { CallerContext, ServedCatalog } from '../../mcp/catalog/served-catalog.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { createBuiltIn } from '../built-in.ts';
import type { FetchedList } from '../fetch-list.ts';
import { createJoinLists, type JoinedList } from '../join-lists.ts';
import { createNaming } from '../naming.ts';
import { type CatalogFile, listGuardServers, type Plan } from '../plan.ts';
import { createPrepareList, type Entry } from '../prepare-list.ts';
import { listSearched } from '../search/search-catalog.ts';
import { toWho, type View, type Who } from '../view.ts';
import { createPlannedView } from '../views/curated-view.ts';
import type { ViewConfig } from '../views/view-shape.ts';
import type { MeasuredPath } from './measure-lists.ts';

interface NamedPath extends Pick<MeasuredPath, 'kind' | 'name' | 'title'> {
  /** Set for a view that is searched. */
  readonly searched?: ViewConfig | undefined;
  /** True if it has something of the server. */
  hasServer(name: string): boolean;
}

function listNamedPaths(plan: Plan): readonly NamedPath[] {
  const servers = [...plan.servers.keys()];
  return [
    { kind: 'all', name: '', hasServer: () => true },
    ...servers.map(
      (name): NamedPath => ({ kind: 'server', name, hasServer: (other) => other === name }),
    ),
    ...[...plan.views.values()].map(
      ({ config, hasServer }): NamedPath => ({
        kind: 'view',
        name: config.name,
        title: config.title,
        searched: config.search ? config : undefined,
        hasServer,
      }),
    ),
  ];
}

/** The lists of a server that is down are as little known as those that differ between users. */
const isPersonal = (plan: Plan, { hasServer }: NamedPath): boolean =>
  [...plan.servers].some(
    ([name, { server }]) => hasServer(name) && (server.isPersonal || server.isDown()),
  );

/** Whoever may see it: no rules are asked. Unless it `waits` it is what is known now. */
export const listPathsForOperators = (
  plan: Plan,
  openView: (name: string) => View,
  { waits }: { readonly waits: boolean },
): readonly MeasuredPath[] =>
  listNamedPaths(plan).map(({ hasServer, searched, ...path }) => ({
    ...path,
    isPersonal: isPersonal(plan, { hasServer, ...path }),
    async listTools() {
      const view = openView(path.name);
      const entries = await listEntries(view, toWho(LISTING_CONTEXT, LISTING_CONTEXT), waits);
      if (searched !== undefined) return listSearched(entries, searched);
      return entries.map(({ item, ownItem }) => (view.shown === 'own' ? ownItem : item));
    },
  }));

const listEntries = async (view: View, who: Who, waits: boolean): Promise<readonly Entry[]> =>
  waits ? (await view.list('tools', who)).entries : view.listAtHand('tools', who);

/** `/mcp` and the views as the caller gets them, by rules. */
export const listPathsOf = (
  plan: Plan,
  findCatalog: (name: string) => ServedCatalog | undefined,
  caller: Pick<CallerContext, 'user' | 'clientId'>,
): readonly MeasuredPath[] =>
  listNamedPaths(plan)
    .filter(({ kind }) => kind !== 'server')
    .map(({ hasServer, searched: _, ...path }) => ({
      ...path,
      isPersonal: isPersonal(plan, { hasServer, ...path }),
      async listTools() {
        const catalog = findCatalog(path.name);
        if (catalog === undefined) return [];
        return listPages(catalog, { ...LISTING_CONTEXT, ...caller, view: catalog.view });
      },
    }));

async function listPages(
  { list }: ServedCatalog,
  context: CallerContext,
): Promise<readonly JsonObject[]> {
  const tools: JsonObject[] = [];
  let cursor: Cursor;
  do {
    const page = await list('tools', cursor, context);
    tools.push(...page.items.filter(isObject));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
}

// §25.2: the paths of a configuration file, of lists that were asked for apart from a gateway that serves them.

export interface FetchedTools {
  /** The file's servers that could be asked, by name. */
  readonly tools: ReadonlyMap<string, FetchedList>;
  /** The servers of which that is what one user sees, or all that can be known without one. */
  readonly personal: ReadonlySet<string>;
}

/** As the gateway would list them, before rules. */
export async function listFetchedPaths(
  file: CatalogFile,
  { tools, personal }: FetchedTools,
  ownCatalog: OwnCatalog,
  policies: Pick<Policies, 'findHidden'>,
): Promise<readonly MeasuredPath[]> {
  const naming = createNaming(file);
  const guardServers = listGuardServers(file);
  const seen = file.servers.filter(({ name }) => !guardServers.includes(name));
  const prepared = seen.map((config) => {
    const list = tools.get(config.name);
    const prepareList = createPrepareList({
      config,
      // Servers where users log in are not asked.
      hasConnectTool: false,
      naming,
      policies,
      warn: IGNORED,
      listGuards: undefined,
    });
    return list === undefined ? NOTHING : prepareList('tools', list).entries;
  });
  const own = file.builtIn
    ? (await createBuiltIn(ownCatalog).list('tools', LISTING_CONTEXT)).entries
    : NOTHING;
  const joined = createJoinLists(naming, IGNORED)('tools', [own, ...prepared]);
  const isAbsent = ({ name }: { readonly name: string }) => personal.has(name) || !tools.has(name);

  const views = (file.views ?? []).map((config): MeasuredPath => {
    const planned = createPlannedView(config, naming);
    const isWhole = !seen.some((one) => planned.hasServer(one.name) && isAbsent(one));
    const { entries } = planned.curate('tools', joined);
    const { name, title } = config;
    return {
      kind: 'view',
      name,
      title,
      isPersonal: !isWhole,
      listTools: async () => (config.search ? listSearched(entries, config) : show(entries)),
    };
  });

  return [
    {
      kind: 'all',
      name: '',
      isPersonal: seen.some(isAbsent),
      listTools: async () => show(joined.entries),
    },
    ...seen.map(
      (config, place): MeasuredPath => ({
        kind: 'server',
        name: config.name,
        isPersonal: isAbsent(config),
        listTools: async () => (prepared[place] ?? NOTHING).map(({ ownItem }) => ownItem),
      }),
    ),
    ...views,
  ];
}

const NOTHING: readonly Entry[] = [];
/** Hidden items do not matter here. */
const IGNORED = () => {};

const show = (entries: JoinedList['entries']) => entries.map(({ item }) => item);
