// Few at a time, some waiting, the rest turned away.

export interface Turns {
  /**
   * Runs the work when it is its turn.
   *
   * @throws Error when too many are waiting; the signal's reason when it ends before the turn.
   */
  run<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
}

export function createTurns(maxRunning: number, maxWaiting: number): Turns {
  const waiting: (() => void)[] = [];
  let running = 0;

  function nextTurn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (waiting.length >= maxWaiting) throw new Error('too many are waiting for their turn');
      const begin = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        waiting.splice(waiting.indexOf(begin), 1);
        reject(signal.reason);
      };
      waiting.push(begin);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Whoever waits longest takes over the place, so that `running` stays as it is. */
  function endTurn(): void {
    const begin = waiting.shift();
    if (begin) begin();
    else running -= 1;
  }

  return {
    async run(work, signal) {
      signal.throwIfAborted();
      if (running < maxRunning) running += 1;
      else await nextTurn(signal);
      try {
        return await work();
      } finally {
        endTurn();
      }
    },
  };
}
