// One of many that ask the same at the same moment does the work, on whatever replica. The others get
// its outcome, and so do those who ask again within a few seconds.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import { type Clock, pause } from '../../platform/clock.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import { buildOAuthKey } from '../../store/keys.ts';
import type { SealedStore } from '../../store/records.ts';
import { readVersioned, writeVersioned } from '../../store/records.ts';

type RunOnce<Result> = (
  /** A secret of the asker. */
  name: string,
  work: () => Promise<Result>,
  /** True for a result that is worth keeping: the next one may do better than a passing failure. */
  isFinal: (result: Result) => boolean,
) => Promise<Result>;

/** Clients that lost an answer, or raced themselves, come again within this time. */
const RESULT_SECONDS = 10;
/** After a failure of unknown outcome: those who waited must not send the same again at once. */
const FAILURE_SECONDS = 2;
const POLL_MS = 50;

const NO_ANSWER = 'The identity provider could not be reached. Try again in a moment.';

export function createRunOnce<Result>(
  records: FlightRecords<Result>,
  clock: Clock,
): RunOnce<Result> {
  /** For this process: one of many that wait for the same asks the store how far it is. */
  const running = createSingleFlight<string, Result>();

  return function runOnce(name, work, isFinal) {
    const hash = hashSha256(name);
    return running.run(hash, () => runOnOneReplica(hash, work, isFinal));
  };

  async function runOnOneReplica(
    hash: string,
    work: () => Promise<Result>,
    isFinal: (result: Result) => boolean,
  ): Promise<Result> {
    const lock = generateSecret();
    const deadline = clock.monotonic() + LOCK_SECONDS * 1000;
    while (clock.monotonic() < deadline) {
      const found = await records.lockOrRead(hash, lock);
      if (found === 'locked') return runAndStore(hash, lock, work, isFinal);
      if (found !== undefined) return readResult(found);
      await pause(clock, POLL_MS);
    }
    return fail('upstream_failed', {
      details: 'Another refresh of this token has not finished. Try again in a moment.',
    });
  }

  async function runAndStore(
    hash: string,
    lock: string,
    work: () => Promise<Result>,
    isFinal: (result: Result) => boolean,
  ): Promise<Result> {
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

const readResult = <Result>(outcome: FlightOutcome<Result>): Result =>
  'failed' in outcome
    ? fail('upstream_failed', { details: outcome.details ?? NO_ANSWER })
    : outcome.result;

// Records by which replicas tell each other of work that is done once: who does it, and its outcome. Results are
// plain data, sealed while they lie in the store.

/** Longer than the work may take: a replica that holds the lock for longer has died. */
const LOCK_SECONDS = 30;

type FlightOutcome<Result> =
  | { readonly result: Result }
  | { readonly failed: true; readonly details?: string };

/** Found by the hash of what is worked on. `lock` is a secret of the one that asks for it. */
interface FlightRecords<Result> {
  /** `locked`: the work is the asker's. Undefined: another one does it. Else it has been done. */
  lockOrRead(hash: string, lock: string): Promise<'locked' | FlightOutcome<Result> | undefined>;
  /**
   * In place of the lock, in one step. Whatever becomes of the store now, what was gained must reach
   * its asker; the lock then keeps others from sending the same once more.
   */
  keepOutcome(hash: string, outcome: FlightOutcome<Result>, seconds: number): Promise<void>;
  /** Like `keepOutcome`, but another replica's lock stays: a failure must not end its work. */
  keepFailure(
    hash: string,
    lock: string,
    outcome: FlightOutcome<Result>,
    seconds: number,
  ): Promise<void>;
  /** Only one's own lock: the work may have taken so long that another replica has begun. */
  release(hash: string, lock: string): Promise<void>;
}

export function createFlightRecords<Result>({ store, seal }: SealedStore): FlightRecords<Result> {
  return {
    async lockOrRead(hash, lock) {
      const key = buildFlightKey(hash);
      const stored = await store.getOrSet(key, lock, LOCK_SECONDS);
      return stored === lock ? 'locked' : openOutcome(key, stored);
    },
    async keepOutcome(hash, outcome, seconds) {
      const key = buildFlightKey(hash);
      await store.set(key, sealOutcome(key, outcome), seconds).catch(() => {});
    },
    async keepFailure(hash, lock, outcome, seconds) {
      const key = buildFlightKey(hash);
      await store.compareAndSet(key, lock, sealOutcome(key, outcome), seconds).catch(() => {});
    },
    async release(hash, lock) {
      await store.compareAndDelete(buildFlightKey(hash), lock).catch(() => {});
    },
  };

  function sealOutcome(key: string, outcome: FlightOutcome<Result>): string {
    return seal.seal(key, writeVersioned(outcome));
  }

  /** Undefined for a lock. */
  function openOutcome(key: string, stored: string): FlightOutcome<Result> | undefined {
    const text = seal.open(key, stored);
    return text === undefined ? undefined : readVersioned(text, 'The outcome of a refresh');
  }
}

/** The lock of the replica that does the work, and after it the outcome. */
const buildFlightKey = (hash: string): string => buildOAuthKey('flight', hash);
