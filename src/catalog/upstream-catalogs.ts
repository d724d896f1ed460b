// §18.2: all servers behind the gateway as catalogues: one of everything, and one of each.
import { isDeepStrictEqual } from 'node:util';
import type { Policies } from '../mcp/calls/policy.ts';
import type { ApprovableServer } from '../mcp/catalog/approved-items.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import type { OwnCatalog } from '../mcp/catalog/own-catalog.ts';
import type {
  CallerContext,
  IdentifiedCaller,
  ServedCatalog,
} from '../mcp/catalog/served-catalog.ts';
import type { ListKind } from '../mcp/protocol/list-kinds.ts';
import type { ConnectionOwner } from '../mcp/upstream/connection.ts';
import type { Upstream, UpstreamRuntime } from '../mcp/upstream/upstream.ts';
import type { FindFacts, UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { observeUpstream } from '../mcp/upstream/wrap-upstream.ts';
import {
  type ListCost,
  listPathsForOperators,
  listPathsOf,
  measureLists,
} from './budget/list-costs.ts';
import { createBuiltIn } from './built-in.ts';
import { createChangeHub, createMissedLists } from './change-hub.ts';
import { createComplete } from './completions.ts';
import { createFindItem } from './find-item.ts';
import { createPatternWatch, type PatternWatch } from './idle-patterns.ts';
import { createJoinedView } from './joined-view.ts';
import { createLinkedResources, createResolveResource } from './linked-resources.ts';
import {
  createListGuards,
  type ListGuards,
  type ListJudgement,
  NOTHING_SAID,
} from './list-guards.ts';
import { createListPage } from './list-page.ts';
import { createWatching } from './listen-to-servers.ts';
import { createNaming } from './naming.ts';
import { createPassOn } from './pass-on.ts';
import { type CatalogSetup, createPlan, type Plan } from './plan.ts';
import { toJudgedList } from './prepare-list.ts';
import { createResolveTarget } from './resolve-target.ts';
import { createSearchCatalog } from './search/search-catalog.ts';
import { findBuiltIn, type ServedPath } from './served-path.ts';
import { createServer, type Server, type ServerState } from './server.ts';
import { ALL_OFFERS, createServerView, describeView } from './server-view.ts';
import { createServeSkills } from './skills/serve-skills.ts';
import {
  type JoinedTools,
  listJoinedTools,
  listServerTools,
  type ServerTools,
} from './tools-for-operators.ts';
import { createAccess, toWho, type View } from './view.ts';
import { createCuratedView } from './views/curated-view.ts';

/** All that catalogues are made of. */
export interface CatalogSources {
  readonly builtIn: OwnCatalog;
  /** Nothing has to be reachable. */
  openUpstream(config: UpstreamConfig): Upstream;
  readonly findFacts: FindFacts;
  readonly relay: Pick<ServedPath, 'relayCall' | 'connectUser'>;
}

export interface UpstreamCatalogs {
  /** `/mcp`. */
  readonly all: ServedCatalog;
  /** Decide who may see and use what now. */
  readonly policies: Pick<Policies, 'judge'>;
  /** `/mcp/<server>` and `/mcp/<view>`; the same object for as long as the file names it. */
  findNamed(name: string): ServedCatalog | undefined;
  /**
   * Servers that are reached as before keep their connections, processes and lists; those that went end once their
   * calls have.
   */
  reload(next: CatalogSetup): Promise<void>;
  /** §24: a connection to the server was made, ended, or needs a login. */
  noteConnectionChange(owner: ConnectionOwner, server: string): void;
  /** The plan that is served now. */
  getPlan(): Plan;
  /** Each server that must be up for the gateway to be ready, and whether it is. */
  listRequired(): readonly { readonly name: string; readonly isUp: boolean }[];
  /** In the file's order. */
  listServers(): readonly ServerFacts[];
  /** For operators. Undefined where there is no such server. */
  listServerTools(
    name: string,
    part: { readonly skip: number; readonly limit: number },
  ): ServerTools | undefined;
  /** For operators: those that clients see, by name. */
  listApprovable(): ReadonlyMap<string, ApprovableServer>;
  /** §25.2, for operators: what the list of each path costs, whoever may see it. Unless it `waits` nothing is asked for. */
  measureLists(options: { readonly waits: boolean }): Promise<readonly ListCost[]>;
  /** §25.2: the same of `/mcp` and the views, of what the caller sees. */
  measureListsOf(caller: Pick<CallerContext, 'user' | 'clientId'>): Promise<readonly ListCost[]>;
  /** For operators: the tools of `/mcp`, whoever may see them. */
  listJoinedTools(): Promise<JoinedTools>;
  /** Patterns that fit nothing: of the file that is served, or of another one. */
  readonly findIdlePatterns: PatternWatch['findIdle'];
  close(graceMs: number): Promise<void>;
}

/** For operators. */
export interface ServerFacts extends ServerState {
  readonly name: string;
  readonly transport: UpstreamConfig['kind'];
  readonly isRequired: boolean;
  /** It is a guard (§26.2), which clients do not see. */
  readonly isGuard?: true;
}

type FormerServers = Pick<Plan, 'servers' | 'guardServers'>;

const NO_SERVERS: FormerServers = { servers: new Map(), guardServers: new Map() };

/** Milliseconds for which calls to a server may go on that is no longer in the file. */
const DRAIN_MS = 600_000;

export function createUpstreamCatalogs(
  runtime: UpstreamRuntime,
  first: CatalogSetup,
  sources: CatalogSources,
): UpstreamCatalogs {
  const { clock, log } = runtime;
  const { relayCall, connectUser } = sources.relay;
  const builtIn = createBuiltIn(sources.builtIn);
  const hub = createChangeHub(runtime);
  /** Those at paths of servers and views, by name. */
  const catalogs = new Map<string, ServedCatalog>();
  const draining = new Set<Promise<void>>();
  let plan = createNextPlan(first, NO_SERVERS, openListGuards(first));

  const getPlan = (): Plan => plan;
  const patterns = createPatternWatch(log, builtIn, getPlan, sources.findFacts);
  patterns.restart();
  const joined = createJoinedView(getPlan);
  const root: ServedPath = {
    view: joined,
    joined,
    access: createAccess(() => plan.policies),
    relayCall,
    connectUser,
    links: createLinkedResources(runtime),
    hub,
    missedLists: createMissedLists(hub),
    clock,
    getPlan,
  };
  const all = createViewCatalog(root);

  function findNamed(name: string): ServedCatalog | undefined {
    if (!plan.servers.has(name) && !plan.views.has(name)) return undefined;
    const opened = catalogs.get(name) ?? createCatalog(openView(name));
    catalogs.set(name, opened);
    return opened;
  }

  function createCatalog(view: View): ServedCatalog {
    const path = { ...root, view };
    const catalog = createViewCatalog(path);
    return view.isCurated ? createSearchCatalog(path, catalog) : catalog;
  }

  /** `''` for `/mcp`. */
  function openView(name: string): View {
    if (name === '') return joined;
    const create = plan.views.has(name) ? createCuratedView : createServerView;
    return create(name, getPlan, joined);
  }

  function openServer(config: UpstreamConfig): Server {
    return createServer(runtime, observeUpstream(runtime, sources.openUpstream(config)), {
      getLock: () => plan.lock,
      judgeItems: judgeByCurrentPlan,
      onListChange: hub.announce,
      onConnectionChange: hub.announceTo,
      onOther: (kind) => patterns.noteList(kind),
    });
  }

  function openListGuards({ guards }: CatalogSetup): ListGuards | undefined {
    return guards && createListGuards(guards, clock);
  }

  /** The new guards are asked about a list that came while the configuration was loaded anew. */
  async function judgeByCurrentPlan(
    config: UpstreamConfig,
    kind: ListKind,
    items: readonly RawItem[],
  ): Promise<ListJudgement> {
    for (;;) {
      const { listGuards, naming } = plan;
      if (listGuards === undefined) return NOTHING_SAID;
      const judgement = await listGuards.judge(toJudgedList(kind, items, { config, naming }));
      if (plan.listGuards === listGuards) return judgement;
    }
  }

  /** Kept lists are served at once: nobody should miss them while guards that are new look at them. */
  async function judgeKept(next: CatalogSetup, listGuards: ListGuards): Promise<void> {
    const naming = createNaming(next.file);
    const seen = new Set<readonly RawItem[]>();
    let isComplete = false;
    while (!isComplete) {
      isComplete = true;
      for (const config of next.file.servers) {
        const kept = plan.servers.get(config.name)?.server.lists.listKept() ?? [];
        for (const { kind, items } of kept) {
          if (seen.has(items)) continue;
          seen.add(items);
          isComplete = false;
          await listGuards.judge(toJudgedList(kind, items, { config, naming }));
        }
      }
    }
  }

  function createNextPlan(
    next: CatalogSetup,
    former: FormerServers,
    listGuards: ListGuards | undefined,
  ): Plan {
    return createPlan(log, next, builtIn, listGuards, (config) => {
      const known = former.servers.get(config.name) ?? former.guardServers.get(config.name);
      return known !== undefined && isSameConnection(known.config, config)
        ? known.server
        : openServer(config);
    });
  }

  /** In the file's order. */
  const listAll = () =>
    plan.file.servers.flatMap(
      ({ name }) => plan.servers.get(name) ?? plan.guardServers.get(name) ?? [],
    );

  function drain(server: Server, graceMs: number): void {
    const { name } = server;
    // Another one of the same name has the gauge now.
    if (!plan.servers.has(name) && !plan.guardServers.has(name))
      runtime.metrics.removeUpstream(name);
    const ending = server
      .close(graceMs)
      .catch((cause: unknown) =>
        log.warn(`Server ${name}: its connection could not be closed.`, { cause }),
      )
      .finally(() => draining.delete(ending));
    draining.add(ending);
  }

  return {
    all,
    getPlan,
    policies: { judge: (item, caller, args) => plan.policies.judge(item, caller, args) },
    findNamed,
    async reload(next) {
      const listGuards = openListGuards(next);
      if (listGuards !== undefined) await judgeKept(next, listGuards);
      const former = listAll();
      plan = createNextPlan(next, plan, listGuards);
      patterns.restart();
      for (const [name, { server }] of catalogs) {
        const named = server === undefined ? plan.views : plan.servers;
        if (!named.has(name)) catalogs.delete(name);
      }
      const kept = new Set(listAll().map(({ server }) => server));
      for (const { server } of former) if (!kept.has(server)) drain(server, DRAIN_MS);
      hub.announceServers();
    },
    noteConnectionChange: (owner, name) =>
      plan.servers.get(name)?.server.noteConnectionChange(owner),
    listRequired: () =>
      listAll()
        .filter(({ config }) => config.required)
        .map(({ server }) => ({ name: server.name, isUp: server.upstream.isUp === true })),
    listServers: () =>
      listAll().map(({ config, server }) => ({
        name: config.name,
        transport: config.kind,
        isRequired: config.required,
        ...(plan.guardServers.has(config.name) && { isGuard: true as const }),
        ...server.describe(),
      })),
    listServerTools(name, part) {
      const planned = plan.servers.get(name);
      return planned && listServerTools(planned, plan, part);
    },
    listApprovable: () =>
      new Map([...plan.servers].map(([name, { approvable }]) => [name, approvable])),
    measureLists: (options) => measureLists(listPathsForOperators(plan, openView, options), clock),
    measureListsOf: (caller) =>
      measureLists(
        listPathsOf(plan, (name) => (name === '' ? all : findNamed(name)), caller),
        clock,
      ),
    listJoinedTools: () => listJoinedTools(plan),
    findIdlePatterns: patterns.findIdle,
    async close(graceMs) {
      for (const { server } of listAll()) drain(server, graceMs);
      await Promise.all(draining);
    },
  };
}

/** Names, and what clients see of a server, are no part of its connection. */
const isSameConnection = (one: UpstreamConfig, other: UpstreamConfig): boolean =>
  isDeepStrictEqual({ ...one, ...SHOWN }, { ...other, ...SHOWN });

const SHOWN: Partial<UpstreamConfig> = {
  prefix: '',
  tools: { include: [], exclude: [], describe: {} },
};

// §18.2: a view as the catalogue of its path: what is asked for is found, and passed on to whose it is.

function createViewCatalog(path: ServedPath): ServedCatalog {
  const { view, links, missedLists } = path;
  const resolveResource = createResolveResource(view, path.joined, links);
  const items = createFindItem(path, resolveResource);
  const passOn = createPassOn(path);

  return {
    server: view.path === '' || view.isCurated ? undefined : view.path,
    view: view.isCurated ? view.path : undefined,
    get title() {
      return view.findConfig()?.title;
    },
    offers: ALL_OFFERS,
    isShared: false,
    get mirrorHeaders() {
      return findBuiltIn(path)?.mirrorHeaders ?? [];
    },
    describe: (caller) => describeView(path, caller),
    list: createListPage(path),
    resolve: createResolveTarget(path, items, passOn),
    ...createServeSkills(path, passOn, resolveResource),
    complete: createComplete(path, items, passOn),
    ...createWatching(path, resolveResource),
    takeMissedLists: missedLists.take,
    endSession(caller) {
      const sessionId = caller.session?.sessionId;
      if (sessionId !== undefined) {
        links.forget(sessionId);
        missedLists.forget(sessionId);
      }
      findBuiltIn(path)?.endSession(caller);
      // The session has ended: there is nobody left to tell of a failure.
      endSessions(view, caller).catch(() => {});
    },
  };
}

async function endSessions(view: View, caller: IdentifiedCaller): Promise<void> {
  const who = toWho(caller);
  await Promise.all(view.listServers().map(({ upstream }) => upstream.endSession(who.upstream)));
}
