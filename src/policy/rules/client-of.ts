// §18.5: which OAuth client a token was made for.
import {
  findClaimedClient,
  identifyCredential,
  readClaimedClient,
  type UserContext,
} from '../../endpoint/message.ts';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildTokenClientKey } from '../../store/keys.ts';

/** Undefined where it is not known, also because the store cannot say: no rule about clients holds then. */
export type ClientOf = (caller: {
  readonly user: UserContext | undefined;
}) => string | undefined | Promise<string | undefined>;

type ClientOfRuntime = Pick<Runtime, 'clock' | 'log'> & {
  readonly store: Pick<Runtime['store'], 'get'>;
};

const MAX_TOKENS = 10_000;

/** For tokens of which nothing was noted: a token from elsewhere, or from before its client was needed. */
const UNKNOWN_MS = 30_000;

/**
 * `ownClientId` is the client that the gateway is at the provider, in broker mode: all tokens are made for it. Where nothing
 * depends on the client now, as `isNeeded` says, the store is not asked.
 */
export function createClientOf(
  { store, clock, log }: ClientOfRuntime,
  ownClientId: string | undefined,
  isNeeded: () => boolean,
): ClientOf {
  // Outside of broker mode nothing was noted: what the token says is all that is known.
  if (ownClientId === undefined) return findClaimedClient;

  /** Keyed by the SHA-256 of a token. */
  const remembered = createExpiringMap<Promise<string | undefined>>(MAX_TOKENS, clock.now);
  const warn = createWarnThrottle(clock, (error: unknown) => {
    log.warn(
      'The store could not say which client a token was made for. Meanwhile rules about clients allow nothing, and servers with identity are not told the client.',
      { cause: error },
    );
  });

  async function read(digest: string, exp: unknown): Promise<string | undefined> {
    try {
      const client = await store.get(buildTokenClientKey(digest));
      const end = typeof exp === 'number' && client !== undefined ? exp * 1000 : 0;
      remembered.set(digest, Promise.resolve(client), Math.max(end, clock.now() + UNKNOWN_MS));
      return client;
    } catch (error) {
      remembered.delete(digest);
      warn(error);
      return undefined;
    }
  }

  return function clientOf({ user }) {
    if (user === undefined) return undefined;
    if (user.grant !== undefined) return user.grant.clientId;
    const claimed = readClaimedClient(user.claims);
    if ((claimed ?? ownClientId) !== ownClientId) return claimed;
    if (!isNeeded()) return undefined;
    const digest = identifyCredential(user);
    const known = remembered.get(digest);
    if (known !== undefined) return known;
    const client = read(digest, user.claims.exp);
    // Calls that come meanwhile wait for the same answer.
    remembered.set(digest, client, Number.POSITIVE_INFINITY);
    return client;
  };
}
