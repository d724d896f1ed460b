// The seal for what clients carry from one replica to another, and for messages between replicas.
import type { Clock } from '../../platform/clock.ts';
import { generateSecret } from '../../platform/ids.ts';
import { buildSharedSecretKey } from '../keys.ts';
import type { Store } from '../store.ts';
import { createSeal, type Seal } from './seal.ts';

export interface ReplicaSealDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly loginSeal: Seal | undefined;
}

/** A store that has lost its data has another secret, or none: replicas must not keep the old one. */
const KEPT_MS = 60_000;

/** The seal of a login where there is one, else one by a secret in the store. */
export function createReplicaSeal(
  sessionKeyPrefix: string,
  { store, clock, loginSeal }: ReplicaSealDeps,
): () => Promise<Seal> {
  if (loginSeal !== undefined) return async () => loginSeal;
  let kept: { readonly seal: Seal; readonly at: number } | undefined;

  async function loadSeal(): Promise<Seal> {
    try {
      return createSeal([await loadOrCreateStoredSecret(store, sessionKeyPrefix)]);
    } catch (error) {
      // The one in memory is as good as it was a moment ago.
      if (kept !== undefined) return kept.seal;
      throw error;
    }
  }

  return async function getSeal() {
    if (kept === undefined || clock.monotonic() - kept.at > KEPT_MS) {
      kept = { seal: await loadSeal(), at: clock.monotonic() };
    }
    return kept.seal;
  };
}

const TEN_YEARS_SECONDS = 315_360_000;

/** The secret that all replicas have in common: whoever needs it first makes it. */
async function loadOrCreateStoredSecret(store: Store, sessionKeyPrefix: string): Promise<string> {
  const key = buildSharedSecretKey(sessionKeyPrefix);
  return (await store.get(key)) ?? store.getOrSet(key, generateSecret(), TEN_YEARS_SECONDS);
}
