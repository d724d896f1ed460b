import { setImmediate as nextTurn } from 'node:timers/promises';

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

// Long work of one caller gives way to everybody else's: it is done in turns of the event loop.

export interface Turns {
  /** Whether it is time to await `next`: asked after each small piece of the work. */
  isOver(): boolean;
  /** Resolves once others had their turn. */
  next(): Promise<void>;
}

/** Milliseconds: so long somebody else waits for one who has much to do. */
const TURN_MS = 5;

export function createTurns(clock: Clock): Turns {
  let endsAt = clock.monotonic() + TURN_MS;

  return {
    isOver: () => clock.monotonic() >= endsAt,
    async next() {
      await nextTurn();
      endsAt = clock.monotonic() + TURN_MS;
    },
  };
}

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
