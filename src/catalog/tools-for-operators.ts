// §22.4: which tools somebody would see, and by which rule, for operators. Nobody's token is needed, and no server is asked.

import { LOCKED } from '../lock/lock.ts';
import type { PolicyCaller } from '../mcp/calls/policy.ts';
import type { RuleDecision } from '../mcp/calls/rules.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { LISTING_CONTEXT } from '../mcp/catalog/own-catalog.ts';
import { GATEWAY_CALLER } from '../mcp/upstream/upstream.ts';
import { type Clock, createTurns } from '../platform/clock.ts';
import { findItemProblem, findOwnNameProblem } from './check-item.ts';
import type { Plan, PlannedServer } from './plan.ts';
import { selectTools, toJudgedList } from './prepare-list.ts';

export interface AccessPreview {
  /** The number of tools, and of those that are seen. */
  readonly total: number;
  readonly seen: number;
  /** Some of them, in the order of the joined list. */
  readonly tools: readonly PreviewedTool[];
  /** Servers whose tools differ between users: which they are is not known here. */
  readonly personal: readonly string[];
}

interface PreviewedTool {
  readonly name: string;
  readonly server: string;
  readonly decision: RuleDecision;
}

export interface PreviewRequest {
  readonly caller: PolicyCaller;
  readonly skip: number;
  readonly limit: number;
}

/** Tools that the lock or the configuration hides are seen by nobody, and left out. */
export async function previewAccess(
  clock: Clock,
  plan: Plan,
  { caller, skip, limit }: PreviewRequest,
): Promise<AccessPreview> {
  // Rules remember callers: a preview must not change what a real one gets.
  const rules = plan.rules.withOwnMemory();
  const servers = [...plan.servers.values()];
  const builtIn = await plan.builtIn?.list('tools', LISTING_CONTEXT);
  const listed = servers.map(({ server, prepareList }) => {
    const list = server.isPersonal ? undefined : server.lists.peek('tools', GATEWAY_CALLER);
    return list === undefined ? NOTHING : prepareList('tools', list).entries;
  });
  const { entries } = plan.joinLists('tools', [builtIn?.entries ?? NOTHING, ...listed]);
  const work = createTurns(clock);
  await rules.prepareFor(caller, work);
  const judged: PreviewedTool[] = [];
  for (const { name, server, annotations } of entries) {
    const item = { kind: 'tool', name, server, annotations, args: undefined } as const;
    judged.push({ name, server, decision: rules.decide(item, caller) });
    if (work.isOver()) await work.next();
  }
  return {
    total: judged.length,
    seen: judged.filter(({ decision }) => decision.kind !== 'denied').length,
    tools: judged.slice(skip, skip + limit),
    personal: servers.filter(({ server }) => server.isPersonal).map(({ config }) => config.name),
  };
}

const NOTHING: readonly never[] = [];

// §22.4: all tools that a server lists, for operators: also those that clients do not see, and why.

export interface ServerTools {
  /** Each user has a list of their own: then there is none for the gateway itself. */
  readonly isPersonal: boolean;
  /** The number of all. */
  readonly total: number;
  /** Some of them, in the server's order. */
  readonly tools: readonly ServerTool[];
}

interface ServerTool {
  /** As the server calls it; `''` where it has no name. */
  readonly name: string;
  /** As clients of `/mcp` see it; undefined where they do not. */
  readonly listedAs?: string;
  /** `left_out` by the configuration file; `new` and `changed` are what the lock says of it. */
  readonly state: 'listed' | 'left_out' | 'unusable' | 'new' | 'changed';
  /** Why it is not listed: the rest of a sentence that begins with its name. */
  readonly problem?: string;
}

/** Those from `skip` on, `limit` at most. Nothing is asked for: it is what the server listed last. */
export function listServerTools(
  planned: PlannedServer,
  { naming, lock }: Pick<Plan, 'naming' | 'lock'>,
  { skip, limit }: { readonly skip: number; readonly limit: number },
): ServerTools {
  const { config, server } = planned;
  const { isPersonal } = server;
  const items = isPersonal ? [] : (server.lists.peek('tools', GATEWAY_CALLER)?.items ?? []);
  const selected = selectTools(config.tools);
  const { join } = toJudgedList('tools', items, { config, naming });
  const before = items.slice(0, skip);
  const seen = new Set<unknown>(before.filter((item) => isUsable(item)).map(({ name }) => name));

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
    isPersonal,
    total: items.length,
    tools: items.slice(skip, skip + limit).map(describe),
  };
}

const isUsable = (item: RawItem): boolean => findItemProblem('tools', item) === undefined;
