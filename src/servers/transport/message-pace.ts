// §18.4: how many messages of servers are looked at: in a second of each stream, of each user's streams and of each
// server's, and in one turn of the event loop of all. A server, or a caller who makes servers talk, leaves the gateway
// time for everybody else: what is beyond the pace waits with the server.
import type { Clock } from '../../platform/clock.ts';

interface PacedSource {
  readonly server: string;
  /** The owner of the stream (`nameOwner`); undefined for the gateway's own, and for what users share. */
  readonly user: string | undefined;
  /** True if many callers share it: then it may be as fast as its server, and is never given up. */
  readonly isShared: boolean;
}

const SECOND_MS = 1000;
const STREAM_MESSAGES = 1000;
const USER_MESSAGES = 2000;
const SERVER_MESSAGES = 4000;
/** Some milliseconds of work. */
const TURN_MESSAGES = 100;
/** So few at the beginning of a stream wait for no second: most answers have no more, and others' must not hold them up. */
const FREE_MESSAGES = 16;
/** A longer message counts as several. */
const BYTES_A_MESSAGE = 8192;
/** The same for an answer that is waited for: it goes on as it came. */
const BYTES_AN_ANSWER = 32_768;
/** A stream that is beyond the pace for so long, and brought so many meanwhile, is given up. */
const MAX_BEHIND_MS = 60_000;
const MIN_BEHIND_MESSAGES = 1000;

