// The configuration file, as long as it is the one that is served.

import type { Guards } from '../mcp/calls/guards.ts';
import type { Policies } from '../mcp/calls/policy.ts';
import {
  type ApprovableServer,
  LOCKED_ITEMS,
  type Lock,
  type LockedList,
  NO_LOCK,
} from '../mcp/catalog/approved-items.ts';
import type { CheckSchema } from '../mcp/catalog/foreign-schema.ts';
import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { GATEWAY_CALLER } from '../mcp/upstream/upstream.ts';
import type { ServersConfig, UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import type { Log } from '../platform/log.ts';
import { type BuiltIn, guardBuiltIn } from './built-in.ts';
import { createWarnOfItem, findItemProblem, isNameAllowed, type WarnOfItem } from './check-item.ts';
import { readInstructions, readServer } from './fetch-list.ts';
import { createJoinLists, type JoinLists } from './join-lists.ts';
import type { ListGuards } from './list-guards.ts';
import { createNaming, type Naming } from './naming.ts';
import { createWritePage, type WritePage } from './page-memory.ts';
import { createPrepareList, type PrepareList, selectTools } from './prepare-list.ts';
import type { Server } from './server.ts';
import { createPlannedView, type PlannedView } from './views/planned-view.ts';
import type { ViewsConfig } from './views/view-shape.ts';

/** The part of the configuration file that catalogues are made of. */
export interface CatalogFile extends ServersConfig, ViewsConfig, GuardedServers {}

/** The guards of the file, as far as they are about servers. */
export interface GuardedServers {
  readonly guards?: readonly {
    readonly name: string;
    /** Names of servers; undefined for all, and the built-in catalogue. */
    readonly servers: readonly string[] | undefined;
    /** Globs over names of tools as at `/mcp`; undefined for all. */
    readonly tools: readonly string[] | undefined;
    /** `server` is that of a guard of the kind `mcp`. */
    readonly use: { readonly kind: string; readonly server?: string | undefined };
  }[];
}

/** All that catalogues are made by, until the configuration is read anew. */
export interface CatalogSetup {
  readonly file: CatalogFile & PatternRules;
  /** Undefined where there is none: everything is approved. */
  readonly lock?: Lock | undefined;
  /** Decide who may see and use what. */
  readonly policies: Policies;
  /** Look at what goes through; undefined without guards. */
  readonly guards: Guards | undefined;
  /** Checks what a guard has changed against a server's schema; undefined without guards. */
  readonly checkSchema: CheckSchema | undefined;
}

/** The rules of the file, as far as their patterns are looked at here. */
export interface PatternRules {
  readonly rules: readonly {
    readonly may: readonly string[];
    /** Set where somebody is asked before a call. */
    readonly ask?: string | undefined;
    readonly place: string;
  }[];
}

/** All that follows from one setup. Nothing of it changes: the next setup makes another one. */
export interface Plan extends CatalogSetup {
  /** Undefined where the file says `"builtIn": false`. */
  readonly builtIn: BuiltIn | undefined;
  /** In the file's order. */
  readonly servers: ReadonlyMap<string, PlannedServer>;
  /** In the file's order. */
  readonly views: ReadonlyMap<string, PlannedView>;
  /** Those that are guards (§26.2): no client sees them, and no guard looks at them. */
  readonly guardServers: ReadonlyMap<string, PlannedGuardServer>;
  readonly naming: Naming;
  /** Undefined without guards. */
  readonly listGuards: ListGuards | undefined;
  readonly joinLists: JoinLists;
  readonly writePage: WritePage;
  /** For entries of lists. */
  readonly warn: WarnOfItem;
  /** For results. */
  readonly warnOfResult: WarnOfItem;
}

export interface PlannedGuardServer {
  readonly config: UpstreamConfig;
  readonly server: Server;
}

export interface PlannedServer extends PlannedGuardServer {
  readonly prepareList: PrepareList;
  readonly mayHave: MayHave;
  readonly approvable: ApprovableServer;
}

/** Lists are prepared anew with each setup, and what is hidden is said again. `takeServer` opens those that are not open yet. */
export function createPlan(
  log: Log,
  setup: CatalogSetup,
  builtIn: BuiltIn,
  listGuards: ListGuards | undefined,
  takeServer: (config: UpstreamConfig) => Server,
): Plan {
  const { file, lock, policies } = setup;
  const naming = createNaming(file);
  const warn = createWarnOfItem(log, 'more of what it lists is hidden');
  const areGuards = listGuardServers(file);
  const opened = file.servers.map((config) => ({ config, server: takeServer(config) }));
  const isGuard = ({ config }: PlannedGuardServer) => areGuards.includes(config.name);
  const guardedBuiltIn = listGuards === undefined ? builtIn : guardBuiltIn(builtIn, listGuards);

  const planServer = ({ config, server }: PlannedGuardServer): PlannedServer => ({
    config,
    server,
    prepareList: createPrepareList({
      config,
      hasConnectTool: server.upstream.facts.connection !== undefined,
      naming,
      policies,
      listGuards,
      warn,
    }),
    mayHave: createMayHave(config, lock, naming),
    approvable: toApprovable(config, server),
  });

  return {
    ...setup,
    listGuards,
    builtIn: file.builtIn ? guardedBuiltIn : undefined,
    guardServers: new Map(opened.filter(isGuard).map((one) => [one.config.name, one])),
    servers: new Map(
      opened.filter((one) => !isGuard(one)).map((one) => [one.config.name, planServer(one)]),
    ),
    views: new Map((file.views ?? []).map((view) => [view.name, createPlannedView(view, naming)])),
    naming,
    joinLists: createJoinLists(naming, warn),
    writePage: createWritePage(),
    warn,
    warnOfResult: createWarnOfItem(
      log,
      'more of its answers go on without what MCP does not allow',
    ),
  };
}

/** Names of the servers that are guards. */
export const listGuardServers = ({ guards = [] }: GuardedServers): readonly string[] =>
  guards.flatMap(({ use }) => use.server ?? []);

// §18.2: whether a server that has not said what it has could have a name that clients may see.

/** Asked by the server's own name: an item that is hidden while it is there is unknown while it is not. */
type MayHave = (kind: ListKind, ownName: string) => boolean;

function createMayHave(
  { name, tools }: UpstreamConfig,
  lock: Lock = NO_LOCK,
  { isStrict }: Naming,
): MayHave {
  const selected = selectTools(tools);

  return function mayHave(kind, ownName) {
    const { ruled } = LIST_KINDS[kind];
    if (ruled === 'resource') return false;
    if (kind === 'tools' && !selected.has(ownName)) return false;
    if (!isNameAllowed(kind, ownName, isStrict)) return false;
    return lock.knows(name, ruled, ownName);
  };
}

// §22.4, §22.6: a server, as operators approve it.

function toApprovable(config: UpstreamConfig, server: Server): ApprovableServer {
  const selected = selectTools(config.tools);
  const { lists, upstream, usage } = server;
  const peekList = (list: LockedList) => lists.peek(list, GATEWAY_CALLER) ?? NO_ITEMS;
  return {
    name: config.name,
    isPersonal: server.isPersonal,
    peek: () => ({
      instructions: readInstructions(lists.peekDescription(GATEWAY_CALLER)?.instructions),
      prompts: peekList('prompts'),
      skills: peekList('skills'),
      tools: peekList('tools'),
    }),
    isUsable: (list, item) =>
      findItemProblem(list, item) === undefined &&
      (list !== 'tools' || selected.has(String(item.name))),
    peekApproved: lists.peekApproved,
    async read(signal) {
      const content = await usage.run(() => readServer(upstream, GATEWAY_CALLER, signal));
      for (const { list } of Object.values(LOCKED_ITEMS)) {
        const served = lists.peek(list, GATEWAY_CALLER);
        if (served === undefined || served.fingerprint === content[list].fingerprint) continue;
        lists.invalidate(LIST_KINDS[list].list, GATEWAY_CALLER);
        await lists.load(list, GATEWAY_CALLER, 'forCall');
      }
      return content;
    },
  };
}

const NO_ITEMS = { items: [] };
