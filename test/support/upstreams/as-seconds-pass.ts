import { expect } from 'vitest';
import type { ManualClock } from '../gateway/clock.ts';

/** How many seconds must pass until the work is done. */
export async function countSeconds(clock: ManualClock, work: Promise<unknown>): Promise<number> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  let seconds = 0;
  // What needs no time is done without it.
  for (let turn = 0; turn < 50 && !isDone; turn += 1) await pause();
  await expect
    .poll(
      async () => {
        if (!isDone) {
          clock.advance(1_000);
          seconds += 1;
        }
        for (let turn = 0; turn < 10 && !isDone; turn += 1) await pause();
        return isDone;
      },
      { timeout: 20_000 },
    )
    .toBe(true);
  await done;
  return seconds;
}

export const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
