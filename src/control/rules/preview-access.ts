// §22.4: which tools somebody would see, and by which rule, for operators. Nobody's token is needed, and no server is asked.

import type { PolicyCaller, PolicyItem } from '../../mcp/calls/policy.ts';
import type { RuleDecision, Rules } from '../../mcp/calls/rules.ts';
import { type Clock, createTurns } from '../../platform/clock.ts';

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

export async function previewAccess(
  clock: Clock,
  compiled: Rules,
  listed: { readonly tools: readonly PolicyItem[]; readonly personal: readonly string[] },
  { caller, skip, limit }: PreviewRequest,
): Promise<AccessPreview> {
  // Rules remember callers: a preview must not change what a real one gets.
  const rules = compiled.withOwnMemory();
  const work = createTurns(clock);
  await rules.prepareFor(caller, work);
  const judged: PreviewedTool[] = [];
  for (const { name, server, annotations } of listed.tools) {
    const item = { kind: 'tool', name, server, annotations, args: undefined } as const;
    judged.push({ name, server, decision: rules.decide(item, caller) });
    if (work.isOver()) await work.next();
  }
  return {
    total: judged.length,
    seen: judged.filter(({ decision }) => decision.kind !== 'denied').length,
    tools: judged.slice(skip, skip + limit),
    personal: listed.personal,
  };
}
