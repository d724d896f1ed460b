// §13.4: each logout token is used once, on all replicas (OpenID Connect Back-Channel Logout §2.6): but one whose logout
// failed half-way can be sent again.

import type { Clock } from '../../platform/clock.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { buildLogoutTokenKey } from '../../store/keys.ts';
import type { KeyValue } from '../../store/store.ts';
import { computeNotedSeconds } from '../auth/claims.ts';
import type { LogoutToken } from '../auth/logout-token.ts';

export type LogoutTokenUse =
  | {
      readonly kind: 'first';
      /** All has ended: it is not accepted again. */
      finish(): Promise<void>;
      /** Never rejects: where the store fails, it can come again when its time here is over. */
      giveBack(): Promise<void>;
    }
  /** Another request uses it at this moment, and may fail. */
  | { readonly kind: 'underWay' }
  | { readonly kind: 'again' };

export interface LogoutTokenUses {
  /** Without effect: whether all that it says was done. */
  isUsed(token: LogoutToken): Promise<boolean>;
  /** One of many at the same moment is the first. */
  use(token: LogoutToken): Promise<LogoutTokenUse>;
}

export interface LogoutTokenUsesDeps {
  readonly store: Pick<KeyValue, 'get' | 'getOrSet' | 'compareAndSet' | 'compareAndDelete'>;
  /** `OIDC_ISSUER`. */
  readonly issuer: string;
  readonly clock: Clock;
}

/** A process may end in the middle of it: then it can come again after so long. */
const UNDER_WAY_SECONDS = 30;

const USED = 'used';

export function createLogoutTokenUses({
  store,
  issuer,
  clock,
}: LogoutTokenUsesDeps): LogoutTokenUses {
  const buildKey = ({ jti }: LogoutToken): string =>
    buildLogoutTokenKey(hashSha256(JSON.stringify([issuer, jti])));

  return {
    isUsed: async (token) => (await store.get(buildKey(token))) === USED,
    async use(token) {
      const key = buildKey(token);
      const claim = generateSecret();
      const standing = await store.getOrSet(key, claim, UNDER_WAY_SECONDS);
      if (standing === USED) return { kind: 'again' };
      if (standing !== claim) return { kind: 'underWay' };
      return {
        kind: 'first',
        async finish() {
          const ttlSeconds = computeNotedSeconds(token.acceptedUntil, clock.now());
          if (await store.compareAndSet(key, claim, USED, ttlSeconds)) return;
          // It took longer than the claim lasts. Who has claimed it meanwhile will say what came of it.
          await store.compareAndSet(key, undefined, USED, ttlSeconds);
        },
        async giveBack() {
          await store.compareAndDelete(key, claim).catch(() => false);
        },
      };
    },
  };
}
