// §8: sliding windows in memory, exact; a restart forgets them.
import type { LimitWindow, Verdict } from '../store.ts';

export interface SlidingWindows {
  /** Checks all windows in order, then counts in all; a refused request is counted in none. */
  countRequest(windows: readonly LimitWindow[], now: number): Verdict | undefined;
  /** Takes one entry of that time back. */
  uncountRequest(key: string, time: number): void;
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

export function createSlidingWindows(): SlidingWindows {
  const byKey = new Map<string, Entries>();

  return {
    countRequest(windows, now) {
      for (const window of windows) {
        // A key is kept only once it counts something: addresses that are refused leave no trace.
        const entries = byKey.get(window.key) ?? createEntries(window.windowMs);
        dropUntil(entries, now - window.windowMs);
        if (countEntries(entries) >= window.max) return createVerdict(false, window, entries, now);
      }
      for (const { key, windowMs } of windows) {
        const entries = byKey.get(key) ?? createEntries(windowMs);
        byKey.set(key, entries);
        entries.times.push(now);
      }
      const first = windows[0];
      return (
        first &&
        createVerdict(true, first, byKey.get(first.key) ?? createEntries(first.windowMs), now)
      );
    },
    uncountRequest(key, time) {
      const entries = byKey.get(key);
      const at = entries?.times.lastIndexOf(time) ?? -1;
      if (entries && at >= entries.head) entries.times.splice(at, 1);
      if (entries && countEntries(entries) === 0) byKey.delete(key);
    },
    sweep(now) {
      for (const [key, { times, windowMs }] of byKey) {
        const newest = times.at(-1);
        if (newest === undefined || newest <= now - windowMs) byKey.delete(key);
      }
    },
  };
}

const createEntries = (windowMs: number): Entries => ({ times: [], head: 0, windowMs });

const countEntries = ({ times, head }: Entries): number => times.length - head;

/** Drops what is at `until` or older. */
function dropUntil(entries: Entries, until: number): void {
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

function createVerdict(
  isAdmitted: boolean,
  { scope, max, windowMs }: LimitWindow,
  entries: Entries,
  now: number,
): Verdict {
  const resetAt = (entries.times[entries.head] ?? now) + windowMs;
  const remaining = isAdmitted ? max - countEntries(entries) : 0;
  return { isAdmitted, scope, limit: max, remaining, resetAt, resetInMs: resetAt - now };
}
