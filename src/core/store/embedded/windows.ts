// Spec §8: sliding windows in memory, exact; a restart forgets them.
import type { LimitWindow, Verdict } from '../store.ts';

export interface Windows {
  /** Checks all windows in order, then counts in all; a refused request is counted in none. */
  admit(windows: readonly LimitWindow[], now: number): Verdict | undefined;
  /** Forgets keys whose entries have all left their window. */
  sweep(now: number): void;
}

/** Times of admitted requests, oldest first; those before `head` have left the window. */
interface Entries {
  times: number[];
  head: number;
  windowMs: number;
}

const COMPACT_AT = 1024;

export function createWindows(): Windows {
  const byKey = new Map<string, Entries>();

  return {
    admit(windows, now) {
      for (const window of windows) {
        const entries = current(window, now);
        if (entries.times.length - entries.head >= window.max)
          return verdict(false, window, entries, now);
      }
      for (const window of windows) current(window, now).times.push(now);
      const first = windows[0];
      return first && verdict(true, first, current(first, now), now);
    },
    sweep(now) {
      for (const [key, { times, windowMs }] of byKey) {
        const newest = times.at(-1);
        if (newest === undefined || newest <= now - windowMs) byKey.delete(key);
      }
    },
  };

  function current({ key, windowMs }: LimitWindow, now: number): Entries {
    const entries = byKey.get(key) ?? { times: [], head: 0, windowMs };
    byKey.set(key, entries);
    const { times } = entries;
    for (let oldest = times[entries.head]; oldest !== undefined && oldest <= now - windowMs; ) {
      entries.head += 1;
      oldest = times[entries.head];
    }
    // Now and then, so that dropping an entry costs next to nothing.
    if (entries.head > COMPACT_AT && entries.head * 2 > times.length) {
      entries.times = times.slice(entries.head);
      entries.head = 0;
    }
    return entries;
  }
}

function verdict(
  admitted: boolean,
  { scope, max, windowMs }: LimitWindow,
  { times, head }: Entries,
  now: number,
): Verdict {
  const resetAt = (times[head] ?? now) + windowMs;
  const remaining = admitted ? max - (times.length - head) : 0;
  return { admitted, scope, limit: max, remaining, resetAt, resetInMs: resetAt - now };
}
