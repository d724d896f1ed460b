// Bounded concurrency with a bounded queue; further work is refused.
import type { CancelSignal } from './cancellation.ts';

export type WorkQueue = ReturnType<typeof createWorkQueue>;

export function createWorkQueue({
  maxRunning,
  maxWaiting,
  maxOfOne = maxRunning + maxWaiting,
  createRefusal,
}: {
  readonly maxRunning: number;
  readonly maxWaiting: number;
  /** Maximum per owner, running and waiting. Default: no limit of its own. */
  readonly maxOfOne?: number;
  createRefusal(): Error;
}) {
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

  /** Hands the slot to the longest-waiting entry, so that `running` does not change. */
  function endTurn() {
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
    /**
     * Runs the work when a slot is free. `owner` is counted against `maxOfOne`.
     *
     * @throws the error of `createRefusal` if the queue or the owner's share is full; the signal's reason if it aborts first.
     */
    async run<Result>(
      work: () => Promise<Result>,
      {
        signal,
        owner,
      }: { readonly signal?: AbortSignal; readonly owner?: string | undefined } = {},
    ): Promise<Result> {
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

// Fair queue: bounded concurrency, round-robin between owners, so that one owner's backlog delays no other.

export class QueueFullError extends Error {
  override readonly name = 'QueueFullError';
}

class QueueLeftError extends Error {
  override readonly name = 'QueueLeftError';
}

interface Line {
  running: number;
  readonly waiting: (() => void)[];
}

export function createFairQueue(options: {
  readonly maxRunning: number;
  /** Maximum concurrent runs per owner. */
  readonly maxRunningOfOne: number;
  readonly maxWaiting: number;
  readonly maxWaitingOfOne: number;
}) {
  const { maxRunning, maxRunningOfOne, maxWaiting, maxWaitingOfOne } = options;
  /** One queue per owner with work; the owner served last is last. */
  const lines = new Map<string | undefined, Line>();
  let running = 0;
  let waiting = 0;

  function begin(line: Line) {
    line.running += 1;
    running += 1;
  }

  function waitForTurn(line: Line, signal: CancelSignal | undefined): Promise<void> {
    if (waiting >= maxWaiting || line.waiting.length >= maxWaitingOfOne)
      return Promise.reject(new QueueFullError('too much of it waits'));
    return new Promise((resolve, reject) => {
      const start = () => {
        waiting -= 1;
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        line.waiting.splice(line.waiting.indexOf(start), 1);
        waiting -= 1;
        reject(new QueueLeftError('the caller no longer waits for it'));
      };
      waiting += 1;
      line.waiting.push(start);
      signal?.addEventListener('abort', leave);
    });
  }

  function startNext() {
    for (const [owner, line] of lines) {
      if (running >= maxRunning) return;
      if (line.running >= maxRunningOfOne) continue;
      const start = line.waiting.shift();
      if (start === undefined) continue;
      lines.delete(owner);
      lines.set(owner, line);
      begin(line);
      start();
      startNext();
      return;
    }
  }

  return {
    /**
     * Runs the work when it is its owner's turn. Undefined counts as an owner.
     *
     * @throws QueueFullError if the queue is full; QueueLeftError if the signal aborts first.
     */
    async run<Result>(
      work: () => Promise<Result>,
      owner: string | undefined,
      signal?: CancelSignal,
    ): Promise<Result> {
      const line = lines.get(owner) ?? { running: 0, waiting: [] };
      lines.set(owner, line);
      try {
        if (signal?.aborted) throw new QueueLeftError('the caller no longer waits for it');
        const isFree = running < maxRunning && line.running < maxRunningOfOne;
        if (isFree && line.waiting.length === 0) begin(line);
        else await waitForTurn(line, signal);
      } catch (error) {
        if (line.running === 0 && line.waiting.length === 0) lines.delete(owner);
        throw error;
      }
      try {
        return await work();
      } finally {
        line.running -= 1;
        running -= 1;
        if (line.running === 0 && line.waiting.length === 0) lines.delete(owner);
        startNext();
      }
    },
  };
}
