import type { Clock } from '../../src/core/clock.ts';

export interface ManualClock extends Clock {
  /** Moves the time on and runs what became due on the way, in order. */
  advance(ms: number): void;
}

/** A clock that stands still until it is moved. */
export function manualClock(start = Date.now()): ManualClock {
  let now = start;
  let tasks: { readonly dueAt: number; readonly task: () => void }[] = [];

  return {
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
  };
}
