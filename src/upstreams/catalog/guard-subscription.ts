// §26: what a client wants to hear of: a URI goes to its server with it.

import type { IdentifiedCaller } from '../../mcp/catalog/served-catalog.ts';
import type { GuardedItem, Guards } from '../../policy/guards/guards.ts';

/** Whether the guards let it. They cannot change what somebody subscribes to. */
export async function guardSubscription(
  guards: Guards | undefined,
  item: GuardedItem,
  { user, clientId, view }: IdentifiedCaller,
): Promise<boolean> {
  const guard = guards?.find('resources/subscribe', item);
  if (guard === undefined) return true;
  const verdict = await guard.judge({
    value: { uri: item.name },
    caller: { user, clientId, view, requestId: undefined, trace: {} },
    findProblem: () => 'what is subscribed to cannot be changed',
  });
  return verdict.kind !== 'refused';
}
