// §22.4: which tools somebody would see, and by which rule, for operators. Nobody's token is needed, and no server is asked.

import type { CallerContext } from '../../mcp/catalog/served-catalog.ts';
import type { Clock } from '../../platform/clock.ts';
import { createTurns } from '../../platform/turns.ts';
import type { RuleCaller, RuleDecision, Rules } from '../../policy/rules/rules.ts';
import { GATEWAY_CALLER } from '../upstream.ts';
import type { Plan } from './plan.ts';

export interface AccessPreview {
  /** How many tools there are, and how many of them are seen. */
  readonly total: number;
  readonly seen: number;
  /** Some of them, in the order of the joined list. */
  readonly tools: readonly PreviewedTool[];
  /** Servers whose tools differ between users: which they are is not known here. */
  readonly personal: readonly string[];
}

export interface PreviewedTool {
  readonly name: string;
  readonly server: string;
  readonly decision: RuleDecision;
}

export interface PreviewOptions {
  readonly caller: RuleCaller;
  /** Of the preview's own: what they remember of a caller must not be what a real one gets. */
  readonly rules: Rules;
  readonly skip: number;
  readonly limit: number;
  readonly clock: Clock;
  /** By which the built-in catalogue is asked: of nobody in particular. */
  readonly listingContext: CallerContext;
}

/** Tools that the lock or the configuration hides are seen by nobody, and left out. */
export async function previewAccess(plan: Plan, options: PreviewOptions): Promise<AccessPreview> {
  const { caller, rules, skip, limit, clock, listingContext } = options;
  const servers = [...plan.servers.values()];
  const builtIn = await plan.builtIn?.list('tools', listingContext);
  const parts = servers.map(({ server, prepareList }) => {
    const list = server.isPersonal ? undefined : server.lists.peek('tools', GATEWAY_CALLER);
    return list === undefined ? NOTHING : prepareList('tools', list).entries;
  });
  const { entries } = plan.joinLists('tools', [builtIn?.entries ?? NOTHING, ...parts]);
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
