// Of many that ask the same at the same moment one does the work, on whatever replica. The others get
// its outcome, and so do those who ask again within a few seconds.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import { type Clock, pause } from '../../platform/clock.ts';
import { generateSecret } from '../../platform/ids.ts';
import { hashSha256 } from '../../platform/sha256.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import { type FlightOutcome, type FlightRecords, LOCK_SECONDS } from './flight-records.ts';

export type RunOnce<Result> = (
  /** A secret of the asker. */
  name: string,
  work: () => Promise<Result>,
  /** Whether a result is worth keeping: the next one may do better than a passing failure. */
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
  /** Of this process: of many that wait for the same, one asks the store how far it is. */
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
