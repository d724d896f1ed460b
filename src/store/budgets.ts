// An entry that counts in several budgets at once: in that of its user, and in that of all.
import { hashSha256 } from '../platform/ids.ts';
import type { ByteEntry, Windows } from './store.ts';

export interface Budget {
  readonly key: string;
  readonly maxBytes: number;
}

/** Lists the budgets of a user, if there is one and its bound is not 0, and of all. */
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
 * Counts the entry in all of them for `ttlSeconds`, or in none, where one has no room: false. In their order: whose own
 * budget is full takes nothing of the others'.
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
