// §8: others may stand behind an address that is refused, and a login may ask for what costs nothing. A few requests are
// still looked up, and then no more: a flood costs no look at the store.
import type { Clock } from '../../platform/clock.ts';

export interface SpareLookups {
  /** Whether there is one left of this window until its refusal ends. */
  take(key: string, resetInMs: number): boolean;
}

const MAX_LOOKUPS = 30;
/** A bound for the memory that made-up addresses can take. */
const MAX_WINDOWS = 10_000;

export function createSpareLookups(clock: Clock): SpareLookups {
  const byKey = new Map<string, { taken: number; readonly until: number }>();

  return {
    take(key, resetInMs) {
      const now = clock.monotonic();
      const current = byKey.get(key);
      if (current !== undefined && current.until > now) {
        current.taken += 1;
        return current.taken <= MAX_LOOKUPS;
      }
      byKey.delete(key);
      const [oldest] = byKey.keys();
      if (byKey.size >= MAX_WINDOWS && oldest !== undefined) byKey.delete(oldest);
      byKey.set(key, { taken: 1, until: now + resetInMs });
      return true;
    },
  };
}
