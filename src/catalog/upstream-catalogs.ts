// §18.2: all servers behind the gateway as catalogues: one of everything, and one of each.
import { isDeepStrictEqual } from 'node:util';
import type { Policies } from '../mcp/calls/policy.ts';
import { type ApprovableServer, LOCKED, NO_LOCK } from '../mcp/catalog/approved-items.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { LISTING_CONTEXT, type OwnCatalog } from '../mcp/catalog/own-catalog.ts';
import type { CallerContext, ServedCatalog } from '../mcp/catalog/served-catalog.ts';
import type { ConnectionOwner } from '../mcp/upstream/connections.ts';
import { GATEWAY_CALLER, type Upstream, type UpstreamRuntime } from '../mcp/upstream/upstream.ts';
import type { FindFacts, UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { observeUpstream } from '../mcp/upstream/wrap-upstream.ts';
import { listPathsForOperators, listPathsOf, measureLists } from './budget/list-costs.ts';
import { createBuiltIn } from './built-in.ts';
import { createChangeHub, createMissedLists } from './change-hub.ts';
import { findItemProblem, findOwnNameProblem } from './check-item.ts';
import { createFindItem } from './find-item.ts';
import { createPatternWatch } from './idle-patterns.ts';
import { createJoinedView } from './joined-view.ts';
import { createLinkedResources, createResolveResource } from './linked-resources.ts';
import { createListGuards, type ListGuards, NOTHING_SAID } from './list-guards.ts';
import { createListPage } from './list-page.ts';
import { createWatching } from './listen-to-servers.ts';
import { createPassOn } from './pass-on.ts';
import { type CatalogSetup, createPlan, type Plan, type PlannedServer } from './plan.ts';
import { createNaming, selectTools, toJudgedList } from './prepare-list.ts';
import { createComplete, createResolveTarget } from './resolve-target.ts';
import { createSearchCatalog } from './search/search-catalog.ts';
import { findBuiltIn, type ServedPath } from './served-path.ts';
import { createServer, type Server, type ServerState } from './server.ts';
import { ALL_OFFERS, createCuratedView, createServerView, describeView } from './server-view.ts';
import { createServeSkills } from './skills/serve-skills.ts';
import { createAccess, toWho, type View } from './view.ts';

/** All that catalogues are made of. */
interface CatalogSources {
  readonly builtIn: OwnCatalog;
  /** Nothing has to be reachable. */
  openUpstream(config: UpstreamConfig): Upstream;
  readonly findFacts: FindFacts;
  readonly relay: Pick<ServedPath, 'relayCall' | 'connectUser'>;
}

export type UpstreamCatalogs = ReturnType<typeof createUpstreamCatalogs>;

/** For operators. */
export interface ServerFacts extends ServerState {
  readonly name: string;
  readonly transport: UpstreamConfig['kind'];
  readonly isRequired: boolean;
  /** It is a guard (§26.2), which clients do not see. */
  readonly isGuard?: true;
}

/** Milliseconds for which calls to a server may go on that is no longer in the file. */
const DRAIN_MS = 600_000;

export function createUpstreamCatalogs(
  runtime: UpstreamRuntime,
  first: CatalogSetup,
  sources: CatalogSources,
) {
  const { clock, log } = runtime;
  const builtIn = createBuiltIn(sources.builtIn);
  const hub = createChangeHub(runtime);
  /** Those at paths of servers and views, by name. */
  const catalogs = new Map<string, ServedCatalog>();
  const draining = new Set<Promise<void>>();
  const openListGuards = ({ guards }: CatalogSetup): ListGuards | undefined =>
    guards && createListGuards(guards, clock);
  let plan = createNextPlan(first, [], openListGuards(first));

  const getPlan = (): Plan => plan;
  const patterns = createPatternWatch(log, builtIn, getPlan, sources.findFacts);
  patterns.restart();
  const joined = createJoinedView(getPlan);
  const root: ServedPath = {
    view: joined,
    joined,
    access: createAccess(() => plan.policies),
    ...sources.relay,
    links: createLinkedResources(runtime),
    hub,
    missedLists: createMissedLists(hub),
    clock,
    getPlan,
  };
  const all = createViewCatalog(root);

  function findNamed(name: string): ServedCatalog | undefined {
    if (!plan.servers.has(name) && !plan.views.has(name)) return undefined;
    const known = catalogs.get(name);
    if (known !== undefined) return known;
    const view = openView(name);
    const path = { ...root, view };
    const catalog = createViewCatalog(path);
    const opened = view.isCurated ? createSearchCatalog(path, catalog) : catalog;
    catalogs.set(name, opened);
    return opened;
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
      async judgeItems(kind, items) {
        // The new guards are asked about a list that came while the configuration was loaded anew.
        for (;;) {
          const { listGuards, naming } = plan;
          if (listGuards === undefined) return NOTHING_SAID;
          const judgement = await listGuards.judge(toJudgedList(kind, items, config, naming));
          if (plan.listGuards === listGuards) return judgement;
        }
      },
      onListChange: hub.announce,
      onOther: (kind) => patterns.noteList(kind),
    });
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
          await listGuards.judge(toJudgedList(kind, items, config, naming));
        }
      }
    }
  }

  function createNextPlan(
    next: CatalogSetup,
    former: Plan['opened'],
    listGuards: ListGuards | undefined,
  ): Plan {
    return createPlan(log, next, builtIn, listGuards, (config) => {
      const known = former.find((one) => one.config.name === config.name);
      return known !== undefined && isSameConnection(known.config, config)
        ? known.server
        : openServer(config);
    });
  }

  function drain(server: Server, graceMs: number): void {
    const { name } = server;
    // Another one of the same name has the gauge now.
    if (!plan.opened.some(({ config }) => config.name === name))
      runtime.metrics.removeUpstream(name);
    const ending = server
      .close(graceMs)
      .catch((cause: unknown) =>
        log.warn(`Server ${name}: its connection could not be closed.`, { cause }),
      )
      .finally(() => draining.delete(ending));
    draining.add(ending);
  }

  /** Decide who may see and use what now. */
  const policies: Pick<Policies, 'judge'> = {
    judge: (item, caller, args) => plan.policies.judge(item, caller, args),
  };

  return {
    /** `/mcp`. */
    all,
    /** The plan that is served now. */
    getPlan,
    policies,
    /** `/mcp/<server>` and `/mcp/<view>`; the same object for as long as the file names it. */
    findNamed,
    /**
     * Servers that are reached as before keep their connections, processes and lists; those that went end once their
     * calls have.
     */
    async reload(next: CatalogSetup): Promise<void> {
      const listGuards = openListGuards(next);
      if (listGuards !== undefined) await judgeKept(next, listGuards);
      const former = plan.opened;
      plan = createNextPlan(next, former, listGuards);
      patterns.restart();
      for (const [name, { server }] of catalogs) {
        const named = server === undefined ? plan.views : plan.servers;
        if (!named.has(name)) catalogs.delete(name);
      }
      const kept = new Set(plan.opened.map(({ server }) => server));
      for (const { server } of former) if (!kept.has(server)) drain(server, DRAIN_MS);
      hub.announceServers();
    },
    /** §24: a connection to the server was made, ended, or needs a login. */
    noteConnectionChange: (owner: ConnectionOwner, name: string) =>
      plan.servers.get(name)?.server.noteConnectionChange(owner),
    /** Each server that must be up for the gateway to be ready, and whether it is. */
    listRequired: () =>
      plan.opened
        .filter(({ config }) => config.required)
        .map(({ server }) => ({ name: server.name, isUp: server.upstream.isUp === true })),
    /** In the file's order. */
    listServers: (): readonly ServerFacts[] =>
      plan.opened.map(({ config, server }) => ({
        name: config.name,
        transport: config.kind,
        isRequired: config.required,
        ...(plan.guardServers.has(config.name) && { isGuard: true as const }),
        ...server.describe(),
      })),
    /** For operators. Undefined where there is no such server. */
    listServerTools(name: string, part: { readonly skip: number; readonly limit: number }) {
      const planned = plan.servers.get(name);
      return planned && listServerTools(planned, plan, part);
    },
    /** For operators: those that clients see, by name. */
    listApprovable: (): ReadonlyMap<string, ApprovableServer> =>
      new Map([...plan.servers].map(([name, { approvable }]) => [name, approvable])),
    /** §25.2, for operators: what the list of each path costs, whoever may see it. Unless it `waits` nothing is asked for. */
    measureLists: (options: { readonly waits: boolean }) =>
      measureLists(listPathsForOperators(plan, openView, options), clock),
    /** §25.2: the same of `/mcp` and the views, of what the caller sees. */
    measureListsOf: (caller: Pick<CallerContext, 'user' | 'clientId'>) =>
      measureLists(
        listPathsOf(plan, (name) => (name === '' ? all : findNamed(name)), caller),
        clock,
      ),
    /**
     * For operators: the tools of `/mcp`, whoever may see them, as servers listed them last. Tools that the lock or the configuration
     * hides are seen by nobody, and left out.
     */
    async listJoinedTools() {
      const { joinLists } = plan;
      const servers = [...plan.servers.values()];
      const builtInTools = await plan.builtIn?.list('tools', LISTING_CONTEXT);
      const listed = servers.map(({ server, prepareList }) => {
        const list = server.isPersonal ? undefined : server.lists.peek('tools', GATEWAY_CALLER);
        return list === undefined ? [] : prepareList('tools', list).entries;
      });
      return {
        /** In the order of the joined list. */
        tools: joinLists('tools', [builtInTools?.entries ?? [], ...listed]).entries,
        /** Servers whose tools differ between users: which they are is not known here. */
        personal: servers
          .filter(({ server }) => server.isPersonal)
          .map(({ config }) => config.name),
      };
    },
    /** Patterns that fit nothing: of the file that is served, or of another one. */
    findIdlePatterns: patterns.findIdle,
    async close(graceMs: number): Promise<void> {
      for (const { server } of plan.opened) drain(server, graceMs);
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
      const who = toWho(caller);
      // The session has ended: there is nobody left to tell of a failure.
      for (const { upstream } of view.listServers())
        upstream.endSession(who.upstream).catch(() => {});
    },
  };
}

