// Messages of one stream, passed on in their order at its pace: those that have come but must wait are kept, and the
// stream is paused once there are many.
import type { StreamPace } from './message-pace.ts';

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
