import type { Clock } from '../../../src/platform/clock.ts';

export interface ManualClock extends Clock {
  /** Moves the time on and runs what became due on the way, in order. */
  advance(ms: number): void;
  /** As for a computer that slept: what became due meanwhile runs once. For days, of which each minute would have its tasks. */
  sleep(ms: number): void;
}

/** A clock that stands still until it is moved. */
export function manualClock(start = Date.now()): ManualClock {
  let now = start;
  let tasks: { readonly dueAt: number; readonly task: () => void }[] = [];

  const clock: ManualClock = {
    now: () => now,
    monotonic: () => now - start,
    after(delay, task) {
      const entry = { dueAt: now + delay, task };
      tasks.push(entry);
      return () => {
        tasks = tasks.filter((other) => other !== entry);
      };
    },
    advance(ms) {
      const end = now + ms;
      for (;;) {
        const next = tasks.filter(({ dueAt }) => dueAt <= end).sort((a, b) => a.dueAt - b.dueAt)[0];
        if (next === undefined) break;
        tasks = tasks.filter((other) => other !== next);
        now = Math.max(now, next.dueAt);
        next.task();
      }
      now = end;
    },
    sleep(ms) {
      now += ms;
      clock.advance(0);
    },
  };
  return clock;
}

/** Short of what the service takes for a caller that reads nothing. */
const STEP_MS = 10_000;

/** Moves the time on by minutes; in between what is on its way over loopback is read. */
export async function advanceSlowly(clock: ManualClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= STEP_MS) {
    clock.advance(Math.min(left, STEP_MS));
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  }
}

/** For `expect.poll`: what is so once time has passed in which somebody could have come back (§15.1). */
export const readAsTimePasses =
  <Value>(clock: ManualClock, read: () => Value): (() => Value) =>
  () => {
    clock.advance(STEP_MS);
    return read();
  };
