// Work that is under way at a server, so that it can end before the server is let go.
import type { Clock } from '../../platform/clock.ts';
import { UpstreamError } from './upstream.ts';

export type Usage = ReturnType<typeof createUsage>;

export function createUsage(clock: Clock) {
  let underWay = 0;
  let hasEnded = false;
  let onIdle = () => {};

  function leave(): void {
    underWay -= 1;
    if (underWay === 0) onIdle();
  }

  return {
    /** Rejects with UpstreamError once it has ended. */
    run<Value>(work: () => Promise<Value>): Promise<Value> {
      if (hasEnded) return refuse();
      underWay += 1;
      const working = startWork(work);
      // Beside what the caller waits for, not around it.
      working.then(leave, leave);
      return working;
    },
    /** As `run`, and resolves to what `finish` makes of it: between a server and its caller each promise costs both. */
    runAndFinish<Value, Result>(
      work: () => Promise<Value>,
      finish: (value: Value) => Result | Promise<Result>,
    ): Promise<Result> {
      if (hasEnded) return refuse();
      underWay += 1;
      return startWork(work).then(
        (value) => {
          leave();
          return finish(value);
        },
        (thrown: unknown) => {
          leave();
          throw thrown;
        },
      );
    },
    /** Takes nothing more, and resolves when nothing is under way, or after so many milliseconds. */
    async end(graceMs: number): Promise<void> {
      hasEnded = true;
      if (underWay === 0) return;
      await new Promise<void>((resolve) => {
        const cancel = clock.after(graceMs, resolve);
        onIdle = () => {
          cancel();
          resolve();
        };
      });
    },
  };
}

const refuse = (): Promise<never> =>
  Promise.reject(new UpstreamError('unavailable', 'it is no longer served'));

/** Anything that it throws is a rejection. */
function startWork<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return work();
  } catch (thrown) {
    return Promise.reject(thrown);
  }
}
