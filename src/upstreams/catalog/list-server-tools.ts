// §22.4: all tools that a server lists, for operators: also those that clients do not see, and why.
import type { RawItem } from '../../mcp/catalog/catalog.ts';
import { LOCKED } from '../lock/lock-policy.ts';
import { GATEWAY_CALLER } from '../upstream.ts';
import { findItemProblem } from './check-item.ts';
import type { Plan, PlannedServer } from './plan.ts';
import { selectTools } from './select-tools.ts';

export interface ServerTools {
  /** Each user has a list of their own: then there is none for the gateway itself. */
  readonly isPersonal: boolean;
  /** How many there are. */
  readonly total: number;
  /** Some of them, in the server's order. */
  readonly tools: readonly ServerTool[];
}

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
  const before = items.slice(0, skip);
  const seen = new Set<unknown>(before.filter((item) => isUsable(item)).map(({ name }) => name));

  function describe(item: RawItem): ServerTool {
    const name = typeof item.name === 'string' ? item.name : '';
    const problem = findItemProblem('tools', item);
    if (problem !== undefined) return { name, state: 'unusable', problem };
    if (!selected.has(name))
      return { name, state: 'left_out', problem: 'is left out by "tools" in the configuration' };
    if (seen.has(name)) return { name, state: 'unusable', problem: 'is listed twice' };
    seen.add(name);
    const verdict = lock.check(config.name, 'tool', item);
    return verdict === 'approved'
      ? { name, listedAs: naming.join(config, name), state: 'listed' }
      : { name, state: verdict, problem: LOCKED[verdict] };
  }

  return {
    isPersonal,
    total: items.length,
    tools: items.slice(skip, skip + limit).map(describe),
  };
}

const isUsable = (item: RawItem): boolean => findItemProblem('tools', item) === undefined;
