// Long work of one caller gives way to everybody else's: it is done in turns of the event loop.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from './clock.ts';

export interface Turns {
  /** Whether it is time to await `next`: asked after each small piece of the work. */
  isOver(): boolean;
  /** Resolves once others had their turn. */
  next(): Promise<void>;
}

/** Milliseconds: so long somebody else waits for one who has much to do. */
const TURN_MS = 5;

export function createTurns(clock: Clock): Turns {
  let endsAt = clock.monotonic() + TURN_MS;

  return {
    isOver: () => clock.monotonic() >= endsAt,
    async next() {
      await nextTurn();
      endsAt = clock.monotonic() + TURN_MS;
    },
  };
}
