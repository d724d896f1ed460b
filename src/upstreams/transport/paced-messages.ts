// Messages of one stream, passed on in their order at its pace: those that have come but must wait are kept, and the
// stream is paused once there are many.
import type { StreamPace } from './message-pace.ts';

export interface PacedMessages<Message> {
  push(message: Message, bytes: number): void;
  /** So many bytes have come, of messages or none: pauses the stream where too many were beyond the pace. */
  check(bytes: number): void;
  /** Bytes of those that wait. No accessor, for the reason at AnswerBody.keptBytes. */
  waitingBytes(): number;
  /** Nothing more comes: called once all have been passed on. */
  end(then: () => void): void;
  /** Passes on at once what waits. */
  flush(): void;
  /** Nothing is passed on any more. */
  stop(): void;
}

export interface PacedMessagesOptions<Message> {
  readonly pace: StreamPace;
  /** Returns how many messages it counts as: none for an answer that is waited for. */
  pass(message: Message): number;
  /** A copy that can be kept, of what is valid only while it is pushed. */
  copy(message: Message): Message;
  pause(): void;
  /** Nothing waits any more; the stream may not have been paused. */
  resume(): void;
  /** The stream has been too fast for too long. */
  giveUp(): void;
}

/**
 * Bytes that are still taken of a stream that is beyond its pace. With each pause undici reads 64 KiB more than it has
 * parsed: where fewer were taken from one pause to the next, what it keeps would grow without end.
 */
const MAX_BEYOND_PACE = 131_072;

interface Waiting<Message> {
  readonly message: Message;
  readonly bytes: number;
}

export function createPacedMessages<Message>(
  options: PacedMessagesOptions<Message>,
): PacedMessages<Message> {
  const { pace } = options;
  let waiting: Waiting<Message>[] = [];
  let next = 0;
  let waitingBytes = 0;
  let isWaiting = false;
  let beyondPace = 0;
  let isPaused = false;
  let isOver = false;
  let finish: (() => void) | undefined;

  function pass(message: Message, bytes: number): void {
    pace.count(options.pass(message), bytes);
  }

  function passWaiting(hasRoom: () => boolean): void {
    while (!isOver && next < waiting.length && hasRoom()) {
      const first = waiting[next];
      if (first === undefined) break;
      next += 1;
      waitingBytes -= first.bytes;
      pass(first.message, first.bytes);
    }
    if (next < waiting.length) return;
    waiting = [];
    next = 0;
  }

  function wait(): void {
    isWaiting = true;
    pace.wait(goOn, options.giveUp);
  }

  function goOn(): void {
    passWaiting(pace.hasRoom);
    if (isOver) return;
    if (waiting.length > 0) {
      wait();
      return;
    }
    isWaiting = false;
    beyondPace = 0;
    finish?.();
    if (isOver) return;
    isPaused = false;
    options.resume();
  }

  return {
    push(message, bytes) {
      if (isOver) return;
      if (!isWaiting && pace.hasRoom()) {
        pass(message, bytes);
        return;
      }
      waiting.push({ message: options.copy(message), bytes });
      waitingBytes += bytes;
      if (!isWaiting) wait();
    },
    check(bytes) {
      if (isOver) return;
      if (!isWaiting) {
        if (pace.hasRoom()) return;
        wait();
      }
      beyondPace += bytes;
      if (isOver || isPaused || beyondPace < MAX_BEYOND_PACE) return;
      isPaused = true;
      options.pause();
    },
    waitingBytes: () => waitingBytes,
    end(then) {
      if (isWaiting) finish = then;
      else then();
    },
    flush: () => passWaiting(() => true),
    stop() {
      isOver = true;
      waiting = [];
      waitingBytes = 0;
      pace.end();
    },
  };
}
