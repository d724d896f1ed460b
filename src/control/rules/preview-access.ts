// §22.4: which tools somebody would see, and by which rule, for operators. Nobody's token is needed, and no server is asked.

import type { PolicyCaller, PolicyItem } from '../../mcp/calls/policy.ts';
import type { RuleDecision, Rules } from '../../mcp/calls/rules.ts';
import { type Clock, createTurns } from '../../platform/clock.ts';

export interface PreviewRequest {
  readonly caller: PolicyCaller;
  readonly skip: number;
  readonly limit: number;
}

export async function previewAccess(
  clock: Clock,
  compiled: Rules,
  listed: { readonly tools: readonly PolicyItem[]; readonly personal: readonly string[] },
  { caller, skip, limit }: PreviewRequest,
) {
  // Rules remember callers: a preview must not change what a real one gets.
  const rules = compiled.withOwnMemory();
  const work = createTurns(clock);
  await rules.prepareFor(caller, work);
  const judged: { name: string; server: string; decision: RuleDecision }[] = [];
  for (const { name, server, annotations } of listed.tools) {
    const item = { kind: 'tool', name, server, annotations, args: undefined } as const;
    judged.push({ name, server, decision: rules.decide(item, caller) });
    if (work.isOver()) await work.next();
  }
  return {
    total: judged.length,
    /** The number of those that are seen. */
    seen: judged.filter(({ decision }) => decision.kind !== 'denied').length,
    /** In the order of the joined list. */
    tools: judged.slice(skip, skip + limit),
    /** Servers whose tools differ between users: which they are is not known here. */
    personal: listed.personal,
  };
}
