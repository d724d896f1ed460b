// What is under way at a server, so that it can end before the server is let go.
import type { Clock } from '../../platform/clock.ts';
import { UpstreamError } from '../upstream.ts';

export interface Usage {
  /** Rejects with UpstreamError once it has ended. */
  run<Value>(work: () => Promise<Value>): Promise<Value>;
  /** Takes nothing more, and resolves when nothing is under way, or after so many milliseconds. */
  end(graceMs: number): Promise<void>;
}

export function createUsage(clock: Clock): Usage {
  let underWay = 0;
  let hasEnded = false;
  let onIdle = () => {};

  function leave(): void {
    underWay -= 1;
    if (underWay === 0) onIdle();
  }

  return {
    run(work) {
      if (hasEnded) {
        return Promise.reject(new UpstreamError('unavailable', 'it is no longer served'));
      }
      underWay += 1;
      // Beside what the caller waits for, not around it: each promise more between a server and its caller costs both.
      const working = startWork(work);
      working.then(leave, leave);
      return working;
    },
    async end(graceMs) {
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

/** What it throws is a rejection. */
function startWork<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return work();
  } catch (thrown) {
    return Promise.reject(thrown);
  }
}
