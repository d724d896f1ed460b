// §25.2: the paths whose lists are measured: /mcp, each server, each view.
import type { Cursor } from '../../mcp/catalog/catalog.ts';
import { LISTING_CONTEXT } from '../../mcp/catalog/own-catalog.ts';
import type { CallerContext, ServedCatalog } from '../../mcp/catalog/served-catalog.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { Plan } from '../catalog/plan.ts';
import type { Entry } from '../catalog/prepare-list.ts';
import { toWho, type View, type Who } from '../catalog/view.ts';
import { listSearched } from '../search/search-catalog.ts';
import type { ViewConfig } from '../views/view-config.ts';
import type { MeasuredPath } from './measure-lists.ts';

interface NamedPath extends Pick<MeasuredPath, 'kind' | 'name' | 'title'> {
  /** Of a view that is searched. */
  readonly searched?: ViewConfig | undefined;
  /** Whether it has something of the server. */
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

/** What a server that is down lists is as little known as what it lists for each user. */
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
