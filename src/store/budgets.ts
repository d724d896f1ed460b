// An entry that counts in several budgets at once: in that of its user, and in that of all.
import type { ByteEntry, Windows } from './store.ts';

export interface Budget {
  readonly key: string;
  readonly maxBytes: number;
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
  const reserved: Budget[] = [];
  for (const budget of budgets) {
    const { key, maxBytes } = budget;
    if (!(await store.reserveBytes(key, entry, { maxBytes, ttlSeconds }))) {
      await releaseInAll(store, reserved, entry);
      return false;
    }
    reserved.push(budget);
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
