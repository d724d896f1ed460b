import type { Clock } from '../../platform/clock.ts';

/** A time that can be put off, and stand still. */
export interface Deadline {
  /** The whole time begins again. */
  renew(): void;
  /** The time stands still until the result is called; it may be paused several times at once. */
  pause(): () => void;
  clear(): void;
}

/** Calls `onPassed` once, after `ms` that were neither put off nor paused. */
export function createDeadline(clock: Clock, ms: number, onPassed: () => void): Deadline {
  let at = clock.monotonic() + ms;
  let pauses = 0;
  let leftAtPause = 0;
  let cancel = clock.after(ms, check);

  /** Renewing moves `at` only: a flood of progress costs no timers. */
  function check(): void {
    if (!waitForRest()) lookOnce();
  }

  function waitForRest(): boolean {
    const left = at - clock.monotonic();
    if (left > 0) cancel = clock.after(left, check);
    return left > 0;
  }

  /** Node.js runs timers before it reads: after work that took long, an answer that came in time is still to be read. */
  function lookOnce(): void {
    const looked = setImmediate(() => {
      if (!waitForRest()) onPassed();
    });
    cancel = () => clearImmediate(looked);
  }

  return {
    renew() {
      at = clock.monotonic() + ms;
    },
    pause() {
      pauses += 1;
      if (pauses === 1) {
        cancel();
        leftAtPause = at - clock.monotonic();
      }
      return () => {
        pauses -= 1;
        if (pauses > 0) return;
        at = clock.monotonic() + leftAtPause;
        cancel = clock.after(leftAtPause, check);
      };
    },
    clear() {
      pauses += 1;
      cancel();
    },
  };
}
