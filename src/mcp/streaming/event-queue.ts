import type { ReplyStream } from '../../endpoint/message.ts';

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
export function createEventQueue(onLeave: () => void = () => {}): EventQueue {
  const waiting: string[] = [];
  let waitingCharacters = 0;
  let hasEnded = false;
  let tellWaiting: (characters: number) => void = () => {};
  /** Of the reader's `next`, while there is nothing to read. */
  let resolveNext: ((result: IteratorResult<string, undefined>) => void) | undefined;

  function countWaiting(change: number): void {
    waitingCharacters += change;
    tellWaiting(waitingCharacters);
  }

  function passToReader(result: IteratorResult<string, undefined>): void {
    const resolve = resolveNext;
    resolveNext = undefined;
    resolve?.(result);
  }

  const iterator: AsyncIterator<string, undefined> = {
    next() {
      const event = waiting.shift();
      if (event !== undefined) {
        countWaiting(-event.length);
        return Promise.resolve({ done: false, value: event });
      }
      if (hasEnded) return Promise.resolve({ done: true, value: undefined });
      return new Promise((resolve) => {
        resolveNext = resolve;
      });
    },
    async return() {
      const isEarly = !hasEnded;
      hasEnded = true;
      waiting.length = 0;
      countWaiting(-waitingCharacters);
      passToReader({ done: true, value: undefined });
      if (isEarly) onLeave();
      return { done: true, value: undefined };
    },
  };

  return {
    push(event) {
      if (hasEnded) return;
      if (resolveNext !== undefined) {
        passToReader({ done: false, value: event });
        return;
      }
      waiting.push(event);
      countWaiting(event.length);
    },
    end() {
      hasEnded = true;
      if (resolveNext !== undefined) passToReader({ done: true, value: undefined });
    },
    isFull: () => waitingCharacters >= MAX_WAITING_CHARACTERS,
    hasRoomToSpare: (characters) => waitingCharacters + characters <= MAX_WAITING_CHARACTERS / 2,
    items: {
      [Symbol.asyncIterator]: () => iterator,
      watchWaiting(listener) {
        tellWaiting = listener;
        listener(waitingCharacters);
      },
    },
  };
}
