// Bounded concurrency with a bounded queue: owners take turns, so that the backlog of one does not delay the others. Work that
// exceeds the queue is refused.
import type { CancelSignal } from './cancellation.ts';

export type WorkQueue = ReturnType<typeof createWorkQueue>;

/** The work of one owner. */
interface Line {
  running: number;
  readonly waiting: (() => void)[];
}

export function createWorkQueue({
  maxRunning,
  maxWaiting,
  maxRunningOfOne = maxRunning,
  maxWaitingOfOne = maxWaiting,
  createRefusal,
}: {
  readonly maxRunning: number;
  readonly maxWaiting: number;
  /** Maximum per owner; by default the overall maximum. */
  readonly maxRunningOfOne?: number;
  readonly maxWaitingOfOne?: number;
  createRefusal(): Error;
}) {
  /** One line per owner with work; the owner who was served last is at the end. */
  const lines = new Map<string | undefined, Line>();
  let running = 0;
  let waiting = 0;

  function begin(line: Line) {
    line.running += 1;
    running += 1;
  }

  function waitForTurn(line: Line, signal: Signal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (waiting >= maxWaiting || line.waiting.length >= maxWaitingOfOne) throw createRefusal();
      const start = () => {
        waiting -= 1;
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        line.waiting.splice(line.waiting.indexOf(start), 1);
        waiting -= 1;
        reject(readReason(signal));
      };
      waiting += 1;
      line.waiting.push(start);
      signal?.addEventListener('abort', leave);
    });
  }

  /** Starts one waiting piece of work, since each call stands for one free slot. */
  function startNext() {
    for (const [owner, line] of lines) {
      const start = line.running < maxRunningOfOne ? line.waiting.shift() : undefined;
      if (start === undefined) continue;
      lines.delete(owner);
      lines.set(owner, line);
      begin(line);
      start();
      return;
    }
  }

  /** The owner may already have a new line when a caller who left this one is notified. */
  function forgetIfEmpty(owner: string | undefined, line: Line) {
    const isEmpty = line.running === 0 && line.waiting.length === 0;
    if (isEmpty && lines.get(owner) === line) lines.delete(owner);
  }

  return {
    /**
     * Runs the work when it is its owner's turn. `undefined` counts as an owner.
     *
     * @throws the error of `createRefusal` if the queue or the owner's share is full; the signal's reason if it aborts first.
     */
    async run<Result>(
      work: () => Promise<Result>,
      { signal, owner }: { readonly signal?: Signal; readonly owner?: string | undefined } = {},
    ): Promise<Result> {
      const line = lines.get(owner) ?? { running: 0, waiting: [] };
      lines.set(owner, line);
      try {
        if (signal?.aborted) throw readReason(signal);
        const isFree = running < maxRunning && line.running < maxRunningOfOne;
        if (isFree && line.waiting.length === 0) begin(line);
        else await waitForTurn(line, signal);
      } catch (error) {
        forgetIfEmpty(owner, line);
        throw error;
      }
      try {
        return await work();
      } finally {
        line.running -= 1;
        running -= 1;
        forgetIfEmpty(owner, line);
        startNext();
      }
    },
  };
}

type Signal = (CancelSignal & { readonly reason?: unknown }) | undefined;

const readReason = (signal: Signal) =>
  signal?.reason ?? new Error('the caller no longer waits for it');
