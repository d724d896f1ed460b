// What a caller is told that may not use something.

import { fail } from '../../errors/gateway-error.ts';
import type { Verdict } from '../../policy/policy.ts';
import type { CallContext } from '../calls/context.ts';
import type { Target } from '../catalog/served-catalog.ts';

export type Denial = Exclude<Verdict, { kind: 'allowed' }>;

export const nameDenial = (verdict: Denial): string =>
  verdict.kind === 'denied' ? verdict.by : 'insufficient_scope';

/** What may not be used is unknown to its caller; RFC 6750 §3.1 for scopes. */
export async function refuse(
  verdict: Denial,
  { item, failAsUnknown }: Target,
  context: CallContext,
): Promise<never> {
  const facts = { deniedBy: nameDenial(verdict), server: item.server };
  if (verdict.kind === 'scopes_missing') {
    fail('insufficient_scope', { data: { scopes: verdict.scopes }, facts });
  }
  return failAsUnknown(context, facts);
}
