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

/** A time that can be put off, and stand still: calls `onPassed` once, after `ms` that were neither put off nor paused. */
export class Deadline {
  private readonly clock: Clock;
  private readonly ms: number;
  private readonly onPassed: () => void;
  private at: number;
  private pauses = 0;
  private leftAtPause = 0;
  private cancel: () => void;

  constructor(clock: Clock, ms: number, onPassed: () => void) {
    this.clock = clock;
    this.ms = ms;
    this.onPassed = onPassed;
    this.at = clock.monotonic() + ms;
    this.cancel = this.checkAfter(ms);
  }

  /** The whole time begins again. Moves `at` only: a flood of progress costs no timers. */
  renew(): void {
    this.at = this.clock.monotonic() + this.ms;
  }

  /** The time stands still until the result is called; it may be paused several times at once. */
  pause(): () => void {
    this.pauses += 1;
    if (this.pauses === 1) {
      this.cancel();
      this.leftAtPause = this.at - this.clock.monotonic();
    }
    return () => {
      this.pauses -= 1;
      if (this.pauses > 0) return;
      this.at = this.clock.monotonic() + this.leftAtPause;
      this.cancel = this.checkAfter(this.leftAtPause);
    };
  }

  clear(): void {
    this.pauses += 1;
    this.cancel();
  }

  private checkAfter(ms: number): () => void {
    return this.clock.after(ms, () => {
      if (!this.waitForRest()) this.lookOnce();
    });
  }

  private waitForRest(): boolean {
    const left = this.at - this.clock.monotonic();
    if (left > 0) this.cancel = this.checkAfter(left);
    return left > 0;
  }

  /** Node.js runs timers before it reads: after work that took long, an answer that came in time is still to be read. */
  private lookOnce(): void {
    const looked = setImmediate(() => {
      if (!this.waitForRest()) this.onPassed();
    });
    this.cancel = () => clearImmediate(looked);
  }
}
