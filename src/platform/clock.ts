/** The one place that asks the machine for the time. Everything else takes `now` or a Clock. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Milliseconds (fractional) from an arbitrary start; never jumps. For durations. */
  monotonic(): number;
  /** Runs `task` once after `delay` milliseconds; returns a function that cancels it. */
  after(delay: number, task: () => void): () => void;
}

/** Resolves after `ms` milliseconds. */
export const pause = (clock: Clock, ms: number): Promise<void> =>
  new Promise((resolve) => void clock.after(ms, resolve));

export const systemClock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  after(delay, task) {
    // Unreferenced: a pending refresh or sweep must never keep a drained process alive.
    const timer = setTimeout(task, delay).unref();
    return () => clearTimeout(timer);
  },
};

const SECOND_MS = 1000;

/** Returns a function after whose call the task runs once a second, for as long as it is needed. */
export function createSecondTimer(
  clock: Clock,
  { isNeeded, task }: { readonly isNeeded: () => boolean; readonly task: () => void },
): () => void {
  let isRunning = false;

  return function start() {
    if (isRunning || !isNeeded()) return;
    isRunning = true;
    clock.after(SECOND_MS, () => {
      isRunning = false;
      task();
      start();
    });
  };
}
