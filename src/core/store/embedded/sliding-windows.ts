// §8: sliding windows in memory, exact; a restart forgets them.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../clock.ts';
import type { LimitWindow, Verdict } from '../store.ts';
import {
  addTime,
  createRequestTimes,
  dropTimesUntil,
  getOldestTime,
  isOver,
  type RequestTimes,
  removeTime,
} from './request-times.ts';

export interface SlidingWindows {
  /** Names what is counted now, for `uncountRequest`. */
  getTime(): number;
  /**
   * Checks all windows in order, then counts a request of that time in all; a refused request is
   * counted in none.
   */
  countRequest(windows: readonly LimitWindow[], time: number): Verdict | undefined;
  /** Takes one request of that time back. */
  uncountRequest(key: string, time: number): void;
  /** Forgets keys whose requests have all left their window. */
  sweep(): Promise<void>;
}

/** A fraction of a millisecond: requests come in between. */
const SWEEP_BATCH = 1000;

export function createSlidingWindows(clock: Clock): SlidingWindows {
  const byKey = new Map<string, RequestTimes>();

  /** Of a clock that never jumps, else a step back would leave windows full until it is made up. */
  const getTime = () => Math.floor(clock.monotonic());

  function createVerdict(isAdmitted: boolean, window: LimitWindow, time: number): Verdict {
    const { key, scope, max, windowMs } = window;
    const times = byKey.get(key);
    const resetInMs = ((times && getOldestTime(times)) ?? time) + windowMs - time;
    const remaining = isAdmitted ? max - (times?.count ?? 0) : 0;
    const resetAt = clock.now() + resetInMs;
    return { isAdmitted, scope, limit: max, remaining, resetAt, resetInMs };
  }

  return {
    getTime,
    countRequest(windows, time) {
      for (const window of windows) {
        const times = byKey.get(window.key);
        if (times) dropTimesUntil(times, time - window.windowMs);
        if ((times?.count ?? 0) >= window.max) return createVerdict(false, window, time);
      }
      for (const { key, windowMs } of windows) {
        const times = byKey.get(key);
        // A key is kept only once it counts something: addresses that are refused leave no trace.
        if (times === undefined) byKey.set(key, createRequestTimes(windowMs, time));
        else addTime(times, time);
      }
      const first = windows[0];
      return first && createVerdict(true, first, time);
    },
    uncountRequest(key, time) {
      const times = byKey.get(key);
      if (times && removeTime(times, time) && times.count === 0) byKey.delete(key);
    },
    async sweep() {
      const time = getTime();
      let left = SWEEP_BATCH;
      for (const [key, times] of byKey) {
        if (isOver(times, time)) byKey.delete(key);
        left -= 1;
        if (left > 0) continue;
        left = SWEEP_BATCH;
        await nextTurn();
      }
    },
  };
}
