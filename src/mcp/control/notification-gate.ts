// §26: progress and log messages of a call, where guards look at them: in their order, and before the answer.

import { isObject } from '../../platform/json.ts';
import type { Guard, GuardCaller } from '../../policy/guards/guards.ts';

export interface GuardedNotification {
  readonly method: string;
  readonly params: object;
}

export interface NotificationGate {
  /** Passes it on once the guard has. */
  send(message: GuardedNotification): void;
  /** Resolves once all that came before was passed on, or not. */
  flush(): Promise<void>;
}

/** That wait for the guard; more are dropped, as for a client that reads too slowly. */
const MAX_WAITING = 100;

export function createNotificationGate(
  guard: Guard,
  caller: GuardCaller | undefined,
  pass: (message: GuardedNotification) => void,
): NotificationGate {
  let tail: Promise<void> = Promise.resolve();
  let waiting = 0;

  async function judge(message: GuardedNotification): Promise<void> {
    const { method } = message;
    const verdict = await guard.judge({
      value: message,
      caller,
      findProblem: (changed) =>
        isObject(changed) && changed.method === method && isObject(changed.params)
          ? undefined
          : 'it must have the same method, and params',
    });
    waiting -= 1;
    if (verdict.kind === 'passed') pass(message);
    if (verdict.kind !== 'changed' || !isObject(verdict.value)) return;
    const { params } = verdict.value;
    if (isObject(params)) pass({ method, params });
  }

  return {
    send(message) {
      if (waiting >= MAX_WAITING) return;
      waiting += 1;
      tail = tail.then(() => judge(message));
    },
    flush: () => tail,
  };
}
