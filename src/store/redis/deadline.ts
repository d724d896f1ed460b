// An operation of the store answers or fails within a quarter of a second: a caller who waits longer
// for a store that is down holds a connection and memory, and gets the same error later.
import { startTicking } from './ticks.ts';

export const DEADLINE_MS = 250;

/** The result, or a rejection when the time is over. */
export type WithDeadline = <Result>(
  work: Promise<Result>,
  onTimeout: () => Error,
) => Promise<Result>;

const TICK_MS = 25;
/** The first tick comes early, as it was set for earlier operations. */
const TICKS = DEADLINE_MS / TICK_MS + 1;

interface PendingOperation {
  ticks: number;
  readonly expire: () => void;
}

/** Time is counted in ticks, by one timer for all operations: a stall of this process is not Redis's. */
export function createDeadline(): WithDeadline {
  const pending = new Set<PendingOperation>();
  let stopTicking: (() => void) | undefined;

  function tick(): void {
    if (pending.size === 0) {
      stopTicking?.();
      stopTicking = undefined;
    }
    for (const operation of pending) {
      operation.ticks += 1;
      if (operation.ticks >= TICKS) operation.expire();
    }
  }

  return function withDeadline(work, onTimeout) {
    stopTicking ??= startTicking(TICK_MS, tick);
    return new Promise((resolve, reject) => {
      const operation: PendingOperation = {
        ticks: 0,
        expire() {
          pending.delete(operation);
          reject(onTimeout());
        },
      };
      pending.add(operation);
      work.then(
        (result) => {
          pending.delete(operation);
          resolve(result);
        },
        (error: unknown) => {
          pending.delete(operation);
          reject(error);
        },
      );
    });
  };
}
