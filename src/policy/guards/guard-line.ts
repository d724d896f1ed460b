// §26.3: how much is asked of one guard at once, and how much it is sent.

import type { UserContext } from '../../endpoint/message.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { createFairQueue, QueueFullError } from '../../platform/fair-queue.ts';
import { nameOwner } from '../../store/owner.ts';
import { TooMuchForGuard } from './decision.ts';

/** Requests at once, of all users together; half of them at most are of one user. */
const MAX_RUNNING = 64;
const MAX_WAITING = 1_024;
const MAX_WAITING_OF_ONE = 64;
/** Of a message as JSON text. */
const MAX_SENT_CHARACTERS = 4_194_304;
/** Of an answer. */
export const MAX_ANSWER_BYTES = 8_388_608;

export interface GuardLine {
  /** Runs the work when it is its user's turn. */
  run<Result>(
    work: () => Promise<Result>,
    user: UserContext | undefined,
    signal: CancelSignal | undefined,
  ): Promise<Result>;
}

/** @throws TooMuchForGuard where too much of the caller's waits. */
export function createGuardLine(): GuardLine {
  const queue = createFairQueue({
    maxRunning: MAX_RUNNING,
    maxRunningOfOne: MAX_RUNNING / 2,
    maxWaiting: MAX_WAITING,
    maxWaitingOfOne: MAX_WAITING_OF_ONE,
  });
  return {
    run: (work, user, signal) =>
      queue.run(work, user && nameOwner(user), signal).catch((error: unknown) => {
        if (!(error instanceof QueueFullError)) throw error;
        throw new TooMuchForGuard('too much waits for it; try again in a moment');
      }),
  };
}

/** @throws TooMuchForGuard */
export function toSentText(message: object): string {
  const text = JSON.stringify(message);
  if (text.length > MAX_SENT_CHARACTERS) {
    throw new TooMuchForGuard(`it has more than ${MAX_SENT_CHARACTERS} characters`);
  }
  return text;
}
