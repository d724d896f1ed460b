// A budget of memory for each user (§12).
import { createMemoryBudget, type MemoryBudget } from './memory-budget.ts';

/**
 * Keeps counting a user's complete body until every returned release function was called.
 */
export type HoldBody = () => () => void;

export interface UserBudgets {
  find(sub: string): MemoryBudget;
  /** To be called when something of the user counts no longer. */
  forgetIfEmpty(sub: string): void;
  /** How to count a body that has arrived, or will have when it is held. */
  createHold(sub: string, body: { readonly bytes: number }): HoldBody;
}

/** Budgets that may be kept while nothing counts against them. */
const MAX_EMPTY_BUDGETS = 1000;

export function createUserBudgets(maxBytes: number): UserBudgets {
  const bySub = new Map<string, MemoryBudget>();

  function find(sub: string): MemoryBudget {
    const known = bySub.get(sub);
    if (known !== undefined) return known;
    const budget = createMemoryBudget(maxBytes);
    bySub.set(sub, budget);
    return budget;
  }

  /** Budgets of returning users are kept. */
  function forgetIfEmpty(sub: string): void {
    if (bySub.size > MAX_EMPTY_BUDGETS && bySub.get(sub)?.isEmpty()) bySub.delete(sub);
  }

  return {
    find,
    forgetIfEmpty,
    createHold(sub, body) {
      let holders = 0;
      let releaseBytes = () => {};
      return function hold() {
        let isHeld = true;
        if (holders++ === 0) releaseBytes = find(sub).hold(body.bytes);
        return function release() {
          if (!isHeld) return;
          isHeld = false;
          if (--holders > 0) return;
          releaseBytes();
          forgetIfEmpty(sub);
        };
      };
    },
  };
}
