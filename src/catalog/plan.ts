// The configuration file, as long as it is the one that is served.

import type { GuardsConfig } from '../control/guards/guard-config.ts';
import type { RulesConfig } from '../control/rules/rule-config.ts';
import type { CompiledRules } from '../control/rules/rules.ts';
import { type Lock, NO_LOCK } from '../lock/lock.ts';
import type { Guards } from '../mcp/calls/guards.ts';
import type { Policies } from '../mcp/calls/policy.ts';
import type { CheckSchema } from '../mcp/catalog/foreign-schema.ts';
import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import type { ServersConfig, UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { type BuiltIn, guardBuiltIn } from './built-in.ts';
import { isNameAllowed, type WarnOfItem } from './check-item.ts';
import { createJoinLists, type JoinLists } from './join-lists.ts';
import type { ListGuards } from './list-guards.ts';
import { createNaming, type Naming } from './naming.ts';
import { createWritePage, type WritePage } from './page-memory.ts';
import { createPrepareList, type PrepareList, selectTools } from './prepare-list.ts';
import type { Server } from './server.ts';
import { createPlannedView, type PlannedView } from './views/planned-view.ts';
import type { ViewsConfig } from './views/view-shape.ts';

/** Read together, and served until it is read anew: the configuration file, and the lock beside it. */
export interface Setup {
  readonly file: ServersConfig & ViewsConfig & RulesConfig & GuardsConfig;
  /** Undefined where there is none: everything is approved. */
  readonly lock?: Lock | undefined;
  /** The lock file is empty (`{}`): that there is no lock is meant. */
  readonly meansNoLock?: boolean;
}

/** A setup whose rules are compiled. */
export interface CompiledSetup {
  readonly setup: Setup;
  readonly rules: CompiledRules;
  /** Decide who may see and use what. */
  readonly policies: Policies;
  /** Look at what goes through; undefined without guards. */
  readonly guards: Guards | undefined;
  /** Checks what a guard has changed against a server's schema; undefined without guards. */
  readonly checkSchema: CheckSchema | undefined;
}

/** All that follows from one setup. Nothing of it changes: the next setup makes another one. */
export interface Plan extends CompiledSetup {
  /** Undefined where the file says `"builtIn": false`. */
  readonly builtIn: BuiltIn | undefined;
  /** In the file's order. */
  readonly servers: ReadonlyMap<string, PlannedServer>;
  /** In the file's order. */
  readonly views: ReadonlyMap<string, PlannedView>;
  /** Those that are guards (§26.2): no client sees them, and no guard looks at them. */
  readonly guardServers: ReadonlyMap<string, PlannedGuardServer>;
  readonly naming: Naming;
  /** `NO_LOCK` where the setup has none. */
  readonly lock: Lock;
  /** Undefined without guards. */
  readonly listGuards: ListGuards | undefined;
  readonly joinLists: JoinLists;
  readonly writePage: WritePage;
  /** For entries of lists. */
  readonly warn: WarnOfItem;
  /** For results. */
  readonly warnOfResult: WarnOfItem;
}

export interface PlannedServer {
  readonly config: UpstreamConfig;
  readonly server: Server;
  readonly prepareList: PrepareList;
  readonly mayHave: MayHave;
}

export type PlannedGuardServer = Pick<PlannedServer, 'config' | 'server'>;

/** The setup, opened. */
interface OpenedSetup {
  readonly builtIn: BuiltIn;
  /** One for each of the file, by name. */
  readonly servers: ReadonlyMap<string, Server>;
  readonly warn: WarnOfItem;
  readonly warnOfResult: WarnOfItem;
  readonly listGuards: ListGuards | undefined;
}

export function createPlan(
  compiled: CompiledSetup,
  { builtIn, servers, warn, warnOfResult, listGuards }: OpenedSetup,
): Plan {
  const { setup, policies } = compiled;
  const { file, lock = NO_LOCK } = setup;
  const naming = createNaming(file);
  const guardedBuiltIn = listGuards === undefined ? builtIn : guardBuiltIn(builtIn, listGuards);
  const areGuards = new Set(listGuardServers(file));
  return {
    ...compiled,
    lock,
    listGuards,
    builtIn: file.builtIn ? guardedBuiltIn : undefined,
    guardServers: new Map(
      file.servers.flatMap((config) => {
        const server = servers.get(config.name);
        return server !== undefined && areGuards.has(config.name)
          ? [[config.name, { config, server }]]
          : [];
      }),
    ),
    servers: new Map(
      file.servers.flatMap((config) => {
        if (areGuards.has(config.name)) return [];
        const server = servers.get(config.name);
        const prepareList = createPrepareList({ config, naming, policies, listGuards, warn });
        const mayHave = createMayHave(config, lock, naming);
        return server === undefined
          ? []
          : [[config.name, { config, server, prepareList, mayHave }]];
      }),
    ),
    views: new Map((file.views ?? []).map((view) => [view.name, createPlannedView(view, naming)])),
    naming,
    joinLists: createJoinLists(naming, warn),
    writePage: createWritePage(),
    warn,
    warnOfResult,
  };
}

/** Names of the servers that are guards. */
export const listGuardServers = ({ guards = [] }: GuardsConfig): readonly string[] =>
  guards.flatMap(({ use }) => (use.kind === 'mcp' ? [use.server] : []));

// §18.2: whether a server that has not said what it has could have a name that clients may see.

/** Asked by the server's own name: an item that is hidden while it is there is unknown while it is not. */
type MayHave = (kind: ListKind, ownName: string) => boolean;

function createMayHave({ name, tools }: UpstreamConfig, lock: Lock, { isStrict }: Naming): MayHave {
  const selected = selectTools(tools);

  return function mayHave(kind, ownName) {
    const { ruled } = LIST_KINDS[kind];
    if (ruled === 'resource') return false;
    if (kind === 'tools' && !selected.has(ownName)) return false;
    if (!isNameAllowed(kind, ownName, isStrict)) return false;
    return lock.knows(name, ruled, ownName);
  };
}

/**
 * Asks again where the configuration has changed meanwhile: of a server that went nothing comes, and its successor may
 * have what was asked for.
 */
export async function askByCurrentPlan<Answer>(
  getPlan: () => Plan,
  ask: (plan: Plan) => Answer | Promise<Answer>,
): Promise<Answer> {
  for (;;) {
    const plan = getPlan();
    const answer = await ask(plan);
    if (getPlan() === plan) return answer;
  }
}
