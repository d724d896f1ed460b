// §8.4: counting fails open. What the store does not count passes, and the log says so once.

import type { LimitGroup } from '../../config/groups/limits.ts';
import { createBoundedMap, createExpiringMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { Admission, Verdict, Windows } from '../../store/store.ts';

/** As `admitRequest` of the store; never rejects. */
type AdmitInStore = Windows['admitRequest'];

/** With a node of a cluster down some windows fail and some do not: one line, not one each time. */
const RECOVERED_MS = 2000;

export function createAdmitInStore(store: Windows, clock: Clock, log: Log): AdmitInStore {
  const reportOutage = createOutageReport(clock, log);

  return async function admitInStore(windows, access, grantKey) {
    try {
      const admission = await store.admitRequest(windows, access, grantKey);
      reportOutage(admission.limitFailure);
      return admission;
    } catch (failure) {
      reportOutage(failure);
      return toFailedAdmission(failure);
    }
  };
}

/** Nothing is counted. The failure is told to calls that need their session, or their caller's grant. */
export const toFailedAdmission = (failure: unknown): Admission => ({
  verdict: undefined,
  entry: undefined,
  session: { failure },
  grant: { failure },
});

/** Says once in the log that limits are not enforced, and once that they are again. */
function createOutageReport(clock: Clock, log: Log) {
  let isFailing = false;
  let failedAt = Number.NEGATIVE_INFINITY;

  return function reportOutage(failure: unknown): void {
    if (failure !== undefined) {
      failedAt = clock.monotonic();
      if (isFailing) return;
      isFailing = true;
      log.error(
        'Rate limits are not enforced: the store does not answer. Requests pass until it does.',
        { cause: failure },
      );
    } else if (isFailing && clock.monotonic() - failedAt > RECOVERED_MS) {
      isFailing = false;
      log.info('Rate limits are enforced again: the store answers.');
    }
  };
}

// A refusal by address or user is remembered until its reset time (§11). Entries of a window
// only age, so it stays true, and a flood costs no look at tokens, bodies or the store.

interface RememberedRefusals {
  /** The refusal of this window as it is now; undefined when the window may admit again. */
  find(key: string): Verdict | undefined;
  remember(key: string, refusal: Verdict, about: RefusedBy): void;
  /** The window has room again before its time. */
  forget(key: string): void;
  /** Those that hold now. */
  list(): readonly CurrentRefusal[];
}

/** Which limit refuses whom. */
interface RefusedBy {
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
  const byKey = createBoundedMap<string, Remembered>(MAX_REFUSALS);

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
    remember: (key, refusal, about) =>
      void byKey.set(key, { ...about, refusal, until: clock.monotonic() + refusal.resetInMs }),
  };
}

// §8: others may stand behind an address that is refused, and a login may ask for what costs nothing. A few requests are
// still looked up, and then no more: a flood costs no look at the store.

interface SpareLookups {
  /** Whether there is one left of this window until its refusal ends. */
  take(key: string, resetInMs: number): boolean;
}

const MAX_LOOKUPS = 30;
/** A bound for the memory that made-up addresses can take. */
const MAX_WINDOWS = 10_000;

export function createSpareLookups(clock: Clock): SpareLookups {
  const byKey = createExpiringMap<{ taken: number }>(MAX_WINDOWS, clock.monotonic);

  return {
    take(key, resetInMs) {
      const current = byKey.get(key);
      if (current !== undefined) {
        current.taken += 1;
        return current.taken <= MAX_LOOKUPS;
      }
      byKey.set(key, { taken: 1 }, clock.monotonic() + resetInMs);
      return true;
    },
  };
}
