import { AsyncResource } from 'node:async_hooks';
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

export type Turns = ReturnType<typeof createTurns>;

/** Milliseconds: so long somebody else waits for one who has much to do. */
const TURN_MS = 5;

export function createTurns(clock: Clock) {
  let endsAt = clock.monotonic() + TURN_MS;

  return {
    /** True if it is time to await `next`: asked after each small piece of the work. */
    isOver: () => clock.monotonic() >= endsAt,
    /** Resolves once others had their turn. */
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

/** The pauses before what has failed is tried again. */
interface BackOff {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** Milliseconds after so many failures in a row, from 1 on: twice as long after each. */
export const computePauseMs = ({ firstMs, longestMs }: BackOff, failures: number): number =>
  Math.min(longestMs, firstMs * 2 ** (failures - 1));

/** Attempts that are made again after a pause, `pauseAfter` so many failures in a row. At most one of them waits. */
export function createAttempts(
  clock: Pick<Clock, 'after'>,
  pauseAfter: (failures: number) => number,
) {
  let failures = 0;
  let cancel = () => {};

  function after(ms: number, attempt: () => void) {
    cancel();
    cancel = clock.after(ms, attempt);
  }

  return {
    countFailures: () => failures,
    /** The last one has failed: the next one is made after a pause of at least `leastMs`, whose milliseconds are returned. */
    again(attempt: () => void, leastMs = 0): number {
      failures += 1;
      const pauseMs = Math.max(leastMs, pauseAfter(failures));
      after(pauseMs, attempt);
      return pauseMs;
    },
    /** The next one is made after so many milliseconds. */
    after,
    noteSuccess() {
      failures = 0;
    },
    /** The one that waits is not made. */
    stop: () => cancel(),
  };
}

// A value that holds for a time only must not hold for longer on a computer that sleeps, or is stopped: some count monotonic time
// on then, and some do not.

/** A moment by both clocks. */
export interface Moment {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly monotonic: number;
}

export const takeMoment = (clock: Clock): Moment => ({
  now: clock.now(),
  monotonic: clock.monotonic(),
});

/** Milliseconds from then until now, by the clock by which they are more. */
export const measureSince = ({ now, monotonic }: Moment, clock: Clock): number =>
  Math.max(clock.now() - now, clock.monotonic() - monotonic);

/**
 * Returns a function that runs tasks at the end of this turn of the event loop, one after the other. What writes to sockets
 * belongs there: between the work on two requests a write costs several times as much, since it wakes up whoever reads,
 * and finds the processor's caches full of other code.
 */
export function createTurnEnd(): (task: () => void) => void {
  let waiting: (() => void)[] = [];

  function runAll() {
    const tasks = waiting;
    waiting = [];
    for (const task of tasks) task();
  }

  return function runAtTurnEnd(task) {
    if (waiting.push(task) === 1) setImmediate(runAll);
  };
}

// One timer for many that wait equally long: an open stream has two such waits, and for each a timer of
// Node.js with its closures would take five times the memory.

/** One that waits. For `SharedTimer` alone, but for giving it back to that. */
export interface Wait<Item> {
  readonly item: Item;
  /** On the clock's monotonic time. */
  readonly dueAt: number;
  earlier: Wait<Item> | undefined;
  later: Wait<Item> | undefined;
  isOver: boolean;
}

/** All wait for `ms`: so they are due in the order in which they came. */
export class SharedTimer<Item> {
  private readonly clock: Clock;
  private readonly ms: number;
  private readonly onPassed: (item: Item) => void;
  private first: Wait<Item> | undefined;
  private last: Wait<Item> | undefined;
  private cancel: (() => void) | undefined;
  /** Node.js takes what is done in a timer for a part of the request that set it: here that would be another one's trace. */
  private readonly origin = new AsyncResource('SharedTimer');
  /** Set while those that are due are called, and may wait again: the timer is set for the first one after that. */
  private isEndingDue = false;

  constructor(clock: Clock, ms: number, onPassed: (item: Item) => void) {
    this.clock = clock;
    this.ms = ms;
    this.onPassed = onPassed;
  }

  /** Calls `onPassed` with the item in `ms`, unless it is removed before. */
  add(item: Item): Wait<Item> {
    const { last } = this;
    const dueAt = this.clock.monotonic() + this.ms;
    const wait: Wait<Item> = { item, dueAt, earlier: last, later: undefined, isOver: false };
    if (last === undefined) this.first = wait;
    else last.later = wait;
    this.last = wait;
    if (this.cancel === undefined) this.setTimer();
    return wait;
  }

  /** A second time is no matter. */
  remove(wait: Wait<Item>): void {
    if (wait.isOver) return;
    wait.isOver = true;
    const { earlier, later } = wait;
    if (earlier === undefined) this.first = later;
    else earlier.later = later;
    if (later === undefined) this.last = earlier;
    else later.earlier = earlier;
    // Whoever still holds it keeps none of its neighbours.
    wait.earlier = wait.later = undefined;
    if (this.first !== undefined) return;
    this.cancel?.();
    this.cancel = undefined;
  }

  private setTimer(): void {
    if (this.isEndingDue || this.first === undefined) return;
    const delay = this.first.dueAt - this.clock.monotonic();
    this.cancel = this.origin.runInAsyncScope(() => this.clock.after(delay, () => this.pass()));
  }

  private pass(): void {
    this.cancel = undefined;
    this.isEndingDue = true;
    try {
      this.endDue();
    } finally {
      this.isEndingDue = false;
      this.setTimer();
    }
  }

  private endDue(): void {
    const now = this.clock.monotonic();
    while (this.first !== undefined && this.first.dueAt <= now) {
      const { item } = this.first;
      this.remove(this.first);
      this.onPassed(item);
    }
  }
}
