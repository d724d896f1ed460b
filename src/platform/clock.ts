import { AsyncResource } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Link, LinkedList } from './bounded-map.ts';

/** The only place that asks the machine for the time. Everything else takes `now` or a Clock. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Fractional milliseconds since an arbitrary start, for measuring durations; never jumps. */
  monotonic(): number;
  /** Runs `task` once after `delay` milliseconds; returns a function that cancels it. */
  after(delay: number, task: () => void): () => void;
}

/** Resolves after `ms` milliseconds. */
export const pause = (clock: Clock, ms: number): Promise<void> =>
  new Promise((resolve) => void clock.after(ms, resolve));

export const systemClock: Clock = {
  now: Date.now,
  monotonic: performance.now.bind(performance),
  after(delay, task) {
    // Unreferenced, since a pending refresh or sweep must never keep a drained process alive.
    const timer = setTimeout(task, delay).unref();
    return () => clearTimeout(timer);
  },
};

const SECOND_MS = 1000;

/** Returns a function that starts running the task once a second, for as long as `isNeeded` returns true. */
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

// Yields during long work, which is spread over several turns of the event loop.

export type Turns = ReturnType<typeof createTurns>;

/** Maximum milliseconds for which long work may block other requests. */
const TURN_MS = 5;

export function createTurns(clock: Clock) {
  let endsAt = clock.monotonic() + TURN_MS;

  return {
    /** True if it is time to await `next`. Must be checked after each small piece of work. */
    isOver: () => clock.monotonic() >= endsAt,
    /** Resolves once other work has had its turn. */
    async next() {
      await nextTurn();
      endsAt = clock.monotonic() + TURN_MS;
    },
  };
}

/** A timeout that can be renewed and paused: calls `onPassed` once, after `ms` of unpaused time since the last renewal. */
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

  /** Restarts the full timeout. Only moves `at`, so that a flood of progress notifications creates no timers. */
  renew(): void {
    this.at = this.clock.monotonic() + this.ms;
    this.leftAtPause = this.ms;
  }

  /** Pauses the timeout until the returned function is called. Pauses may overlap. */
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

  /**
   * Node.js runs timers before it reads sockets: after long work, a response that arrived in time may still be unread. So this
   * checks once more after the sockets have been read.
   */
  private lookOnce(): void {
    const looked = setImmediate(() => {
      if (!this.waitForRest()) this.onPassed();
    });
    this.cancel = () => clearImmediate(looked);
  }
}

/** Backoff before a failed attempt is repeated, in milliseconds. */
interface BackOff {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** Milliseconds of backoff after `failures` consecutive failures (from 1): doubles each time. */
export const computePauseMs = ({ firstMs, longestMs }: BackOff, failures: number): number =>
  Math.min(longestMs, firstMs * 2 ** (failures - 1));

/** Retries with backoff: `pauseAfter` maps consecutive failures to milliseconds. At most one attempt is pending. */
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
    /** Counts a failure and schedules the next attempt in at least `leastMs`; returns the milliseconds until then. */
    again(attempt: () => void, leastMs = 0): number {
      failures += 1;
      const pauseMs = Math.max(leastMs, pauseAfter(failures));
      after(pauseMs, attempt);
      return pauseMs;
    },
    /** Schedules the next attempt in `ms` milliseconds. */
    after,
    noteSuccess() {
      failures = 0;
    },
    /** Cancels the pending attempt. */
    stop: () => cancel(),
  };
}

// Measures elapsed time on both clocks. A value that expires must not live longer on a computer that sleeps or is suspended, and
// monotonic time continues there only on some systems.

/** A moment on both clocks. */
export interface Moment {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly monotonic: number;
}

export const takeMoment = (clock: Clock): Moment => ({
  now: clock.now(),
  monotonic: clock.monotonic(),
});

/** Milliseconds since the moment, by whichever clock shows more. */
export const measureSince = ({ now, monotonic }: Moment, clock: Clock): number =>
  Math.max(clock.now() - now, clock.monotonic() - monotonic);

/**
 * Returns a function that calls `run` with each item at the end of the current turn of the event loop, in order. Socket writes
 * belong there: a write between two requests costs several times as much, since it wakes up the reader and finds the processor's
 * caches full of other code.
 */
export function createTurnEnd<Item>(run: (item: Item) => void): (item: Item) => void {
  let waiting: Item[] = [];

  function runAll() {
    const items = waiting;
    waiting = [];
    for (const item of items) run(item);
  }

  return function runAtTurnEnd(item) {
    if (waiting.push(item) === 1) setImmediate(runAll);
  };
}

// One timer for many items with the same delay: an open stream has two such delays, and a Node.js timer with its closures for each
// of them would take five times the memory.

/** A pending item, and when it is due on the clock's monotonic time. */
export type Wait<Item> = Link<{ readonly item: Item; readonly dueAt: number }>;

/** All items wait for `ms`, so they become due in the order in which they were added. */
export class SharedTimer<Item> {
  private readonly clock: Clock;
  private readonly ms: number;
  private readonly onPassed: (item: Item) => void;
  private readonly waits = new LinkedList<Wait<Item>['value']>();
  private cancel: (() => void) | undefined = undefined;
  /** Node.js attributes a timer's work to the request that set the timer, here possibly to another request's trace. */
  private readonly origin = new AsyncResource('SharedTimer');
  /** True while due items are called. These may add items again, and the timer is set afterwards. */
  private isEndingDue = false;

  constructor(clock: Clock, ms: number, onPassed: (item: Item) => void) {
    this.clock = clock;
    this.ms = ms;
    this.onPassed = onPassed;
  }

  /** Calls `onPassed` with the item after `ms`, unless the item is removed first. */
  add(item: Item): Wait<Item> {
    const wait = this.waits.add({ item, dueAt: this.clock.monotonic() + this.ms });
    if (this.cancel === undefined) this.setTimer();
    return wait;
  }

  /** Removes the item. Idempotent. */
  remove(wait: Wait<Item>): void {
    this.waits.remove(wait);
    if (this.waits.size > 0) return;
    this.cancel?.();
    this.cancel = undefined;
  }

  private setTimer(): void {
    const { first } = this.waits;
    if (this.isEndingDue || first === undefined) return;
    const delay = first.value.dueAt - this.clock.monotonic();
    this.cancel = this.origin.runInAsyncScope(() => this.clock.after(delay, () => this.pass()));
  }

  private pass(): void {
    this.cancel = undefined;
    this.isEndingDue = true;
    const now = this.clock.monotonic();
    try {
      for (
        let { first } = this.waits;
        first && first.value.dueAt <= now;
        first = this.waits.first
      ) {
        this.waits.remove(first);
        this.onPassed(first.value.item);
      }
    } finally {
      this.isEndingDue = false;
      this.setTimer();
    }
  }
}
