import { generateSecret } from '../ids.ts';
import { sharedSecretKey } from '../store/keys.ts';
import { type Store, StoreUnavailable } from '../store/store.ts';

const TEN_YEARS_SECONDS = 315_360_000;

/** The secret that all replicas have in common: made by whoever needs it first, kept in the store. */
export async function sharedSecret(store: Store, prefix: string): Promise<string> {
  const key = sharedSecretKey(prefix);
  const kept = await store.get(key);
  if (kept !== undefined) return kept;
  const secret = generateSecret();
  if (await store.add(key, secret, TEN_YEARS_SECONDS)) return secret;
  return (await store.get(key)) ?? lost();
}

function lost(): never {
  throw new StoreUnavailable('The secret of the replicas vanished while it was read');
}
