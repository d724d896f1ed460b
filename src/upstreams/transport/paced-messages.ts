// Messages of one stream, passed on in their order at its pace: those that have come but must wait are kept, and the
// stream is paused meanwhile.
import type { StreamPace } from './message-pace.ts';

export interface PacedMessages<Message> {
  push(message: Message, bytes: number): void;
  /** Pauses the stream where what came of it, messages or none, was beyond the pace. */
  check(): void;
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
  resume(): void;
  /** The stream has been too fast for too long. */
  giveUp(): void;
}

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

  function pause(): void {
    if (!isPaused) options.pause();
    isPaused = true;
    pace.wait(goOn, options.giveUp);
  }

  function goOn(): void {
    passWaiting(pace.hasRoom);
    if (isOver) return;
    if (waiting.length > 0) {
      pause();
      return;
    }
    isPaused = false;
    finish?.();
    if (!isOver) options.resume();
  }

  return {
    push(message, bytes) {
      if (isOver) return;
      if (!isPaused && pace.hasRoom()) {
        pass(message, bytes);
        return;
      }
      waiting.push({ message: options.copy(message), bytes });
      waitingBytes += bytes;
      if (!isPaused) pause();
    },
    check() {
      if (!isOver && !isPaused && !pace.hasRoom()) pause();
    },
    waitingBytes: () => waitingBytes,
    end(then) {
      if (isPaused) finish = then;
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
