// Single flight across all replicas: one of many simultaneous callers does the work. The others get its outcome, and so do those who ask
// again within a few seconds.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import { type Clock, pause } from '../../platform/clock.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import { buildOAuthKey } from '../../store/keys.ts';
import { readVersioned, type SealedStore, writeVersioned } from '../../store/records.ts';

/** Clients that lost a response, or raced themselves, retry within this time. */
const RESULT_SECONDS = 10;
/** After a failure of unknown outcome: waiting callers must not send the same request at once. */
const FAILURE_SECONDS = 2;
const POLL_MS = 50;

const NO_ANSWER = 'The identity provider could not be reached. Try again in a moment.';

export function createRunOnce<Result>(records: FlightRecords<Result>, clock: Clock) {
  /** Single flight within this process: one of the waiting callers polls the store. */
  const running = createSingleFlight<string, Result>();

  /**
   * `name` is a secret of the caller. `isFinal` is true for a result that is worth keeping: after a temporary failure, the next caller
   * tries again.
   */
  return function runOnce(
    name: string,
    work: () => Promise<Result>,
    isFinal: (result: Result) => boolean,
  ): Promise<Result> {
    const hash = hashSha256(name);
    return running.run(hash, async () => {
      const lock = generateSecret();
      const deadline = clock.monotonic() + LOCK_SECONDS * 1000;
      while (clock.monotonic() < deadline) {
        const found = await records.lockOrRead(hash, lock);
        if (found === 'locked') return runAndStore(hash, lock, work, isFinal);
        if (found && 'result' in found) return found.result;
        if (found) return fail('upstream_failed', { details: found.details ?? NO_ANSWER });
        await pause(clock, POLL_MS);
      }
      return fail('upstream_failed', {
        details: 'Another refresh of this token has not finished. Try again in a moment.',
      });
    });
  };

  async function runAndStore(
    hash: string,
    lock: string,
    work: () => Promise<Result>,
    isFinal: (result: Result) => boolean,
  ) {
    try {
      const result = await work();
      await (isFinal(result)
        ? records.keepOutcome(hash, { result }, RESULT_SECONDS)
        : records.release(hash, lock));
      return result;
    } catch (error) {
      const details = error instanceof GatewayError ? { details: error.message } : {};
      await records.keepFailure(hash, lock, { failed: true, ...details }, FAILURE_SECONDS);
      throw error;
    }
  }
}

// Records by which replicas share work: the lock of the worker, then its outcome. Outcomes are plain data, and sealed in the store.

/** Exceeds the duration of the work: a replica that holds the lock longer has died. */
const LOCK_SECONDS = 30;

type FlightOutcome<Result> =
  | { readonly result: Result }
  | { readonly failed: true; readonly details?: string };

type FlightRecords<Result> = ReturnType<typeof createFlightRecords<Result>>;

/** Keyed by the hash of the work's name. `lock` is a secret of the caller. */
export const createFlightRecords = <Result>({ store, seal }: SealedStore) => ({
  /** `locked`: the caller does the work. Undefined: another one does it. Otherwise it is done. */
  async lockOrRead(
    hash: string,
    lock: string,
  ): Promise<'locked' | FlightOutcome<Result> | undefined> {
    const key = buildFlightKey(hash);
    const stored = await store.getOrSet(key, lock, LOCK_SECONDS);
    if (stored === lock) return 'locked';
    const text = seal.open(key, stored);
    // A lock is not sealed, so no secret opens it.
    return text === undefined ? undefined : readVersioned(text, 'The outcome of a refresh');
  },
  /**
   * Replaces the lock, in one step. A failing store must not lose the result for its caller; the lock then keeps others from repeating the
   * work.
   */
  async keepOutcome(hash: string, outcome: FlightOutcome<Result>, seconds: number) {
    const key = buildFlightKey(hash);
    await store.set(key, seal.seal(key, writeVersioned(outcome)), seconds).catch(() => {});
  },
  /** Like `keepOutcome`, but keeps another replica's lock: a failure must not end its work. */
  async keepFailure(hash: string, lock: string, outcome: FlightOutcome<Result>, seconds: number) {
    const key = buildFlightKey(hash);
    const sealed = seal.seal(key, writeVersioned(outcome));
    await store.compareAndSet(key, lock, sealed, seconds).catch(() => {});
  },
  /** Removes only its own lock: after a long time, another replica may have begun. */
  async release(hash: string, lock: string) {
    await store.compareAndDelete(buildFlightKey(hash), lock).catch(() => {});
  },
});

/** Holds the lock of the working replica, and then the outcome. */
const buildFlightKey = (hash: string) => buildOAuthKey('flight', hash);
