// §18.4: limits messages from servers: per second for each stream, for each user's streams and for each server's, and per turn of
// the event loop for all. Neither a server, nor a caller who makes servers send messages, can take the gateway's time from
// others: messages beyond the limit wait at the server (back-pressure).
import type { Clock } from '../../platform/clock.ts';

/** Source of a stream, used to look up its windows. */
export interface PacedSource {
  readonly server: string;
  /** The owner of the stream (`nameOwner`); undefined for the gateway's own streams, and for those that users share. */
  readonly user: string | undefined;
  /** True if many callers share the stream: it may be as fast as its server, and is never closed for being too fast. */
  readonly isShared: boolean;
}

const SECOND_MS = 1000;
const STREAM_MESSAGES = 1000;
const USER_MESSAGES = 2000;
const SERVER_MESSAGES = 4000;
/** Takes a few milliseconds. */
const TURN_MESSAGES = 100;
/** The first messages of a stream never wait: most answers consist of no more, and other streams must not delay them. */
const FREE_MESSAGES = 16;
/** A longer message counts as several. */
const BYTES_A_MESSAGE = 8192;
/** The same for an expected answer, which costs less because it is passed on as received. */
const BYTES_AN_ANSWER = 32_768;
/** A stream that has exceeded the limit for this long, and sent this many messages meanwhile, is closed. */
const MAX_BEHIND_MS = 60_000;
const MIN_BEHIND_MESSAGES = 1000;

/** Messages that may be accepted per clock second; an excess counts against the following seconds. */
interface Window {
  second: number;
  used: number;
  readonly limit: number;
}

/** Shared by the streams of a process. */
export class MessagePace {
  readonly clock: Clock;
  leftInTurn = TURN_MESSAGES;
  private readonly windows = new Map<string, Window>();
  /** The stream that has been waiting the longest comes first. */
  readonly waiting = new Set<PacedStream<unknown>>();
  private isTurnTimed = false;
  private isSecondTimed = false;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  createWindow(limit: number): Window {
    return { second: this.readSecond(), used: 0, limit };
  }

  findWindow(key: string, limit: number): Window {
    const known = this.windows.get(key);
    if (known !== undefined) return known;
    const window = this.createWindow(limit);
    this.windows.set(key, window);
    this.timeSecond();
    return window;
  }

  hasRoomIn(window: Window): boolean {
    this.refill(window);
    return window.used < window.limit;
  }

  addWaiting(stream: PacedStream<unknown>): void {
    this.waiting.add(stream);
    if (this.leftInTurn <= 0) this.timeTurn();
    this.timeSecond();
  }

  private readSecond(): number {
    return Math.floor(this.clock.monotonic() / SECOND_MS);
  }

  private refill(window: Window): void {
    const now = this.readSecond();
    window.used = Math.max(0, window.used - window.limit * (now - window.second));
    window.second = now;
  }

  timeTurn(): void {
    if (this.isTurnTimed) return;
    this.isTurnTimed = true;
    setImmediate(() => {
      this.isTurnTimed = false;
      this.leftInTurn = TURN_MESSAGES;
      this.resume();
    });
  }

  private timeSecond(): void {
    if (this.isSecondTimed) return;
    this.isSecondTimed = true;
    this.clock.after(SECOND_MS - (this.clock.monotonic() % SECOND_MS), () => {
      this.isSecondTimed = false;
      for (const [key, window] of this.windows) {
        this.refill(window);
        if (window.used === 0) this.windows.delete(key);
      }
      for (const stream of [...this.waiting]) if (!stream.keepsPace()) this.waiting.delete(stream);
      this.resume();
      if (this.windows.size > 0) this.timeSecond();
    });
  }

  private resume(): void {
    for (const stream of [...this.waiting]) {
      if (this.leftInTurn <= 0) break;
      if (!stream.hasRoomInSecond()) continue;
      this.waiting.delete(stream);
      stream.goOn();
    }
    if (this.waiting.size === 0) return;
    if (this.leftInTurn <= 0) this.timeTurn();
    this.timeSecond();
  }
}

/**
 * Bytes still accepted from a stream that exceeds its limit. When a connection is paused, up to 64 KiB that it had already read
 * are passed on: with a lower limit it would be paused again at once.
 */
const MAX_BEYOND_PACE = 131_072;

/** A stream's waiting messages, and how long the stream has been too fast. Few streams have a backlog. */
class Backlog<Message> {
  messages: { readonly message: Message; readonly bytes: number }[] = [];
  /** Index of the first message that has not been passed on. */
  next = 0;
  isWaiting = false;
  hasEnded = false;
  isPaused = false;
  beyondPace = 0;
  /** Since when the stream has had to wait in every second, and the number of messages that it had sent by then. */
  behindSince = 0;
  behindFrom = 0;
  lastBehindAt = Number.NEGATIVE_INFINITY;

  isEmpty(): boolean {
    return this.next >= this.messages.length;
  }
}

/**
 * Messages of one stream, passed on in order at its pace: the answer to a call, a stream of notifications, the output of a
 * process. Messages that must wait are kept, and the source is paused once there are many. Most streams are one answer, which
 * checks no window and has no backlog.
 */
export abstract class PacedStream<Message> {
  private readonly pace: MessagePace;
  private messages = 0;
  private own: Window | undefined = undefined;
  private backlog: Backlog<Message> | undefined = undefined;
  /** True if nothing more is passed on. */
  protected isOver = false;
  /** The total size of waiting messages in bytes. */
  waitingBytes = 0;

  constructor(pace: MessagePace) {
    this.pace = pace;
  }

