import type { ReplyStream, WaitingWatcher } from '../../endpoint/message.ts';

/** Server-sent events in their order, from who sends them to one reader. */
export interface EventQueue {
  push(event: string): void;
  /** Nothing more comes; what waits is still read. */
  end(): void;
  /** Whether more waits for its reader than a slow one may keep in memory. */
  isFull(): boolean;
  /** Whether half of that would stay free with so many characters more. */
  hasRoomToSpare(characters: number): boolean;
  /** For one reader. When it leaves early, what waits and what comes is dropped. */
  readonly items: ReplyStream;
}

const MAX_WAITING_CHARACTERS = 262_144;

/** `onLeave` is called when the reader leaves before the end. */
export const createEventQueue = (onLeave: () => void = () => {}): EventQueue =>
  new WaitingEvents(onLeave);

type NextEvent = IteratorResult<string, undefined>;

/** A class: thousands of them stand for minutes, and closures would take four times the memory. */
class WaitingEvents implements EventQueue, ReplyStream, AsyncIterator<string, undefined> {
  private readonly onLeave: () => void;
  /** Undefined where nothing waits: an array that has lost its members would keep their room. */
  private waiting: string[] | undefined;
  private waitingCharacters = 0;
  private hasEnded = false;
  private watcher: WaitingWatcher | undefined;
  /** Of the reader's `next`, while there is nothing to read. */
  private resolveNext: ((result: NextEvent) => void) | undefined;

  constructor(onLeave: () => void) {
    this.onLeave = onLeave;
  }

  get items(): ReplyStream {
    return this;
  }

  push(event: string): void {
    if (this.hasEnded) return;
    if (this.resolveNext !== undefined) {
      this.passToReader({ done: false, value: event });
      return;
    }
    if (this.waiting === undefined) this.waiting = [event];
    else this.waiting.push(event);
    this.countWaiting(event.length);
  }

  end(): void {
    this.hasEnded = true;
    if (this.resolveNext !== undefined) this.passToReader({ done: true, value: undefined });
  }

  isFull(): boolean {
    return this.waitingCharacters >= MAX_WAITING_CHARACTERS;
  }

  hasRoomToSpare(characters: number): boolean {
    return this.waitingCharacters + characters <= MAX_WAITING_CHARACTERS / 2;
  }

  watchWaiting(watcher: WaitingWatcher): void {
    this.watcher = watcher;
    watcher.noteWaiting(this.waitingCharacters);
  }

  [Symbol.asyncIterator](): AsyncIterator<string, undefined> {
    return this;
  }

  next(): Promise<NextEvent> {
    const event = this.waiting?.shift();
    if (event !== undefined) {
      if (this.waiting?.length === 0) this.waiting = undefined;
      this.countWaiting(-event.length);
      return Promise.resolve({ done: false, value: event });
    }
    if (this.hasEnded) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => {
      this.resolveNext = resolve;
    });
  }

  async return(): Promise<NextEvent> {
    const isEarly = !this.hasEnded;
    this.hasEnded = true;
    this.waiting = undefined;
    this.countWaiting(-this.waitingCharacters);
    this.passToReader({ done: true, value: undefined });
    if (isEarly) this.onLeave();
    return { done: true, value: undefined };
  }

  private countWaiting(change: number): void {
    this.waitingCharacters += change;
    this.watcher?.noteWaiting(this.waitingCharacters);
  }

  private passToReader(result: NextEvent): void {
    const resolve = this.resolveNext;
    this.resolveNext = undefined;
    resolve?.(result);
  }
}
