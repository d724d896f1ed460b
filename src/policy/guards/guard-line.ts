// §26.3: how much is asked of one guard at once, and how much it is sent.

import type { UserContext } from '../../endpoint/message.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { createFairQueue, QueueFullError } from '../../platform/fair-queue.ts';
import { findExceededBound } from '../../platform/json.ts';
import { nameOwner } from '../../store/owner.ts';
import { TooMuchForGuard } from './decision.ts';

/** Requests at once, of all users together, and of one user. */
const REQUESTS = { ofAll: 64, ofOne: 32 };
const MAX_WAITING = 1_024;
const MAX_WAITING_OF_ONE = 64;
/** Of a message as JSON text. */
const MAX_SENT_CHARACTERS = 4_194_304;
/**
 * With all but ASCII escaped, as many write JSON. What is sent is well within the bounds of an answer, which may have all of it
 * in it: else whoever chooses a message could have a guard fail that lets pass.
 */
const MAX_ESCAPED = 6_291_456;
const ESCAPE_LENGTH = 6;
const SENT_BOUNDS = { levels: 180, values: 400_000 };
const SENT_PROBLEMS = {
  levels: `it nests deeper than ${SENT_BOUNDS.levels} levels`,
  values: `it has more than ${SENT_BOUNDS.values} values`,
};

/** Of an answer. */
export const MAX_ANSWER_BYTES = 8_388_608;
export const ANSWER_BOUNDS = { levels: 200, values: 500_000 };

export interface GuardLine {
  /** Runs the work when it is its user's turn. */
  run<Result>(
    work: () => Promise<Result>,
    user: UserContext | undefined,
    signal: CancelSignal | undefined,
  ): Promise<Result>;
}

/** @throws TooMuchForGuard where too much of the caller's waits, or the caller does not any more. */
export function createGuardLine({ ofAll, ofOne } = REQUESTS): GuardLine {
  const queue = createFairQueue({
    maxRunning: ofAll,
    maxRunningOfOne: ofOne,
    maxWaiting: MAX_WAITING,
    maxWaitingOfOne: MAX_WAITING_OF_ONE,
  });
  return {
    run: (work, user, signal) =>
      queue.run(work, user && nameOwner(user), signal).catch((error: unknown) => {
        if (error instanceof QueueFullError) {
          throw new TooMuchForGuard('too much waits for it; try again in a moment');
        }
        // Whoever leaves could have any guard fail that lets pass.
        throw signal?.aborted ? new TooMuchForGuard('nobody waits for it any more') : error;
      }),
  };
}

/** @throws TooMuchForGuard */
export function toSentText(message: object): string {
  const text = writeExactJson(message);
  if (text.length > MAX_SENT_CHARACTERS) {
    throw new TooMuchForGuard(`it has more than ${MAX_SENT_CHARACTERS} characters`);
  }
  if (isTooLongEscaped(text)) {
    throw new TooMuchForGuard(`it has more than ${MAX_ESCAPED} characters once it is escaped`);
  }
  const exceeded = findExceededBound(text, SENT_BOUNDS);
  if (exceeded !== undefined) throw new TooMuchForGuard(SENT_PROBLEMS[exceeded]);
  return text;
}

function isTooLongEscaped(text: string): boolean {
  if (text.length * ESCAPE_LENGTH <= MAX_ESCAPED) return false;
  let length = text.length;
  for (let at = 0; at < text.length; at += 1) {
    if (text.charCodeAt(at) > LAST_ASCII) length += ESCAPE_LENGTH - 1;
  }
  return length > MAX_ESCAPED;
}

const LAST_ASCII = 0x7e;