// §22.4: all tools that a server lists, for operators: also those that clients do not see, and why. As it listed them last: no server
// is asked.

export interface ServerTool {
  /** As the server calls it; `''` where it has no name. */
  readonly name: string;
  /** As clients of `/mcp` see it; undefined where they do not. */
  readonly listedAs?: string;
  /** `left_out` by the configuration file; `new` and `changed` are what the lock says of it. */
  readonly state: 'listed' | 'left_out' | 'unusable' | 'new' | 'changed';
  /** Why it is not listed: the rest of a sentence that begins with its name. */
  readonly problem?: string;
}

/** Those from `skip` on, `limit` at most. Tools that an operator looks at count as no refusal of the lock. */
function listServerTools(
  planned: PlannedServer,
  { naming, lock = NO_LOCK }: Plan,
  { skip, limit }: { readonly skip: number; readonly limit: number },
) {
  const { config, server } = planned;
  const { isPersonal } = server;
  const items = isPersonal ? [] : (server.lists.peek('tools', GATEWAY_CALLER)?.items ?? []);
  const selected = selectTools(config.tools);
  const { join } = toJudgedList('tools', items, config, naming);
  const before = items.slice(0, skip).filter((item) => !findItemProblem('tools', item));
  const seen = new Set<unknown>(before.map(({ name }) => name));

  function describe(item: RawItem): ServerTool {
    const name = typeof item.name === 'string' ? item.name : '';
    const problem =
      findItemProblem('tools', item) ??
      (naming.isStrict ? undefined : findOwnNameProblem('tools', name));
    if (problem !== undefined) return { name, state: 'unusable', problem };
    if (!selected.has(name))
      return { name, state: 'left_out', problem: 'is left out by "tools" in the configuration' };
    if (seen.has(name)) return { name, state: 'unusable', problem: 'is listed twice' };
    seen.add(name);
    const verdict = lock.check(config.name, 'tool', item);
    return verdict === 'approved'
      ? { name, listedAs: join(name), state: 'listed' }
      : { name, state: verdict, problem: LOCKED[verdict] };
  }

  return {
    /** Each user has a list of their own: then there is none for the gateway itself. */
    isPersonal,
    /** The number of all. */
    total: items.length,
    /** Some of them, in the server's order. */
    tools: items.slice(skip, skip + limit).map(describe),
  };
}
