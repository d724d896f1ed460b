// §26.4: the work of a built-in guard. What is long is done in turns of the event loop, so that it holds nobody up.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { GuardTurn } from '../ask-guard.ts';
import { createGuardLine, GuardFailure } from '../ask-guard.ts';

/** Its steps say how many characters they looked at. */
export type Steps<Result> = Generator<number, Result, void>;

/** As many characters take as long as one value, or one look at a short text. */
export const A_VALUE = 64;

export type RunWork = <Result>(work: Steps<Result>, asker: GuardTurn) => Result | Promise<Result>;

/** Characters that are looked at before the answer, and in each turn after that. */
const AT_ONCE = 262_144;
const IN_A_TURN = 65_536;
/** Long ones at the same time, of one user and of all: they take turns. */
const LONG = { ofOne: 1, ofAll: 4 };

/** @throws TooMuchForGuard as a guard's line does. */
export function createRunWork(): RunWork {
  const line = createGuardLine(LONG);
  let turn = Promise.resolve();

  /** One step of one work in each turn, however many there are. */
  function waitForTurn(): Promise<void> {
    turn = turn.then(() => nextTurn());
    return turn;
  }

  async function finish<Result>(work: Steps<Result>, signal: GuardTurn['signal']): Promise<Result> {
    for (;;) {
      await waitForTurn();
      if (signal?.aborted) throw new GuardFailure('nobody waits for it any more');
      const end = runSome(work, IN_A_TURN);
      if (end !== undefined) return end.value;
    }
  }

  return function runWork(work, { signal, user }) {
    const end = runSome(work, AT_ONCE);
    return end === undefined ? line.run(() => finish(work, signal), user, signal) : end.value;
  };
}

/** Undefined where there is more to do after so many characters. */
function runSome<Result>(
  work: Steps<Result>,
  characters: number,
): { readonly value: Result } | undefined {
  for (let left = characters; left > 0; ) {
    const step = work.next();
    if (step.done) return step;
    left -= step.value;
  }
  return undefined;
}
