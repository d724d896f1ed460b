// §25.2: the paths whose lists are measured: /mcp, each server, each view.
import type { Cursor } from '../../mcp/catalog/catalog.ts';
import { LISTING_CONTEXT } from '../../mcp/catalog/list-tools.ts';
import type { CallerContext, ServedCatalog } from '../../mcp/catalog/served-catalog.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { Plan } from '../catalog/plan.ts';
import { toWho, type View, type Who } from '../catalog/view.ts';
import type { MeasuredPath } from './measure-lists.ts';

interface NamedPath extends Pick<MeasuredPath, 'kind' | 'name' | 'title'> {
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
      ({ config: { name, title }, hasServer }): NamedPath => ({
        kind: 'view',
        name,
        title,
        hasServer,
      }),
    ),
  ];
}

const isPersonal = (plan: Plan, { hasServer }: NamedPath): boolean =>
  [...plan.servers].some(([name, { server }]) => hasServer(name) && server.isPersonal);

/** Whoever may see it: no rules are asked. Unless it `waits` it is what is known now. */
export const listPathsForOperators = (
  plan: Plan,
  openView: (name: string) => View,
  { waits }: { readonly waits: boolean },
): readonly MeasuredPath[] =>
  listNamedPaths(plan).map(({ hasServer, ...path }) => ({
    ...path,
    isPersonal: isPersonal(plan, { hasServer, ...path }),
    listTools: () =>
      listEntries(openView(path.name), toWho(LISTING_CONTEXT, LISTING_CONTEXT), waits),
  }));

async function listEntries(view: View, who: Who, waits: boolean): Promise<readonly JsonObject[]> {
  const entries = waits
    ? (await view.list('tools', who)).entries
    : await view.listAtHand('tools', who);
  return entries.map(({ item, ownItem }) => (view.shown === 'own' ? ownItem : item));
}

/** `/mcp` and the views as the caller gets them, by rules. */
export const listPathsOf = (
  plan: Plan,
  findCatalog: (name: string) => ServedCatalog | undefined,
  caller: Pick<CallerContext, 'user' | 'clientId'>,
): readonly MeasuredPath[] =>
  listNamedPaths(plan)
    .filter(({ kind }) => kind !== 'server')
    .map(({ hasServer, ...path }) => ({
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
