// What is under way at a server, so that it can end before the server is let go.
import type { Clock } from '../../platform/clock.ts';
import { UpstreamError } from '../upstream.ts';

export interface Usage {
  /** @throws UpstreamError once it has ended. */
  run<Value>(work: () => Promise<Value>): Promise<Value>;
  /** Takes nothing more, and resolves when nothing is under way, or after so many milliseconds. */
  end(graceMs: number): Promise<void>;
}

export function createUsage(clock: Clock): Usage {
  let underWay = 0;
  let hasEnded = false;
  let onIdle = () => {};

  return {
    async run(work) {
      if (hasEnded) throw new UpstreamError('unavailable', 'it is no longer served');
      underWay += 1;
      try {
        return await work();
      } finally {
        underWay -= 1;
        if (underWay === 0) onIdle();
      }
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
