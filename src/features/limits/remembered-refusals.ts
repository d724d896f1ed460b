// A refusal by address or user is remembered until its reset time (§11). Entries of a window
// only age, so it stays true, and a flood costs no look at tokens, bodies or the store.
import type { Clock } from '../../core/clock.ts';
import type { LimitGroup } from '../../core/config/groups/limits.ts';
import type { Verdict } from '../../core/store/store.ts';

export interface RememberedRefusals {
  /** The refusal of this window as it is now; undefined when the window may admit again. */
  find(key: string): Verdict | undefined;
  remember(key: string, refusal: Verdict, about: RefusedBy): void;
  /** The window has room again before its time. */
  forget(key: string): void;
  /** Those that hold now. */
  list(): readonly CurrentRefusal[];
}

/** Which limit refuses whom. */
export interface RefusedBy {
  readonly group: LimitGroup;
  /** An address, or the `sub` of a user. */
  readonly caller: string;
}

export interface CurrentRefusal extends RefusedBy {
  readonly refusal: Verdict;
}

interface Remembered extends CurrentRefusal {
  /** Monotonic milliseconds. */
  readonly until: number;
}

/** A bound for the memory that made-up addresses can take. */
const MAX_REFUSALS = 10_000;

export function createRememberedRefusals(clock: Clock): RememberedRefusals {
  const byKey = new Map<string, Remembered>();

  return {
    find(key) {
      const remembered = byKey.get(key);
      if (remembered === undefined) return undefined;
      const resetInMs = remembered.until - clock.monotonic();
      if (resetInMs > 0) return { ...remembered.refusal, resetInMs };
      byKey.delete(key);
      return undefined;
    },
    forget: (key) => void byKey.delete(key),
    list: () =>
      [...byKey.values()].flatMap(({ until, ...remembered }) => {
        const resetInMs = until - clock.monotonic();
        const refusal = { ...remembered.refusal, resetInMs };
        return resetInMs > 0 ? [{ ...remembered, refusal }] : [];
      }),
    remember(key, refusal, about) {
      const [oldest] = byKey.keys();
      if (byKey.size >= MAX_REFUSALS && oldest !== undefined) byKey.delete(oldest);
      byKey.set(key, { ...about, refusal, until: clock.monotonic() + refusal.resetInMs });
    },
  };
}
