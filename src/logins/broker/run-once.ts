// Work that is done once for all replicas: one of many that ask for the same at the same moment does it. The others get its outcome, and
// so do those who ask again within a few seconds.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import { type Clock, pause } from '../../platform/clock.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import { buildOAuthKey } from '../../store/keys.ts';
import { readVersioned, type SealedStore, writeVersioned } from '../../store/records.ts';

/** Clients that lost an answer, or raced themselves, come again within this time. */
const RESULT_SECONDS = 10;
/** After a failure of unknown outcome: those who waited must not send the same again at once. */
const FAILURE_SECONDS = 2;
const POLL_MS = 50;

const NO_ANSWER = 'The identity provider could not be reached. Try again in a moment.';

export function createRunOnce<Result>(records: FlightRecords<Result>, clock: Clock) {
  /** For this process: one of many that wait for the same asks the store how far it is. */
  const running = createSingleFlight<string, Result>();

  /**
   * `name` is a secret of the asker. `isFinal` is true for a result that is worth keeping: the next one may do better than a passing
   * failure.
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

// Records by which replicas tell each other of work that is done once: who does it, and its outcome. Results are
// plain data, sealed while they lie in the store.

/** Longer than the work may take: a replica that holds the lock for longer has died. */
const LOCK_SECONDS = 30;

type FlightOutcome<Result> =
  | { readonly result: Result }
  | { readonly failed: true; readonly details?: string };

type FlightRecords<Result> = ReturnType<typeof createFlightRecords<Result>>;

/** Found by the hash of what is worked on. `lock` is a secret of the one that asks for it. */
export const createFlightRecords = <Result>({ store, seal }: SealedStore) => ({
  /** `locked`: the work is the asker's. Undefined: another one does it. Else it has been done. */
  async lockOrRead(
    hash: string,
    lock: string,
  ): Promise<'locked' | FlightOutcome<Result> | undefined> {
    const key = buildFlightKey(hash);
    const stored = await store.getOrSet(key, lock, LOCK_SECONDS);
    if (stored === lock) return 'locked';
    const text = seal.open(key, stored);
    // No secret opens the lock of another.
    return text === undefined ? undefined : readVersioned(text, 'The outcome of a refresh');
  },
  /**
   * In place of the lock, in one step. Whatever becomes of the store now, what was gained must reach
   * its asker; the lock then keeps others from sending the same once more.
   */
  async keepOutcome(hash: string, outcome: FlightOutcome<Result>, seconds: number) {
    const key = buildFlightKey(hash);
    await store.set(key, seal.seal(key, writeVersioned(outcome)), seconds).catch(() => {});
  },
  /** Like `keepOutcome`, but another replica's lock stays: a failure must not end its work. */
  async keepFailure(hash: string, lock: string, outcome: FlightOutcome<Result>, seconds: number) {
    const key = buildFlightKey(hash);
    const sealed = seal.seal(key, writeVersioned(outcome));
    await store.compareAndSet(key, lock, sealed, seconds).catch(() => {});
  },
  /** Only one's own lock: the work may have taken so long that another replica has begun. */
  async release(hash: string, lock: string) {
    await store.compareAndDelete(buildFlightKey(hash), lock).catch(() => {});
  },
});

/** The lock of the replica that does the work, and after it the outcome. */
const buildFlightKey = (hash: string) => buildOAuthKey('flight', hash);
