// The system's clock, whose timers wait while a call is counted: nothing that runs by itself is part of a call.
import { type Clock, systemClock } from '../../src/platform/clock.ts';

export interface HeldClock extends Clock {
  /** Timers that become due while `run` runs fire after it. */
  holdTimers<Result>(run: () => Promise<Result>): Promise<Result>;
}

export function createHeldClock(): HeldClock {
  let held: Set<() => void> | undefined;

  return {
    ...systemClock,
    after(delay, task) {
      const runOrWait = () => {
        if (held === undefined) task();
        else held.add(runOrWait);
      };
      const cancel = systemClock.after(delay, runOrWait);
      return () => {
        held?.delete(runOrWait);
        cancel();
      };
    },
    async holdTimers(run) {
      const due = new Set<() => void>();
      held = due;
      try {
        return await run();
      } finally {
        held = undefined;
        for (const task of due) task();
      }
    },
  };
}
