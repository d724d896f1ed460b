// Bytes of values that count in a budget, in memory: there is one process, and a restart forgets them.
import type { Clock } from '../../clock.ts';
import { type ByteEntry, MIN_ENTRY_BYTES, type Store } from '../store.ts';

export interface ByteBudgets extends Pick<Store, 'reserveBytes' | 'releaseBytes'> {
  /** Forgets budgets in which nothing counts any more. */
  sweep(): void;
}

interface CountedEntry {
  readonly bytes: number;
  /** Of a clock that never jumps. */
  readonly expiresAt: number;
}

type Entries = Map<string, CountedEntry>;

export function createByteBudgets(clock: Clock): ByteBudgets {
  const budgets = new Map<string, Entries>();

  return {
    async reserveBytes(budget, entry, { maxBytes, ttlSeconds }) {
      const entries = budgets.get(budget) ?? new Map();
      forgetExpired(entries, clock.monotonic());
      const key = toKey(entry);
      const bytes = Math.max(entry.bytes, MIN_ENTRY_BYTES);
      if (bytes + sumOthers(entries, key) > maxBytes) return false;
      entries.set(key, { bytes, expiresAt: clock.monotonic() + ttlSeconds * 1000 });
      budgets.set(budget, entries);
      return true;
    },
    async releaseBytes(budget, entry) {
      const entries = budgets.get(budget);
      if (entries?.delete(toKey(entry)) && entries.size === 0) budgets.delete(budget);
    },
    sweep() {
      const now = clock.monotonic();
      for (const [budget, entries] of budgets) {
        forgetExpired(entries, now);
        if (entries.size === 0) budgets.delete(budget);
      }
    },
  };
}

const toKey = ({ name, bytes }: ByteEntry): string => `${bytes}:${name}`;

function forgetExpired(entries: Entries, now: number): void {
  for (const [key, { expiresAt }] of entries) if (expiresAt <= now) entries.delete(key);
}

function sumOthers(entries: Entries, key: string): number {
  let sum = 0;
  for (const [other, { bytes }] of entries) if (other !== key) sum += bytes;
  return sum;
}
