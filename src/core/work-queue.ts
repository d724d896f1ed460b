// So many at a time, so many waiting; the rest is turned away.

export interface WorkQueue {
  /**
   * Runs the work when it is its turn.
   *
   * @throws What `createRefusal` makes when too many are waiting; the signal's reason when it ends before the turn.
   */
  run<Result>(work: () => Promise<Result>, signal?: AbortSignal): Promise<Result>;
}

export interface WorkQueueOptions {
  readonly maxRunning: number;
  readonly maxWaiting: number;
  createRefusal(): Error;
}

export function createWorkQueue({
  maxRunning,
  maxWaiting,
  createRefusal,
}: WorkQueueOptions): WorkQueue {
  const waiting: (() => void)[] = [];
  let running = 0;

  function waitForTurn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (waiting.length >= maxWaiting) throw createRefusal();
      const start = () => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        waiting.splice(waiting.indexOf(start), 1);
        reject(signal?.reason);
      };
      waiting.push(start);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  /** Whoever waits longest takes over the place, so that `running` stays as it is. */
  function endTurn(): void {
    const start = waiting.shift();
    if (start) start();
    else running -= 1;
  }

  return {
    async run(work, signal) {
      signal?.throwIfAborted();
      if (running < maxRunning) running += 1;
      else await waitForTurn(signal);
      try {
        return await work();
      } finally {
        endTurn();
      }
    },
  };
}
