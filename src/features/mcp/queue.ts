/** Items on their way from one who pushes to one who reads, in order. */
export interface Queue<Item> {
  push(item: Item): void;
  /** Nothing more comes; what waits is still read. */
  end(): void;
  /** Items that nobody has read yet. */
  size(): number;
  /** For one reader. When it leaves early, what waits and what comes is dropped. */
  readonly items: AsyncIterable<Item>;
}

/** `onLeave` is called when the reader leaves before the end. */
export function createQueue<Item>(onLeave: () => void = () => {}): Queue<Item> {
  const waiting: Item[] = [];
  let ended = false;
  let wake: ((result: IteratorResult<Item, undefined>) => void) | undefined;

  function hand(result: IteratorResult<Item, undefined>): void {
    const reader = wake;
    wake = undefined;
    reader?.(result);
  }

  const iterator: AsyncIterator<Item, undefined> = {
    next() {
      const item = waiting.shift();
      if (item !== undefined) return Promise.resolve({ done: false, value: item });
      if (ended) return Promise.resolve({ done: true, value: undefined });
      return new Promise((resolve) => {
        wake = resolve;
      });
    },
    async return() {
      const early = !ended;
      ended = true;
      waiting.length = 0;
      hand({ done: true, value: undefined });
      if (early) onLeave();
      return { done: true, value: undefined };
    },
  };

  return {
    push(item) {
      if (ended) return;
      if (wake === undefined) waiting.push(item);
      else hand({ done: false, value: item });
    },
    end() {
      ended = true;
      if (wake !== undefined) hand({ done: true, value: undefined });
    },
    size: () => waiting.length,
    items: { [Symbol.asyncIterator]: () => iterator },
  };
}
