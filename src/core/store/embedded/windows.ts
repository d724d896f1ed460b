// Spec §8: sliding windows in memory, exact; a restart forgets them.
import type { LimitWindow, Verdict } from '../store.ts';

export interface Windows {
  /** Checks all windows in order, then counts in all; a refused request is counted in none. */
  admit(windows: readonly LimitWindow[], now: number): Verdict | undefined;
  /** Takes one entry of that time back. */
  withdraw(key: string, time: number): void;
  /** Forgets keys whose entries have all left their window. */
  sweep(now: number): void;
}

/** Times of admitted requests, oldest first; those before `head` have left the window. */
interface Entries {
  times: number[];
  head: number;
  windowMs: number;
}

/** Small, because there may be an address for every entry that the global limit lets in. */
const COMPACT_AT = 32;

export function createWindows(): Windows {
  const byKey = new Map<string, Entries>();

  return {
    admit(windows, now) {
      for (const window of windows) {
        // A key is kept only once it counts something: addresses that are refused leave no trace.
        const entries = byKey.get(window.key) ?? none(window.windowMs);
        forget(entries, now - window.windowMs);
        if (inWindow(entries) >= window.max) return verdict(false, window, entries, now);
      }
      for (const { key, windowMs } of windows) {
        const entries = byKey.get(key) ?? none(windowMs);
        byKey.set(key, entries);
        entries.times.push(now);
      }
      const first = windows[0];
      return first && verdict(true, first, byKey.get(first.key) ?? none(first.windowMs), now);
    },
    withdraw(key, time) {
      const entries = byKey.get(key);
      const at = entries?.times.lastIndexOf(time) ?? -1;
      if (entries && at >= entries.head) entries.times.splice(at, 1);
      if (entries && inWindow(entries) === 0) byKey.delete(key);
    },
    sweep(now) {
      for (const [key, { times, windowMs }] of byKey) {
        const newest = times.at(-1);
        if (newest === undefined || newest <= now - windowMs) byKey.delete(key);
      }
    },
  };
}

const none = (windowMs: number): Entries => ({ times: [], head: 0, windowMs });

const inWindow = ({ times, head }: Entries): number => times.length - head;

/** Drops what is at `until` or older. */
function forget(entries: Entries, until: number): void {
  const { times } = entries;
  for (let oldest = times[entries.head]; oldest !== undefined && oldest <= until; ) {
    entries.head += 1;
    oldest = times[entries.head];
  }
  // Now and then, so that dropping an entry costs next to nothing.
  if (entries.head > COMPACT_AT && entries.head * 2 > times.length) {
    entries.times = times.slice(entries.head);
    entries.head = 0;
  }
}

function verdict(
  admitted: boolean,
  { scope, max, windowMs }: LimitWindow,
  entries: Entries,
  now: number,
): Verdict {
  const resetAt = (entries.times[entries.head] ?? now) + windowMs;
  const remaining = admitted ? max - inWindow(entries) : 0;
  return { admitted, scope, limit: max, remaining, resetAt, resetInMs: resetAt - now };
}
