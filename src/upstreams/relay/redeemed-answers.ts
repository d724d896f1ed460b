// §18.3: the answers to what a server of the stateless era asked are passed on once. The server keeps nothing of the
// call, so it could not tell a replay from the first time.
import { randomUUID } from 'node:crypto';
import { GatewayError } from '../../errors/gateway-error.ts';
import { buildRedeemedAnswersKey } from '../../store/keys.ts';
import type { KeyValue } from '../../store/store.ts';

/**
 * Whether these answers, named when they were asked for, come for the first time, at any replica.
 *
 * @throws GatewayError `internal_error` when the store does not say.
 */
export type RedeemAnswers = (id: string) => Promise<boolean>;

/** No `requestState` is good for longer. */
const TTL_SECONDS = 3600;

export function createRedeemAnswers(
  store: Pick<KeyValue, 'getOrSet'>,
  keyPrefix: string,
): RedeemAnswers {
  return async function redeemAnswers(id) {
    const own = randomUUID();
    const key = buildRedeemedAnswersKey(keyPrefix, id);
    const first = await store.getOrSet(key, own, TTL_SECONDS).catch((cause: unknown) => {
      throw new GatewayError('internal_error', { cause });
    });
    return first === own;
  };
}
