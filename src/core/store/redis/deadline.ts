// Decisions 9: an operation of the store answers or fails within a quarter of a second.

export const DEADLINE_MS = 250;

/** The result, or a rejection when the time is over. */
export type Deadline = <Result>(work: Promise<Result>, onTimeout: () => Error) => Promise<Result>;

const TICK_MS = 25;
/** The first tick comes early, as it was set for earlier operations. */
const TICKS = DEADLINE_MS / TICK_MS + 1;

interface Waiting {
  ticks: number;
  readonly expire: () => void;
}

/**
 * Time is counted in ticks of the event loop, one timer for all operations: while this process
 * stalls (a slow tool, a starved container) no tick passes, answers may lie in the socket unread,
 * and Redis was not slow.
 */
export function createDeadline(): Deadline {
  const waiting = new Set<Waiting>();
  let ticker: NodeJS.Timeout | undefined;

  function tick(): void {
    if (waiting.size === 0) {
      clearInterval(ticker);
      ticker = undefined;
    }
    for (const one of waiting) {
      one.ticks += 1;
      if (one.ticks >= TICKS) one.expire();
    }
  }

  return function within(work, onTimeout) {
    ticker ??= setInterval(tick, TICK_MS);
    return new Promise((resolve, reject) => {
      const own: Waiting = {
        ticks: 0,
        expire() {
          waiting.delete(own);
          reject(onTimeout());
        },
      };
      waiting.add(own);
      work.then(
        (result) => {
          waiting.delete(own);
          resolve(result);
        },
        (error: unknown) => {
          waiting.delete(own);
          reject(error);
        },
      );
    });
  };
}
