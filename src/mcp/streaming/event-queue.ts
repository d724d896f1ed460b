// Event queue: server-sent events on their way to one reader, with a limit on what waits.

import type { ReplyStream, WaitingWatcher } from '../../http/endpoint/message.ts';
import { toSseEvent } from '../../platform/text.ts';

/** Sends the events of one response, or of one stream of notifications. */
export interface EventChannel {
  /** Can be read once. */
  readonly items: ReplyStream;
  /** Sends the first bytes, if there are any to send. */
  begin(): void;
  /** Drops notifications while the client reads too slowly. */
  send(json: string, isNotification: boolean): void;
  /** Sends the last event and ends. */
  end(json: string): void;
  /** Ends without a last event. */
  close(): void;
  /** True if the queued events exceed the memory granted to a slow reader. */
  isFull(): boolean;
  /** True if half of that stays free after this many more characters. */
  hasRoomToSpare(characters: number): boolean;
  /** Closes the connection: clients that can, resume the stream. */
  disconnect(): void;
}

const MAX_WAITING_CHARACTERS = 262_144;

type NextEvent = IteratorResult<string, undefined>;

/**
 * Delivers server-sent events in order to one reader. When the reader leaves early, queued and later events are dropped. A class:
 * thousands stay open for minutes, and closures would take four times the memory.
 */
export class EventQueue implements ReplyStream, AsyncIterator<string, undefined> {
  protected readonly onLeave: () => void;
  /** Undefined while empty: an emptied array keeps its capacity. */
  private waiting: string[] | undefined = undefined;
  private waitingCharacters = 0;
  private hasEnded = false;
  private watcher: WaitingWatcher | undefined = undefined;
  /** Set while the reader waits in `next`. */
  private resolveNext: ((result: NextEvent) => void) | undefined = undefined;

  /** Calls `onLeave` when the reader leaves before the end. */
  constructor(onLeave: () => void = () => {}) {
    this.onLeave = onLeave;
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

  /** Accepts no further events; queued events are still read. */
  end(): void {
    this.hasEnded = true;
    if (this.resolveNext !== undefined) this.passToReader({ done: true, value: undefined });
  }

  /** True if the queued events exceed the memory granted to a slow reader. */
  isFull(): boolean {
    return this.waitingCharacters >= MAX_WAITING_CHARACTERS;
  }

  /** True if half of that stays free after this many more characters. */
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

  private countWaiting(change: number) {
    this.waitingCharacters += change;
    this.watcher?.noteWaiting(this.waitingCharacters);
  }

  private passToReader(result: NextEvent) {
    const resolve = this.resolveNext;
    this.resolveNext = undefined;
    resolve?.(result);
  }
}

/** The channel of a stream that cannot be resumed; calls `onLeave` when the connection ends first. */
export class PlainChannel extends EventQueue implements EventChannel {
  get items(): ReplyStream {
    return this;
  }

  begin(): void {}

  send(json: string, isNotification: boolean): void {
    if (!isNotification || !this.isFull()) this.push(toSseEvent(json));
  }

  override end(json?: string): void {
    if (json !== undefined) this.push(toSseEvent(json));
    super.end();
  }

  close(): void {
    super.end();
  }

  disconnect(): void {
    this.onLeave();
  }
}
