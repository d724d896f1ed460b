// Which secret seals what.
import type { Clock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import type { Store } from '../store/store.ts';
import { keptSecret } from './kept-secret.ts';
import { createSeal, type Seal } from './seal.ts';
import { sharedSecret } from './shared-secret.ts';

/** For what lies in the store of a log-in; undefined where nothing does. */
export async function createLoginSeal(config: Config): Promise<Seal | undefined> {
  const { oauthMode, oauthConsent, oauthStateSecrets, dataDir } = config;
  if (oauthMode === 'proxy' && oauthConsent === 'off') return undefined;
  return createSeal(oauthStateSecrets ?? [await keptSecret(dataDir)]);
}

export interface ReplicaSealDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly loginSeal: Seal | undefined;
}

/** A store that has lost its data has another secret, or none: replicas must not keep the old one. */
const REMEMBERED_MS = 60_000;

/** For what clients carry from one replica to another: the same, or one by a secret of the store. */
export function createReplicaSeal(
  { oauthStateSecrets, sessionKeyPrefix }: Config,
  { store, clock, loginSeal }: ReplicaSealDeps,
): () => Promise<Seal> {
  if (loginSeal !== undefined) return async () => loginSeal;
  if (oauthStateSecrets !== undefined) {
    const seal = createSeal(oauthStateSecrets);
    return async () => seal;
  }
  let made: { readonly seal: Seal; readonly at: number } | undefined;

  async function renew(known: Seal | undefined): Promise<Seal> {
    try {
      return createSeal([await sharedSecret(store, sessionKeyPrefix)]);
    } catch (error) {
      // The one in memory is as good as it was a moment ago.
      if (known !== undefined) return known;
      throw error;
    }
  }

  return async function get() {
    if (made === undefined || clock.monotonic() - made.at > REMEMBERED_MS) {
      made = { seal: await renew(made?.seal), at: clock.monotonic() };
    }
    return made.seal;
  };
}
