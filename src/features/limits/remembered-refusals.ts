// A refusal by address or user is remembered until its reset time (§11). Entries of a window
// only age, so it stays true, and a flood costs no look at tokens, bodies or the store.
import type { Clock } from '../../core/clock.ts';
import type { Verdict } from '../../core/store/store.ts';

export interface RememberedRefusals {
  /** The refusal of this window as it is now; undefined when the window may admit again. */
  find(key: string): Verdict | undefined;
  remember(key: string, refusal: Verdict): void;
  /** The window has room again before its time. */
  forget(key: string): void;
}

/** A bound for the memory that made-up addresses can take. */
const MAX_REFUSALS = 10_000;

export function createRememberedRefusals(clock: Clock): RememberedRefusals {
  const byKey = new Map<string, { readonly refusal: Verdict; readonly until: number }>();

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
    remember(key, refusal) {
      const [oldest] = byKey.keys();
      if (byKey.size >= MAX_REFUSALS && oldest !== undefined) byKey.delete(oldest);
      byKey.set(key, { refusal, until: clock.monotonic() + refusal.resetInMs });
    },
  };
}