/** The messages that may be looked at in a second of the clock; more are taken off the seconds that follow. */
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
  /** The stream that waits longest comes first. */
  readonly waiting = new Set<StreamPace>();
  private isTurnTimed = false;
  private isSecondTimed = false;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  open(source: PacedSource): StreamPace {
    return new StreamPace(this, source);
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

  addWaiting(stream: StreamPace): void {
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
      for (const stream of [...this.waiting]) if (!stream.check()) this.waiting.delete(stream);
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

const NOTHING = () => {};

/**
 * The pace of one stream: the answer to a call, a stream of notifications, the output of a process. Most are one answer, which
 * looks at no window.
 */
export class StreamPace {
  private readonly all: MessagePace;
  private readonly source: PacedSource;
  private own: Window | undefined;
  private messages = 0;
  /** Since when it has waited in each second; and how many messages it had brought by then. */
  private behindSince = 0;
  private behindFrom = 0;
  private lastBehindAt = Number.NEGATIVE_INFINITY;
  private giveUp = NOTHING;
  private isWaiting = false;
  goOn = NOTHING;

  constructor(all: MessagePace, source: PacedSource) {
    this.all = all;
    this.source = source;
  }

  hasRoom(): boolean {
    return this.all.leftInTurn > 0 && this.hasRoomInSecond();
  }

  hasRoomInSecond(): boolean {
    return (
      this.messages < FREE_MESSAGES ||
      this.listWindows().every((window) => this.all.hasRoomIn(window))
    );
  }

  /**
   * Counts what was looked at: so many messages of so many bytes. None are answers that a caller waits for, which
   * calls limit: they only take their part of a turn.
   */
  count(count: number, bytes: number): void {
    const size = Math.floor(bytes / (count === 0 ? BYTES_AN_ANSWER : BYTES_A_MESSAGE)) + count;
    if (size === 0) return;
    this.all.leftInTurn -= size;
    this.all.timeTurn();
    if (count === 0) return;
    this.messages += count;
    // Messages beyond a window, as the first ones of a stream may be, take nothing of what others share.
    for (const window of this.listWindows()) {
      if (!this.all.hasRoomIn(window)) break;
      window.used += size;
    }
  }

  /**
   * Calls `goOn` once there is room again, or `giveUp` where the stream has been beyond the pace for too long.
   * Until then the stream must wait.
   */
  wait(goOn: () => void, giveUp: () => void): void {
    this.goOn = goOn;
    this.giveUp = giveUp;
    this.isWaiting = true;
    if (this.check()) this.all.addWaiting(this);
  }

  /** False where the stream has been given up. */
  check(): boolean {
    if (this.source.isShared || this.hasRoomInSecond() || !this.isTooFast()) return true;
    this.giveUp();
    return false;
  }

  /** It is over: nothing is called any more. */
  end(): void {
    if (this.isWaiting) this.all.waiting.delete(this);
  }

  /** That of the most callers comes last. */
  private listWindows(): readonly Window[] {
    const { server, user, isShared } = this.source;
    const ofServer = this.all.findWindow(`server ${server}`, SERVER_MESSAGES);
    const ofUser = user === undefined ? [] : [this.all.findWindow(`user ${user}`, USER_MESSAGES)];
    if (isShared) return [...ofUser, ofServer];
    this.own ??= this.all.createWindow(STREAM_MESSAGES);
    return [this.own, ...ofUser, ofServer];
  }

  private isTooFast(): boolean {
    const now = this.all.clock.monotonic();
    if (now - this.lastBehindAt > 2 * SECOND_MS) {
      this.behindSince = now;
      this.behindFrom = this.messages;
    }
    this.lastBehindAt = now;
    const brought = this.messages - this.behindFrom;
    return now - this.behindSince >= MAX_BEHIND_MS && brought >= MIN_BEHIND_MESSAGES;
  }
}

// Messages of one stream, passed on in their order at its pace: those that have come but must wait are kept, and the
// stream is paused once there are many.

/** The source of messages, which also takes them. */
export interface PacedStream<Message> {
  /** Returns how many messages it counts as: none for an answer that is waited for. */
  pass(message: Message): number;
  /** A copy that can be kept, of what is valid only while it is pushed. */
  copy(message: Message): Message;
  pause(): void;
  /** Nothing waits any more; the stream may not have been paused. */
  resume(): void;
  /** The stream has been too fast for too long. */
  giveUp(): void;
  /** After `end`: all have been passed on. */
  finish?(): void;
}

/**
 * Bytes that are still taken of a stream that is beyond its pace. Of what a connection had read when it was
 * paused, up to 64 KiB, all is still passed on: fewer would be reached again at once.
 */
const MAX_BEYOND_PACE = 131_072;

interface Waiting<Message> {
  readonly message: Message;
  readonly bytes: number;
}

export class PacedMessages<Message> {
  private readonly pace: StreamPace;
  private readonly stream: PacedStream<Message>;
  /** Made where one has to wait. */
  private waiting: Waiting<Message>[] | undefined;
  private next = 0;
  /** Bytes of those that wait. */
  waitingBytes = 0;
  private isWaiting = false;
  private beyondPace = 0;
  private isPaused = false;
  private isOver = false;
  private hasEnded = false;

  constructor(pace: StreamPace, stream: PacedStream<Message>) {
    this.pace = pace;
    this.stream = stream;
  }

  push(message: Message, bytes: number): void {
    if (this.isOver) return;
    if (!this.isWaiting && this.pace.hasRoom()) {
      this.pass(message, bytes);
      return;
    }
    this.waiting ??= [];
    this.waiting.push({ message: this.stream.copy(message), bytes });
    this.waitingBytes += bytes;
    if (!this.isWaiting) this.wait();
  }

  /** So many bytes have come, of messages or none: pauses the stream where too many were beyond the pace. */
  check(bytes: number): void {
    if (this.isOver) return;
    if (!this.isWaiting) {
      if (this.pace.hasRoom()) return;
      this.wait();
    }
    this.beyondPace += bytes;
    if (this.isOver || this.isPaused || this.beyondPace < MAX_BEYOND_PACE) return;
    this.isPaused = true;
    this.stream.pause();
  }

  /** Nothing more comes: the stream is finished once all have been passed on. */
  end(): void {
    if (this.isWaiting) this.hasEnded = true;
    else this.stream.finish?.();
  }

  /** Passes on at once what waits. */
  flush(): void {
    this.passWaiting(() => true);
  }

  /** Nothing is passed on any more. */
  stop(): void {
    this.isOver = true;
    this.waiting = undefined;
    this.waitingBytes = 0;
    this.pace.end();
  }

  private pass(message: Message, bytes: number): void {
    this.pace.count(this.stream.pass(message), bytes);
  }

  private passWaiting(hasRoom: () => boolean): void {
    while (!this.isOver && this.hasWaiting() && hasRoom()) {
      const first = this.waiting?.[this.next];
      if (first === undefined) break;
      this.next += 1;
      this.waitingBytes -= first.bytes;
      this.pass(first.message, first.bytes);
    }
    if (this.hasWaiting()) return;
    this.waiting = undefined;
    this.next = 0;
  }

  private hasWaiting(): boolean {
    return this.waiting !== undefined && this.next < this.waiting.length;
  }

  private wait(): void {
    this.isWaiting = true;
    this.pace.wait(
      () => this.goOn(),
      () => this.stream.giveUp(),
    );
  }

  private goOn(): void {
    this.passWaiting(() => this.pace.hasRoom());
    if (this.isOver) return;
    if (this.hasWaiting()) {
      this.wait();
      return;
    }
    this.isWaiting = false;
    this.beyondPace = 0;
    if (this.hasEnded) this.stream.finish?.();
    if (this.isOver) return;
    this.isPaused = false;
    this.stream.resume();
  }
}
