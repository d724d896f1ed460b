// A user who has too many sessions keeps the newest (§12).
import type { SessionIndex } from './session-index.ts';

export interface EndOldestDeps {
  readonly index: SessionIndex;
  /** When the session is gone, as its record says; 0 where there is none. */
  readExpiry(id: string): number;
  /** Removes the session, and its index entry. */
  remove(id: string, owner: string): void;
}

export interface SessionExcess {
  readonly owner: string;
  /** Never ended. */
  readonly newId: string;
  /** How many sessions the owner may have. */
  readonly max: number;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** Ends those that expire first, and returns their ids. */
export type EndOldest = (excess: SessionExcess) => readonly string[];

const MAX_BATCH = 500;

/** To be called inside a transaction. Times of the index are corrected on the way. */
export const createEndOldest = ({ index, readExpiry, remove }: EndOldestDeps): EndOldest =>
  function endOldest({ owner, newId, max, now }) {
    const ended: string[] = [];
    let excess = index.countUserSessions(owner) - max;
    for (let size = 2; excess > 0; size = Math.min(2 * size, MAX_BATCH)) {
      const first = index.listFirstOfUser(owner, size).filter(({ id }) => id !== newId);
      if (first.length === 0) break;
      let hasMoved = false;
      for (const { id, dueAt } of first) {
        const expiresAt = readExpiry(id);
        if (expiresAt > dueAt) {
          index.put(id, expiresAt, owner);
          hasMoved = true;
        } else if (!hasMoved && excess > 0) {
          excess -= 1;
          if (expiresAt > now) {
            remove(id, owner);
            ended.push(id);
          } else {
            // It stays in the index until somebody counts it as expired.
            index.remove(id, owner);
            index.put(id, dueAt, undefined);
          }
        }
      }
    }
    return ended;
  };
