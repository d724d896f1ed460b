// So many at a time, so many waiting; the rest is turned away.

export interface WorkQueue {
  /**
   * Runs the work when it is its turn.
   *
   * @throws What `createRefusal` makes when too many are waiting, or too many of one owner; the signal's reason when it ends before the turn.
   */
  run<Result>(work: () => Promise<Result>, asker?: Asker): Promise<Result>;
}

export interface Asker {
  readonly signal?: AbortSignal;
  /** Whose work it is, where one may have `maxOfOne` at most. */
  readonly owner?: string | undefined;
}

export interface WorkQueueOptions {
  readonly maxRunning: number;
  readonly maxWaiting: number;
  /** Of one owner, running and waiting: the rest is for others. As many as there is room for unless given. */
  readonly maxOfOne?: number;
  createRefusal(): Error;
}

export function createWorkQueue({
  maxRunning,
  maxWaiting,
  maxOfOne = maxRunning + maxWaiting,
  createRefusal,
}: WorkQueueOptions): WorkQueue {
  const byOwner = new Map<string, number>();
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

  async function runInTurn<Result>(
    work: () => Promise<Result>,
    signal: AbortSignal | undefined,
  ): Promise<Result> {
    signal?.throwIfAborted();
    if (running < maxRunning) running += 1;
    else await waitForTurn(signal);
    try {
      return await work();
    } finally {
      endTurn();
    }
  }

  return {
    async run(work, { signal, owner } = {}) {
      if (owner === undefined) return runInTurn(work, signal);
      const count = byOwner.get(owner) ?? 0;
      if (count >= maxOfOne) throw createRefusal();
      byOwner.set(owner, count + 1);
      try {
        return await runInTurn(work, signal);
      } finally {
        const left = (byOwner.get(owner) ?? 1) - 1;
        if (left > 0) byOwner.set(owner, left);
        else byOwner.delete(owner);
      }
    },
  };
}
