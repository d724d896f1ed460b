// What a caller is told that may not use something.

import { fail } from '../../errors/gateway-error.ts';
import { quote } from '../../platform/text.ts';
import type { Verdict } from '../../policy/policy.ts';
import type { CallContext } from '../calls/context.ts';
import type { Target } from '../catalog/served-catalog.ts';

/** Characters of a number that an error shows. */
const MAX_NUMBER = 40;

export type Denial = Exclude<Verdict, { kind: 'allowed' }>;

export const nameDenial = (verdict: Denial): string =>
  verdict.kind === 'denied' ? verdict.by : 'insufficient_scope';

/** What may not be used is unknown to its caller; RFC 6750 §3.1 for scopes. */
export async function refuse(
  verdict: Denial,
  target: Target,
  context: CallContext,
): Promise<never> {
  const facts = { deniedBy: nameDenial(verdict), server: target.item.server };
  if (verdict.kind === 'scopes_missing') {
    fail('insufficient_scope', { data: { scopes: verdict.scopes }, facts });
  }
  if (verdict.rounded !== undefined) {
    fail(target.item.kind === 'tool' ? 'invalid_tool_input' : 'invalid_params', {
      details: `A rule looks at the number ${quote(verdict.rounded, MAX_NUMBER)}, which cannot be compared exactly here. Send one of at most 15 digits.`,
      facts,
    });
  }
  return target.failAsUnknown(context, facts);
}
