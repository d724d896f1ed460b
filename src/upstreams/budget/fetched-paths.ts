// §25.2: the paths of a configuration file, of lists that were asked for apart from a gateway that serves them.
import { LISTING_CONTEXT, type OwnCatalog } from '../../mcp/catalog/own-catalog.ts';
import type { GuardsConfig } from '../../policy/guards/guard-config.ts';
import type { Policies } from '../../policy/policy.ts';
import { createBuiltIn } from '../catalog/built-in.ts';
import type { FetchedList } from '../catalog/fetch-list.ts';
import { createJoinLists, type JoinedList } from '../catalog/join-lists.ts';
import { createNaming } from '../catalog/naming.ts';
import { listGuardServers } from '../catalog/plan.ts';
import { createPrepareList, type Entry } from '../catalog/prepare-list.ts';
import type { ServersConfig } from '../config/upstream-config.ts';
import { listSearched } from '../search/search-catalog.ts';
import { createPlannedView } from '../views/planned-view.ts';
import type { ViewsConfig } from '../views/view-config.ts';
import type { MeasuredPath } from './measure-lists.ts';

export interface FetchedTools {
  /** Of the file's servers, those that could be asked, by name. */
  readonly tools: ReadonlyMap<string, FetchedList>;
  /** Of which servers that is what one user sees, or all that can be known without one. */
  readonly personal: ReadonlySet<string>;
}

interface FetchedPathsDeps {
  readonly ownCatalog: OwnCatalog;
  readonly policies: Pick<Policies, 'findHidden'>;
}

/** As the gateway would list them, before rules. */
export async function listFetchedPaths(
  file: ServersConfig & ViewsConfig & GuardsConfig,
  { tools, personal }: FetchedTools,
  { ownCatalog, policies }: FetchedPathsDeps,
): Promise<readonly MeasuredPath[]> {
  const naming = createNaming(file);
  const guardServers = listGuardServers(file);
  const seen = file.servers.filter(({ name }) => !guardServers.includes(name));
  const prepared = seen.map((config) => {
    const list = tools.get(config.name);
    const prepareList = createPrepareList({
      config,
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
/** What is hidden is no matter here. */
const IGNORED = () => {};

const show = (entries: JoinedList['entries']) => entries.map(({ item }) => item);
