// Waits for what another request, here or at another replica, decides.
import type { CancelSignal } from './cancellation.ts';
import type { Clock } from './clock.ts';

export interface Waiting<Outcome> {
  /** Undefined while there is none. What rejects is asked again: a store that fails now may answer with the next look. */
  look(): Promise<Outcome | undefined>;
  /** Calls back when there may be one; returns what ends it. */
  listen(check: () => void): () => void;
  /** Of a wait that took too long, or that nobody waits for any more. */
  readonly late: Outcome;
  /** At most. */
  readonly waitMs: number;
  readonly signal: CancelSignal;
  readonly clock: Clock;
}

/** Messages between replicas may be lost. */
const POLL_MS = 2000;

export function waitForOutcome<Outcome>(waiting: Waiting<Outcome>): Promise<Outcome> {
  const { look, late, waitMs, signal, clock } = waiting;
  return new Promise((resolve) => {
    let isOver = false;
    let isLooking = false;
    let hasChanged = false;
    let cancelPoll = () => {};
    const end = (outcome: Outcome) => {
      isOver = true;
      cancelPoll();
      cancelDeadline();
      stopListening();
      signal.removeEventListener('abort', onAbort);
      resolve(outcome);
    };
    const onAbort = () => end(late);
    const cancelDeadline = clock.after(waitMs, () => end(late));
    const stopListening = waiting.listen(() => void check());
    async function check(): Promise<void> {
      hasChanged = isLooking;
      if (isLooking) return;
      isLooking = true;
      cancelPoll();
      const outcome = await look().catch(() => undefined);
      isLooking = false;
      if (isOver) return;
      if (outcome !== undefined) end(outcome);
      else if (hasChanged) void check();
      else cancelPoll = clock.after(POLL_MS, () => void check());
    }
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    else void check();
  });
}
