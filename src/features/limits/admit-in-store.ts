// §8.4: counting fails open. What the store does not count passes, and the log says so once.
import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { Admission, Store } from '../../core/store/store.ts';

/** As `admitRequest` of the store; never rejects. */
export type AdmitInStore = Store['admitRequest'];

/** With a node of a cluster down some windows fail and some do not: one line, not one each time. */
const RECOVERED_MS = 2000;

export function createAdmitInStore(store: Store, clock: Clock, log: Log): AdmitInStore {
  const reportOutage = createOutageReport(clock, log);

  return async function admitInStore(windows, access) {
    try {
      const admission = await store.admitRequest(windows, access);
      reportOutage(admission.limitFailure);
      return admission;
    } catch (failure) {
      reportOutage(failure);
      return toFailedAdmission(failure);
    }
  };
}

/** Nothing is counted; whoever needs the session hears why there is none. */
export const toFailedAdmission = (failure: unknown): Admission => ({
  verdict: undefined,
  entry: undefined,
  session: { failure },
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
