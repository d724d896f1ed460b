// The plan of one configuration: everything that follows from the file, and the plan that is served now.

import type { Guards } from '../mcp/calls/guards.ts';
import { ALLOWED, type Policies, type PolicyCaller } from '../mcp/calls/policy.ts';
import { type ApprovableServer, type Lock, NO_LOCK } from '../mcp/catalog/approved-items.ts';
import type { ClientCapabilities } from '../mcp/catalog/client-requests.ts';
import type { CheckSchema } from '../mcp/catalog/foreign-schema.ts';
import { decodeResource } from '../mcp/catalog/resource-text.ts';
import type { CallerContext, IdentifiedCaller } from '../mcp/catalog/served-catalog.ts';
import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { TASKS } from '../mcp/protocol/revisions.ts';
import type { UpstreamCaller } from '../mcp/upstream/upstream.ts';
import type { ServersConfig, UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { computeOnce } from '../platform/bounded-map.ts';
import { canBegin, compileGlob } from '../platform/glob.ts';
import type { Log } from '../platform/log.ts';
import { type BuiltIn, guardBuiltIn } from './built-in.ts';
import { createWarnOfItem, isNameAllowed, type WarnOfItem } from './check-item.ts';
import { createJoinLists, indexEntries, type JoinedList, type JoinedPart } from './join-lists.ts';
import type { Patience } from './list-cache.ts';
import type { ListGuards } from './list-guards.ts';
import {
  createNaming,
  createPrepareList,
  type Entry,
  type Naming,
  selectTools,
} from './prepare-list.ts';
import { type Server, toApprovable } from './server.ts';
import type { ViewConfig, ViewsConfig } from './view-shape.ts';

/** The part of the configuration file that catalogues are built from. */
interface CatalogFile extends ServersConfig, ViewsConfig {
  /** Only the parts of rules' patterns that are needed here. */
  readonly rules: readonly {
    readonly may: readonly string[];
    /** Set if the call requires approval. */
    readonly ask?: string | undefined;
    readonly place: string;
  }[];
  /** Only the parts that concern servers. */
  readonly guards?: readonly {
    readonly name: string;
    /** Names of servers; undefined for all of them and the built-in catalogue. */
    readonly servers: readonly string[] | undefined;
    /** Globs for the tool names at `/mcp`; undefined for all tools. */
    readonly tools: readonly string[] | undefined;
    /** `server` is the server of a guard of kind `mcp`. */
    readonly use: { readonly kind: string; readonly server?: string | undefined };
  }[];
}

/** Everything that catalogues are built from, until the configuration is reloaded. */
export interface CatalogSetup {
  readonly file: CatalogFile;
  /** Undefined without a lock, when everything is approved. */
  readonly lock?: Lock | undefined;
  /** Access control: which items a caller may see and use. */
  readonly policies: Policies;
  /** Undefined without guards. */
  readonly guards: Guards | undefined;
  /** Checks values that a guard has changed against a server's schema; undefined without guards. */
  readonly checkSchema: CheckSchema | undefined;
}

/** Everything that follows from one setup. Immutable: the next setup gets its own plan. */
export interface Plan extends CatalogSetup {
  /** Undefined if the file says `"builtIn": false`. */
  readonly builtIn: BuiltIn | undefined;
  /** In the order of the configuration file, including servers that are guards. */
  readonly opened: readonly OpenedServer[];
  /** In the order of the configuration file. */
  readonly servers: ReadonlyMap<string, PlannedServer>;
  /** Everything, as `/mcp` serves it. */
  readonly whole: Selection;
  /** In the order of the configuration file. */
  readonly views: ReadonlyMap<string, PlannedView>;
  /** Servers that are guards (§26.2): no client sees them, and no guard checks them. */
  readonly guardServers: ReadonlyMap<string, OpenedServer>;
  readonly naming: Naming;
  /** Undefined without guards. */
  readonly listGuards: ListGuards | undefined;
  /** Warns about entries of lists. */
  readonly warn: WarnOfItem;
  /** Warns about results. */
  readonly warnOfResult: WarnOfItem;
}

interface OpenedServer {
  readonly config: UpstreamConfig;
  readonly server: Server;
}

export interface PlannedServer extends OpenedServer {
  readonly prepareList: ReturnType<typeof createPrepareList>;
  /**
   * True if the server, which has not listed its entries yet, could have an item with this own name that clients may see. An item
   * that is hidden while the server is up is unknown while it is down.
   */
  mayHave(kind: ListKind, ownName: string): boolean;
  readonly approvable: ApprovableServer;
}

/** A setup whose servers have been opened. */
type OpenSetup = CatalogSetup & Pick<Plan, 'opened' | 'listGuards'>;

/** For each setup, lists are prepared again, and hidden items are logged again. */
export function createPlan(log: Log, builtIn: BuiltIn, setup: OpenSetup): Plan {
  const { file, lock = NO_LOCK, policies, opened, listGuards } = setup;
  const naming = createNaming(file);
  const warn = createWarnOfItem(log, 'more of what it lists is hidden');
  const areGuards = listGuardServers(file);
  const isGuard = ({ config }: OpenedServer) => areGuards.includes(config.name);
  const guardedBuiltIn = listGuards === undefined ? builtIn : guardBuiltIn(builtIn, listGuards);

  function planServer({ config, server }: OpenedServer): PlannedServer {
    const selected = selectTools(config.tools);
    const hasConnectTool = server.upstream.facts.connection !== undefined;
    return {
      config,
      server,
      prepareList: createPrepareList({
        config,
        hasConnectTool,
        naming,
        policies,
        listGuards,
        warn,
      }),
      mayHave(kind, ownName) {
        const { ruled } = LIST_KINDS[kind];
        if (ruled === 'resource') return false;
        if (kind === 'tools' && !selected.has(ownName)) return false;
        if (!isNameAllowed(kind, ownName, naming.isStrict)) return false;
        return lock.knows(config.name, ruled, ownName);
      },
      approvable: toApprovable(config, server),
    };
  }

  return {
    ...setup,
    builtIn: file.builtIn ? guardedBuiltIn : undefined,
    guardServers: new Map(opened.filter(isGuard).map((one) => [one.config.name, one])),
    servers: new Map(
      opened.filter((one) => !isGuard(one)).map((one) => [one.config.name, planServer(one)]),
    ),
    whole: {
      joinLists: createJoinLists(naming, warn),
      hasServer: () => true,
      includes: () => true,
      curate: (list) => list,
    },
    views: new Map((file.views ?? []).map((view) => [view.name, createPlannedView(view, naming)])),
    naming,
    warn,
    warnOfResult: createWarnOfItem(
      log,
      'more of its answers are passed on without the parts that MCP does not allow',
    ),
  };
}

/** The current plan, until another setup replaces it. */
export class ServedPlan {
  current: Plan;

  constructor(first: Plan) {
    this.current = first;
  }

  /** Uses the current policies. */
  readonly judge: Policies['judge'] = (item, caller, args) =>
    this.current.policies.dependOnCaller
      ? this.current.policies.judge(item, caller, args)
      : ALLOWED;

  /** The current guards; undefined if there are none. */
  readonly getGuards = (): Guards | undefined => this.current.guards;

  /** Retries if the plan was replaced in the meantime: a removed server does not respond, and its successor may have the item. */
  async ask<Answer>(find: (plan: Plan) => Promise<Answer>): Promise<Answer> {
    for (;;) {
      const plan = this.current;
      const answer = await find(plan);
      if (this.current === plan) return answer;
    }
  }

  readonly findServer = (name: string): Server | undefined =>
    this.current.servers.get(name)?.server;

  /**
   * The entry of this name at `/mcp`, if the first server that can have it has listed its entries, and has announced no change
   * since.
   */
  readonly findCurrent = (
    kind: 'tools' | 'prompts',
    name: string,
    caller: UpstreamCaller,
  ): Entry | undefined => {
    const { builtIn, servers, naming } = this.current;
    if (builtIn !== undefined) {
      const own = builtIn.fixed.get(kind);
      if (own === undefined) return undefined;
      const entry = own.byName.get(name);
      if (entry !== undefined) return entry;
    }
    const [owner = ''] = naming.findOwners(name);
    const planned = servers.get(owner);
    const list = planned?.server.lists.findCurrent(kind, caller);
    return list && planned?.prepareList(list).byName.get(name);
  };
}

/** Names of the servers that are guards. */
export const listGuardServers = ({ guards = [] }: Pick<CatalogFile, 'guards'>): readonly string[] =>
  guards.flatMap(({ use }) => use.server ?? []);

// §25.1: a view in the configuration: its selection from `/mcp`, its order, and its own descriptions.

/** The part of `/mcp` that a view selects. */
export interface Selection extends JoinedPart {
  /** Undefined for `/mcp` itself. */
  readonly config?: ViewConfig | undefined;
  includes(item: CuratedItem): boolean;
  /** Returns the same list for the same argument. */
  curate(list: JoinedList): JoinedList;
}

interface PlannedView extends Selection {
  readonly config: ViewConfig;
}

/** An item with its name at `/mcp`. */
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

  /** The index of the first pattern in the file that matches; `NOWHERE` if none does. */
  function rank({ kind, name, namesBegin }: CuratedItem): number {
    const given = patterns[kind];
    if (given === undefined) return 0;
    // The login tool of a server stands for all tools of that server (§24.3).
    if (namesBegin !== undefined)
      return given.globs.findIndex((glob) => canBegin(glob, namesBegin));
    const text = kind === 'resource' ? decodeResource(name) : name;
    return text === undefined ? NOWHERE : given.fits.findIndex((fits) => fits(text));
  }

  const hasServer = (name: string) => servers === undefined || servers.has(name);

  const curateEntries = computeOnce((entries: readonly Entry[]): JoinedList => {
    const chosen = entries
      .map((entry) => ({ entry, place: rank(entry), server: servers?.get(entry.server) ?? 0 }))
      .filter(({ entry, place }) => place !== NOWHERE && hasServer(entry.server))
      // Clients could not check a skill with a missing file.
      .filter(({ entry: { files = [] } }) => files.every((file) => rank(file) !== NOWHERE));
    // Sorting is stable: entries of equal rank stay in the order of /mcp.
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
    // Each view has its own cache: many views would evict each other's lists from a shared one.
    joinLists: createJoinLists(naming, IGNORED),
    hasServer,
    includes: (item) => hasServer(item.server) && rank(item) !== NOWHERE,
    curate: ({ entries }) => curateEntries(entries),
  };
}

/** Only the joined list of `/mcp` warns about colliding names. */
const IGNORED = () => {};

const NOWHERE = -1;

const compile = (globs: readonly string[]) => ({ globs, fits: globs.map(compileGlob) });

// The callers of a plan's servers.

/** A caller, in the forms that servers, rules and lists need. */
export interface Who {
  readonly upstream: UpstreamCaller;
  readonly policy: PolicyCaller;
  /** Context of the current call. Without one, the built-in catalogue is not queried, and its last list is used. */
  readonly context: CallerContext | undefined;
  readonly patience: Patience;
}

/** `context` belongs to the current call, if there is one. */
export const toWho = (
  { user, session, client: capabilities, clientId, view }: IdentifiedCaller,
  context?: CallerContext,
  patience: Patience = 'forCall',
): Who => ({
  upstream: {
    user,
    clientId,
    sessionId: session?.sessionId,
    // Sessions have no tasks (§29).
    capabilities:
      session === undefined || capabilities.extensions?.[TASKS] === undefined
        ? capabilities
        : withoutTasks(capabilities),
  },
  policy: { user, clientId, view },
  context,
  patience,
});

/** The caller of a list. For a caller without a session, the list itself says how soon to ask again. */
export function toLister(
  context: CallerContext,
  hub: { hasStream(sessionId: string): boolean },
): Who {
  const { session, takesStream } = context;
  const canBeTold =
    session === undefined || takesStream === true || hub.hasStream(session.sessionId);
  return toWho(context, context, canBeTold ? 'told' : 'untold');
}

function withoutTasks(capabilities: ClientCapabilities): ClientCapabilities {
  const { [TASKS]: _, ...extensions } = capabilities.extensions ?? {};
  return { ...capabilities, extensions };
}
