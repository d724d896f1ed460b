// For what waits by a clock that the test moves.
import type { ManualClock } from '../gateway/clock.ts';

/** Time goes on, faster than it does, for as long as this is not done. */
export async function asTimePasses<Value>(
  clock: ManualClock,
  pending: Promise<Value>,
): Promise<Value> {
  let isDone = false;
  const settled = pending.finally(() => {
    isDone = true;
  });
  // A rejection is the caller's, who awaits it below.
  settled.catch(() => {});
  while (!isDone) {
    // What is on its way over loopback comes first.
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (!isDone) clock.advance(STEP_MS);
  }
  return settled;
}

const STEP_MS = 100;
