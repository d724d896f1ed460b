/** Texts on their way from one who pushes to one who reads, in order. */
export interface Queue {
  push(text: string): void;
  /** Nothing more comes; what waits is still read. */
  end(): void;
  /** Whether more waits for its reader than a slow one may keep in memory. */
  isFull(): boolean;
  /** For one reader. When it leaves early, what waits and what comes is dropped. */
  readonly items: AsyncIterable<string>;
}

/** Characters. */
const FULL = 262_144;

/** `onLeave` is called when the reader leaves before the end. */
export function createQueue(onLeave: () => void = () => {}): Queue {
  const waiting: string[] = [];
  let size = 0;
  let ended = false;
  let wake: ((result: IteratorResult<string, undefined>) => void) | undefined;

  function hand(result: IteratorResult<string, undefined>): void {
    const reader = wake;
    wake = undefined;
    reader?.(result);
  }

  const iterator: AsyncIterator<string, undefined> = {
    next() {
      const text = waiting.shift();
      if (text !== undefined) {
        size -= text.length;
        return Promise.resolve({ done: false, value: text });
      }
      if (ended) return Promise.resolve({ done: true, value: undefined });
      return new Promise((resolve) => {
        wake = resolve;
      });
    },
    async return() {
      const early = !ended;
      ended = true;
      waiting.length = 0;
      size = 0;
      hand({ done: true, value: undefined });
      if (early) onLeave();
      return { done: true, value: undefined };
    },
  };

  return {
    push(text) {
      if (ended) return;
      if (wake !== undefined) {
        hand({ done: false, value: text });
        return;
      }
      waiting.push(text);
      size += text.length;
    },
    end() {
      ended = true;
      if (wake !== undefined) hand({ done: true, value: undefined });
    },
    isFull: () => size >= FULL,
    items: { [Symbol.asyncIterator]: () => iterator },
  };
}
