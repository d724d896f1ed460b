// Which secret seals what.
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

/** For what clients carry from one replica to another: the same, or one by a secret of the store. */
export function createReplicaSeal(
  { oauthStateSecrets, sessionKeyPrefix }: Config,
  store: Store,
  loginSeal: Seal | undefined,
): () => Promise<Seal> {
  if (loginSeal !== undefined) return async () => loginSeal;
  return lazily(async () =>
    createSeal(oauthStateSecrets ?? [await sharedSecret(store, sessionKeyPrefix)]),
  );
}

/** Made once, when it is asked for; a failure is tried again. */
function lazily<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return function get() {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
