// What many wait for equally long, by one timer for all of them: an open stream has two such waits, and for each a timer of
// Node.js with its closures would take five times the memory.
import { AsyncResource } from 'node:async_hooks';
import type { Clock } from './clock.ts';

/** One that waits. For `SharedTimer` alone, but for giving it back to that. */
export interface Wait<Item> {
  readonly item: Item;
  /** By the clock's monotonic time. */
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
  /** Who is due is called now, and may wait again: the timer is set for the first one after that. */
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
