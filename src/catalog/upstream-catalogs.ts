// §18.2: all servers behind the gateway as catalogues: one for all of them, and one for each.
import { isDeepStrictEqual } from 'node:util';
import { type ApprovableServer, LOCKED, NO_LOCK } from '../mcp/catalog/approved-items.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { LISTING_CONTEXT, type OwnCatalog } from '../mcp/catalog/own-catalog.ts';
import type { CallerContext, ServedCatalog } from '../mcp/catalog/served-catalog.ts';
import type { ConnectionOwner } from '../mcp/upstream/connections.ts';
import { GATEWAY_CALLER, type Upstream, type UpstreamRuntime } from '../mcp/upstream/upstream.ts';
import type { FindFacts, UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { observeUpstream } from '../mcp/upstream/wrap-upstream.ts';
import { listPathsForOperators, listPathsOf, measureLists } from './budget/list-costs.ts';
import { type BuiltIn, createBuiltIn } from './built-in.ts';
import { createChangeHub, createMissedLists } from './change-hub.ts';
import { findItemProblem, findUseProblem } from './check-item.ts';
import { ALL_OFFERS, describeView } from './describe-view.ts';
import type { FetchedList } from './fetch-list.ts';
import { createPatternWatch } from './idle-patterns.ts';
import { createLinkedResources, createResolveResource } from './linked-resources.ts';
import {
  createListGuards,
  type ListGuards,
  type ListJudgement,
  NOTHING_SAID,
} from './list-guards.ts';
import { createListPage } from './list-page.ts';
import { createWatching } from './listen-to-servers.ts';
import { createPassOn } from './pass-on.ts';
import {
  type CatalogSetup,
  createPlan,
  type Plan,
  type PlannedServer,
  ServedPlan,
  toWho,
} from './plan.ts';
import { createNaming, selectTools, toJudgedList } from './prepare-list.ts';
import { createComplete, createResolveTarget } from './resolve-target.ts';
import { createSearchCatalog } from './search/search-catalog.ts';
import { createAccess, findBuiltIn, type ServedPath } from './served-path.ts';
import { createServer, type Server } from './server.ts';
import { createServeSkills } from './skills/serve-skills.ts';
import type { View } from './view.ts';
import { createCuratedView, createFindItem, createJoinedView, createServerView } from './views.ts';

/** Everything that catalogues are built from. */
interface CatalogSources {
  readonly builtIn: OwnCatalog;
  /** The server does not have to be reachable. */
  openUpstream(config: UpstreamConfig): Upstream;
  readonly findFacts: FindFacts;
  readonly relay: Pick<ServedPath, 'relayCall' | 'connectUser'>;
}

/** Facts about a server, for operators. */
export interface ServerFacts extends ReturnType<Server['describe']> {
  readonly name: string;
  readonly transport: UpstreamConfig['kind'];
  readonly isRequired: boolean;
  /** Set for a server that is a guard (§26.2), which clients do not see. */
  readonly isGuard?: true;
}

/** How long calls to a server may continue after it was removed from the file, in milliseconds. */
const DRAIN_MS = 600_000;

export class UpstreamCatalogs {
  /** The plan that is served now. */
  readonly served: ServedPlan;
  /** The catalogue of `/mcp`. */
  readonly all: ServedCatalog;
  private readonly runtime: UpstreamRuntime;
  private readonly sources: CatalogSources;
  private readonly builtIn: BuiltIn;
  private readonly hub: ServedPath['hub'];
  /** Patterns that match nothing, in the current file or another one. */
  readonly patterns: ReturnType<typeof createPatternWatch>;
  private readonly root: ServedPath;
  /** The catalogues of servers and views at their own paths, by name. */
  private readonly named = new Map<string, ServedCatalog>();
  private readonly draining = new Set<Promise<void>>();

  constructor(runtime: UpstreamRuntime, first: CatalogSetup, sources: CatalogSources) {
    this.runtime = runtime;
    this.sources = sources;
    this.builtIn = createBuiltIn(sources.builtIn);
    this.hub = createChangeHub(runtime);
    this.served = new ServedPlan(this.createPlan(first, [], this.openListGuards(first)));
    const { served, hub } = this;
    this.patterns = createPatternWatch(runtime.log, this.builtIn, served, sources.findFacts);
    this.patterns.restart();
    const joined = createJoinedView(served);
    this.root = {
      view: joined,
      joined,
      access: createAccess(served),
      ...sources.relay,
      links: createLinkedResources(runtime),
      hub,
      missedLists: createMissedLists(hub),
      clock: runtime.clock,
      served,
    };
    this.all = createViewCatalog(this.root);
  }

  /** The catalogue of `/mcp/<server>` or `/mcp/<view>`; the same object for as long as the file names it. */
  readonly findNamed = (name: string): ServedCatalog | undefined => {
    const { servers, views } = this.served.current;
    if (!servers.has(name) && !views.has(name)) return undefined;
    const known = this.named.get(name);
    if (known !== undefined) return known;
    const view = this.openView(name);
    const path = { ...this.root, view };
    const catalog = createViewCatalog(path);
    const opened = view.isCurated ? createSearchCatalog(path, catalog) : catalog;
    this.named.set(name, opened);
    return opened;
  };

  /**
   * Servers whose connection settings are unchanged keep their connections, processes and lists. Removed servers are closed once
   * their calls have ended.
   */
  async reload(next: CatalogSetup): Promise<void> {
    const { served, named } = this;
    const listGuards = this.openListGuards(next);
    if (listGuards !== undefined) await this.judgeKept(next, listGuards);
    const { opened: former } = served.current;
    served.current = this.createPlan(next, former, listGuards);
    const { opened, views, servers } = served.current;
    this.patterns.restart();
    for (const [name, { server }] of named) {
      const ofKind = server === undefined ? views : servers;
      if (!ofKind.has(name)) named.delete(name);
    }
    const kept = new Set(opened.map(({ server }) => server));
    for (const { server } of former) if (!kept.has(server)) this.drain(server, DRAIN_MS);
    this.hub.announceServers();
  }

  /** §24: a connection to the server was made, ended, or needs a login. */
  noteConnectionChange(owner: ConnectionOwner, name: string): void {
    this.served.current.servers.get(name)?.server.noteConnectionChange(owner);
  }

  /** In the order of the configuration file. */
  listServers(): readonly ServerFacts[] {
    const { opened, guardServers } = this.served.current;
    return opened.map(({ config, server }) => ({
      name: config.name,
      transport: config.kind,
      isRequired: config.required,
      ...(guardServers.has(config.name) && { isGuard: true as const }),
      ...server.describe(),
    }));
  }

  /** For operators. Undefined if there is no such server. */
  listServerTools(name: string, part: { readonly skip: number; readonly limit: number }) {
    const { current } = this.served;
    const planned = current.servers.get(name);
    return planned && listServerTools(planned, current, part);
  }

  /** For operators: the servers that clients see, by name. */
  listApprovable(): ReadonlyMap<string, ApprovableServer> {
    const { servers } = this.served.current;
    return new Map([...servers].map(([name, { approvable }]) => [name, approvable]));
  }

  /** §25.2, for operators: the costs of each path's list, before rules, as far as the lists are known. */
  measureLists() {
    const paths = listPathsForOperators(this.served.current, (name) => this.openView(name));
    return measureLists(paths, this.runtime.clock);
  }

  /** §25.2: the costs for `/mcp` and the views, as the caller sees them. */
  measureListsOf(caller: Pick<CallerContext, 'user' | 'clientId'>) {
    const find = (name: string) => (name === '' ? this.all : this.findNamed(name));
    return measureLists(listPathsOf(this.served.current, find, caller), this.runtime.clock);
  }

  /**
   * For operators: the tools of `/mcp` before rules, as the servers last listed them. Tools that the lock or the configuration
   * hides are left out, since no client sees them.
   */
  async listJoinedTools() {
    const { current } = this.served;
    const servers = [...current.servers.values()];
    const builtInTools = await current.builtIn?.list('tools', LISTING_CONTEXT);
    const listed = servers.map(({ server, prepareList }) => {
      const list = server.isPersonal ? undefined : server.lists.peek('tools', GATEWAY_CALLER);
      return list === undefined ? [] : prepareList(list).entries;
    });
    return {
      /** In the order of the joined list. */
      tools: current.whole.joinLists('tools', [builtInTools?.entries ?? [], ...listed]).entries,
      /** Servers whose tools differ between users, and so are not known here. */
      personal: servers.filter(({ server }) => server.isPersonal).map(({ config }) => config.name),
    };
  }

  async close(graceMs: number): Promise<void> {
    for (const { server } of this.served.current.opened) this.drain(server, graceMs);
    await Promise.all(this.draining);
  }

  /** `''` for `/mcp`. */
  private openView(name: string): View {
    const { served } = this;
    const { joined } = this.root;
    if (name === '') return joined;
    const create = served.current.views.has(name) ? createCuratedView : createServerView;
    return create(name, served, joined);
  }

  private openServer(config: UpstreamConfig): Server {
    const { runtime, sources, hub } = this;
    return createServer(runtime, observeUpstream(runtime, sources.openUpstream(config)), {
      getLock: () => this.served.current.lock,
      judgeList: (list) => this.judgeList(config, list),
      onListChange: hub.announce,
      onOther: (kind) => this.patterns.noteList(kind),
    });
  }

  /** Lets the new guards check a list that arrived while the configuration was being reloaded. */
  private async judgeList(config: UpstreamConfig, list: FetchedList): Promise<ListJudgement> {
    for (;;) {
      const { listGuards, naming } = this.served.current;
      if (listGuards === undefined) return NOTHING_SAID;
      const judgement = await listGuards.judge(toJudgedList(list, config, naming));
      if (this.served.current.listGuards === listGuards) return judgement;
    }
  }

  /** Lets the new guards judge the cached lists first, so that lists are served without a gap. */
  private async judgeKept(next: CatalogSetup, listGuards: ListGuards): Promise<void> {
    const naming = createNaming(next.file);
    const seen = new Set<FetchedList>();
    let isComplete = false;
    while (!isComplete) {
      isComplete = true;
      for (const config of next.file.servers) {
        const planned = this.served.current.servers.get(config.name);
        for (const list of planned?.server.lists.listKept() ?? []) {
          if (seen.has(list)) continue;
          seen.add(list);
          isComplete = false;
          await listGuards.judge(toJudgedList(list, config, naming));
        }
      }
    }
  }

  private openListGuards({ guards }: CatalogSetup): ListGuards | undefined {
    return guards && createListGuards(guards, this.runtime.clock);
  }

  private createPlan(
    next: CatalogSetup,
    former: Plan['opened'],
    listGuards: ListGuards | undefined,
  ): Plan {
    const opened = next.file.servers.map((config) => {
      const known = former.find((one) => one.config.name === config.name);
      const isKept = known !== undefined && isSameConnection(known.config, config);
      return { config, server: isKept ? known.server : this.openServer(config) };
    });
    return createPlan(this.runtime.log, this.builtIn, { ...next, opened, listGuards });
  }

  private drain(server: Server, graceMs: number): void {
    const { log, metrics } = this.runtime;
    const { name } = server;
    // A new server with the same name now owns the gauge.
    if (!this.served.current.opened.some(({ config }) => config.name === name))
      metrics.removeUpstream(name);
    const ending = server
      .close(graceMs)
      .catch((cause: unknown) =>
        log.warn(`Server ${name}: its connection could not be closed.`, { cause }),
      )
      .finally(() => this.draining.delete(ending));
    this.draining.add(ending);
  }
}

/** A server's names, and the selection that clients see, are not part of its connection. */
const isSameConnection = (one: UpstreamConfig, other: UpstreamConfig): boolean =>
  isDeepStrictEqual({ ...one, ...SHOWN }, { ...other, ...SHOWN });

const SHOWN: Partial<UpstreamConfig> = {
  prefix: '',
  tools: { include: [], exclude: [], describe: {} },
};

// §18.2: a view as the catalogue of its path: finds the requested items, and passes requests on to their owners.

function createViewCatalog(path: ServedPath): ServedCatalog {
  const { view, links, missedLists } = path;
  const resolveResource = createResolveResource(view, path.joined, links);
  const items = createFindItem(path, resolveResource);
  const passOn = createPassOn(path);

  return {
    name: view.name === '' ? undefined : view.name,
    server: view.name === '' || view.isCurated ? undefined : view.name,
    view: view.isCurated ? view.name : undefined,
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
    missedLists,
    endSession(caller) {
      const sessionId = caller.session?.sessionId;
      if (sessionId !== undefined) {
        links.forget(sessionId);
        missedLists.forget(sessionId);
      }
      findBuiltIn(path)?.endSession(caller);
      const who = toWho(caller);
      // The session has ended: there is nobody left to report a failure to.
      for (const { upstream } of view.listServers())
        upstream.endSession(who.upstream).catch(() => {});
    },
  };
}

// §22.4: all tools that a server lists, for operators: including tools that clients do not see, with the reason. The tools are
// those last listed: no server is queried.

interface ServerTool {
  /** The server's own name for the tool; `''` if the tool has no name. */
  readonly name: string;
  /** The name that clients of `/mcp` see; undefined if they do not see the tool. */
  readonly listedAs?: string;
  /** `left_out` by the configuration file; `new` and `changed` come from the lock. */
  readonly state: 'listed' | 'left_out' | 'unusable' | 'new' | 'changed';
  /** The reason why the tool is not listed: the rest of a sentence that begins with its name. */
  readonly problem?: string;
}

/** Skips `skip` entries and returns at most `limit`. Tools that an operator views do not count as hidden by the lock. */
function listServerTools(
  planned: PlannedServer,
  { naming, lock = NO_LOCK }: Plan,
  { skip, limit }: { readonly skip: number; readonly limit: number },
) {
  const { config, server } = planned;
  const { isPersonal } = server;
  const items = isPersonal ? [] : (server.lists.peek('tools', GATEWAY_CALLER)?.items ?? []);
  const selected = selectTools(config.tools);
  const { join } = toJudgedList({ kind: 'tools', items }, config, naming);
  const before = items.slice(0, skip).filter((item) => !findItemProblem('tools', item));
  const seen = new Set<unknown>(before.map(({ name }) => name));

  function describe(item: RawItem): ServerTool {
    const name = typeof item.name === 'string' ? item.name : '';
    const problem = findUseProblem('tools', item, naming.isStrict);
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
    /** True if each user has their own list, so that there is none for the gateway itself. */
    isPersonal,
    /** The total number of tools. */
    total: items.length,
    /** The requested part of the tools, in the server's order. */
    tools: items.slice(skip, skip + limit).map(describe),
  };
}
