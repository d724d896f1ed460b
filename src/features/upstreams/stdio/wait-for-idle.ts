import type { Clock } from '../../../core/clock.ts';
import type { Connection } from './connection.ts';

/** Resolves when no request is under way, after `graceMs` at the latest. */
export const waitForIdle = (
  { waitUntilIdle }: Connection,
  clock: Clock,
  graceMs: number,
): Promise<void> =>
  new Promise((resolve) => {
    const cancel = clock.after(graceMs, resolve);
    void waitUntilIdle().then(() => {
      cancel();
      resolve();
    });
  });
