// Questions that this replica waits on.

import { GatewayError } from '../../errors/gateway-error.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import type { Clock } from '../../platform/clock.ts';

export interface PendingQuestions {
  /** Waits for an answer until the signal is aborted, or it takes too long. */
  add(sessionId: string, id: string, signal: CancelSignal): PendingQuestion;
  /** False when nobody waits here. */
  receiveAnswer(sessionId: string, id: string, answer: ClientAnswer): boolean;
  /** Waits for none of them any longer. */
  giveUpAll(details: string): void;
}

/** As the client wrote it; `result` is undefined where it failed. */
export interface ClientAnswer {
  readonly result?: unknown;
  readonly error?: unknown;
}

export interface PendingQuestion {
  /** Rejects with `client_silent` when there is no answer. */
  readonly answer: Promise<ClientAnswer>;
  /** Rejects the answer with `client_silent`. */
  giveUp(details: string): void;
  /** To be called when nobody waits for the answer any more. */
  forget(): void;
}

/** Long enough for a person to answer. */
export const ANSWER_TIMEOUT_MS = 300_000;

/** Who waits for the answer to a question. */
interface Waiter {
  receive(answer: ClientAnswer): void;
  giveUp(details: string): void;
}

export function createPendingQuestions(clock: Clock): PendingQuestions {
  const waiters = new Map<string, Waiter>();

  return {
    add(sessionId, id, signal) {
      const key = buildWaiterKey(sessionId, id);
      const { promise, resolve, reject } = createDeferred();
      const giveUp = (details: string) => reject(new GatewayError('client_silent', { details }));
      const giveUpOnAbort = () =>
        giveUp('The client disconnected or cancelled before it answered.');
      const cancelTimeout = clock.after(ANSWER_TIMEOUT_MS, () =>
        giveUp(`The client did not answer within ${ANSWER_TIMEOUT_MS / 1000} s.`),
      );
      waiters.set(key, {
        giveUp,
        receive: resolve,
      });
      if (signal.aborted) giveUpOnAbort();
      else signal.addEventListener('abort', giveUpOnAbort);
      return {
        answer: promise,
        giveUp,
        forget() {
          cancelTimeout();
          signal.removeEventListener('abort', giveUpOnAbort);
          waiters.delete(key);
        },
      };
    },

    receiveAnswer(sessionId, id, answer) {
      const waiter = waiters.get(buildWaiterKey(sessionId, id));
      waiter?.receive(answer);
      return waiter !== undefined;
    },

    giveUpAll(details) {
      for (const { giveUp } of waiters.values()) giveUp(details);
    },
  };
}

const buildWaiterKey = (sessionId: string, id: string): string => `${sessionId} ${id}`;

function createDeferred() {
  let resolve: (value: ClientAnswer) => void = () => {};
  let reject: (reason: unknown) => void = () => {};
  const promise = new Promise<ClientAnswer>((settle, refuse) => {
    resolve = settle;
    reject = refuse;
  });
  return { promise, resolve, reject };
}
