// Reserves bytes in several budgets at once: that of the user, and that of all users.
import { hashSha256 } from '../platform/ids.ts';
import type { ByteEntry, Windows } from './store.ts';

interface Budget {
  readonly key: string;
  readonly maxBytes: number;
}

/** Creates the function that lists the budget of a user, unless its bound is 0, and that of all users. */
export function createBudgets(
  buildKey: (owner: string) => string,
  userBytes: number,
  allBytes: number,
): (user: string | undefined) => readonly Budget[] {
  const all = { key: buildKey('all'), maxBytes: allBytes };
  return (user) =>
    user === undefined || userBytes === 0
      ? [all]
      : [{ key: buildKey(hashSha256(user)), maxBytes: userBytes }, all];
}

/**
 * Counts the entry in all budgets for `ttlSeconds`, or in none and returns false if one has no room. In their order: a user whose
 * own budget is full takes nothing from others.
 */
export async function reserveInAll(
  store: Pick<Windows, 'reserveBytes' | 'releaseBytes'>,
  budgets: readonly Budget[],
  entry: ByteEntry,
  ttlSeconds: number,
): Promise<boolean> {
  for (const [at, { key, maxBytes }] of budgets.entries()) {
    if (await store.reserveBytes(key, entry, { maxBytes, ttlSeconds })) continue;
    await releaseInAll(store, budgets.slice(0, at), entry);
    return false;
  }
  return true;
}

export async function releaseInAll(
  store: Pick<Windows, 'releaseBytes'>,
  budgets: readonly Pick<Budget, 'key'>[],
  entry: ByteEntry,
): Promise<void> {
  await Promise.all(budgets.map(({ key }) => store.releaseBytes(key, entry)));
}
