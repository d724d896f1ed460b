// §8: others may stand behind an address that is refused, and a login may ask for what costs nothing. A few requests are
// still looked up, and then no more: a flood costs no look at the store.
import { createExpiringMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';

export interface SpareLookups {
  /** Whether there is one left of this window until its refusal ends. */
  take(key: string, resetInMs: number): boolean;
}

const MAX_LOOKUPS = 30;
/** A bound for the memory that made-up addresses can take. */
const MAX_WINDOWS = 10_000;

export function createSpareLookups(clock: Clock): SpareLookups {
  const byKey = createExpiringMap<{ taken: number }>(MAX_WINDOWS, clock.monotonic);

  return {
    take(key, resetInMs) {
      const current = byKey.get(key);
      if (current !== undefined) {
        current.taken += 1;
        return current.taken <= MAX_LOOKUPS;
      }
      byKey.set(key, { taken: 1 }, clock.monotonic() + resetInMs);
      return true;
    },
  };
}
