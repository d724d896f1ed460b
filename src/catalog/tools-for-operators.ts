// Servers as operators see them, whoever may use them: as they listed last. No server is asked.

import { LOCKED, NO_LOCK } from '../mcp/catalog/approved-items.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { LISTING_CONTEXT } from '../mcp/catalog/own-catalog.ts';
import { GATEWAY_CALLER } from '../mcp/upstream/upstream.ts';
import { findItemProblem, findOwnNameProblem } from './check-item.ts';
import type { Plan, PlannedServer } from './plan.ts';
import { selectTools, toJudgedList } from './prepare-list.ts';

// §22.4: the tools that somebody could see.

/** Tools that the lock or the configuration hides are seen by nobody, and left out. */
export async function listJoinedTools(plan: Plan) {
  const servers = [...plan.servers.values()];
  const builtIn = await plan.builtIn?.list('tools', LISTING_CONTEXT);
  const listed = servers.map(({ server, prepareList }) => {
    const list = server.isPersonal ? undefined : server.lists.peek('tools', GATEWAY_CALLER);
    return list === undefined ? NOTHING : prepareList('tools', list).entries;
  });
  return {
    /** In the order of the joined list. */
    tools: plan.joinLists('tools', [builtIn?.entries ?? NOTHING, ...listed]).entries,
    /** Servers whose tools differ between users: which they are is not known here. */
    personal: servers.filter(({ server }) => server.isPersonal).map(({ config }) => config.name),
  };
}

const NOTHING: readonly never[] = [];

// §22.4: all tools that a server lists, for operators: also those that clients do not see, and why.

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
export function listServerTools(
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