  protected abstract findSource(): PacedSource;
  /** Accepts a message. Returns how many messages it counts as: none for an expected answer. */
  protected abstract take(message: Message): number;
  /** Copies a message that has to wait, if it would keep more than its own bytes in memory. */
  protected copy(message: Message): Message {
    return message;
  }

  protected abstract pauseSource(): void;
  /** Called when nothing is waiting any more; the source may not have been paused. */
  protected abstract resumeSource(): void;
  /** Called when the stream has been too fast for too long. */
  protected abstract giveUp(): void;
  /** Called after `endMessages`, once all have been passed on. */
  protected abstract finish(): void;

  push(message: Message, bytes: number): void {
    if (this.isOver) return;
    if (this.backlog?.isWaiting !== true && this.hasRoom()) {
      this.count(this.take(message), bytes);
      return;
    }
    this.backlog ??= new Backlog();
    this.backlog.messages.push({ message: this.copy(message), bytes });
    this.waitingBytes += bytes;
    if (!this.backlog.isWaiting) this.wait(this.backlog);
  }

  /** Called when bytes have arrived, whether or not they belong to messages. Pauses the source if too many exceeded the limit. */
  checkPace(bytes: number): void {
    if (this.isOver) return;
    if (this.backlog?.isWaiting !== true) {
      if (this.hasRoom()) return;
      this.backlog ??= new Backlog();
      this.wait(this.backlog);
    }
    const { backlog } = this;
    if (backlog === undefined) return;
    backlog.beyondPace += bytes;
    if (this.isOver || backlog.isPaused || backlog.beyondPace < MAX_BEYOND_PACE) return;
    backlog.isPaused = true;
    this.pauseSource();
  }

  /**
   * Counts accepted messages with this total size in bytes. A count of 0 stands for an answer that a caller is waiting for. The
   * number of calls limits such answers, so one only uses its share of a turn.
   */
  count(count: number, bytes: number): void {
    const size = Math.floor(bytes / (count === 0 ? BYTES_AN_ANSWER : BYTES_A_MESSAGE)) + count;
    if (size === 0) return;
    this.pace.leftInTurn -= size;
    this.pace.timeTurn();
    if (count === 0) return;
    this.messages += count;
    // Messages beyond a window, such as the first ones of a stream, use none of the windows that are shared with others.
    for (const window of this.listWindows()) {
      if (!this.pace.hasRoomIn(window)) break;
      window.used += size;
    }
  }

  /** Called when no more data follows. */
  endMessages(): void {
    if (this.backlog?.isWaiting === true) this.backlog.hasEnded = true;
    else this.finish();
  }

  /** Passes on all waiting messages at once. */
  flush(): void {
    if (this.backlog !== undefined) this.passWaiting(this.backlog, () => true);
  }

  /** Stops forwarding messages. */
  stopMessages(): void {
    this.isOver = true;
    if (this.backlog === undefined) return;
    this.backlog.messages = [];
    this.waitingBytes = 0;
    this.pace.waiting.delete(this);
  }

  // Called by the pace.

  hasRoomInSecond(): boolean {
    return this.messages < FREE_MESSAGES || this.hasRoomInWindows();
  }

  /** False if the stream has been closed for being too fast. */
  keepsPace(): boolean {
    if (this.findSource().isShared || this.hasRoomInSecond() || !this.isTooFast()) return true;
    this.giveUp();
    return false;
  }

  /** Called when there is room again. */
  goOn(): void {
    const { backlog } = this;
    if (backlog === undefined) return;
    this.passWaiting(backlog, () => this.hasRoom());
    if (this.isOver) return;
    if (!backlog.isEmpty()) {
      this.wait(backlog);
      return;
    }
    backlog.isWaiting = false;
    backlog.beyondPace = 0;
    if (backlog.hasEnded) this.finish();
    if (this.isOver) return;
    backlog.isPaused = false;
    this.resumeSource();
  }

  private hasRoomInWindows(): boolean {
    return this.listWindows().every((window) => this.pace.hasRoomIn(window));
  }

  private hasRoom(): boolean {
    if (this.pace.leftInTurn <= 0) return false;
    return this.messages < FREE_MESSAGES || this.hasRoomInWindows();
  }

  private wait(backlog: Backlog<Message>): void {
    backlog.isWaiting = true;
    if (this.keepsPace()) this.pace.addWaiting(this);
  }

  private passWaiting(backlog: Backlog<Message>, hasRoom: () => boolean): void {
    for (;;) {
      const first = backlog.messages[backlog.next];
      if (this.isOver || first === undefined || !hasRoom()) break;
      backlog.next += 1;
      this.waitingBytes -= first.bytes;
      this.count(this.take(first.message), first.bytes);
    }
    if (!backlog.isEmpty()) return;
    backlog.messages = [];
    backlog.next = 0;
  }

  /** The window that most callers share comes last. */
  private listWindows(): readonly Window[] {
    const { server, user, isShared } = this.findSource();
    const ofServer = this.pace.findWindow(`server ${server}`, SERVER_MESSAGES);
    const ofUser = user === undefined ? [] : [this.pace.findWindow(`user ${user}`, USER_MESSAGES)];
    if (isShared) return [...ofUser, ofServer];
    this.own ??= this.pace.createWindow(STREAM_MESSAGES);
    return [this.own, ...ofUser, ofServer];
  }

  private isTooFast(): boolean {
    const { backlog } = this;
    if (backlog === undefined) return false;
    const now = this.pace.clock.monotonic();
    if (now - backlog.lastBehindAt > 2 * SECOND_MS) {
      backlog.behindSince = now;
      backlog.behindFrom = this.messages;
    }
    backlog.lastBehindAt = now;
    const brought = this.messages - backlog.behindFrom;
    return now - backlog.behindSince >= MAX_BEHIND_MS && brought >= MIN_BEHIND_MESSAGES;
  }
}
