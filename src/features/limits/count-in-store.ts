// §8.4: counting fails open. What the store does not count passes, and the log says so once.
import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { LimitWindow, RequestCount, SessionLookup, Store } from '../../core/store/store.ts';

/** Counts in all windows or in none, and reads the session in the same step of the store. */
export type CountInStore = (
  windows: readonly LimitWindow[],
  sessionId?: string,
) => Promise<CountOutcome>;

/** What the store said of some windows; no verdict when it could not be asked. */
export interface CountOutcome extends Partial<Pick<RequestCount, 'verdict' | 'entry'>> {
  readonly session: SessionLookup;
}

/** With a node of a cluster down some windows fail and some do not: one line, not one each time. */
const RECOVERED_MS = 2000;

export function createCountInStore(store: Store, clock: Clock, log: Log): CountInStore {
  const reportOutage = createOutageReport(clock, log);

  return async function countInStore(windows, sessionId) {
    try {
      const counted = await store.countRequestAndReadSession(windows, sessionId);
      const { session, limitFailure, ...count } = counted;
      reportOutage(limitFailure);
      return { ...count, session: { record: session } };
    } catch (failure) {
      reportOutage(failure);
      return { session: { failure } };
    }
  };
}

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
