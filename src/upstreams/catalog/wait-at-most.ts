import type { Clock } from '../../platform/clock.ts';

/** Resolves when the work has ended, in whichever way, or after `ms` milliseconds. How it fails is left to others. */
export function waitAtMost(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = ms > 0 ? clock.after(ms, resolve) : resolve;
    const end = () => {
      cancel();
      resolve();
    };
    work.then(end, end);
    if (ms <= 0) resolve();
  });
}

/** How long a first answer may be waited for, of all who wait for it together. */
export interface WaitingTime {
  /** Milliseconds that are left; the time begins with the first call. */
  left(): number;
  /** There is a reason to wait again. */
  restart(): void;
}

export function createWaitingTime(clock: Clock, ms: number): WaitingTime {
  let endsAt: number | undefined;
  return {
    left() {
      endsAt ??= clock.monotonic() + ms;
      return Math.max(0, endsAt - clock.monotonic());
    },
    restart() {
      endsAt = undefined;
    },
  };
}
