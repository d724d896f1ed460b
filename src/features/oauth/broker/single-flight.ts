// Of many that ask the same at the same moment one does the work, on whatever replica. The others get
// its outcome, and so do those who ask again within a few seconds.
import type { Clock } from '../../../core/clock.ts';
import { fail, GatewayError } from '../../../core/errors/gateway-error.ts';
import { generateSecret } from '../../../core/ids.ts';
import type { RecordsDeps } from '../../../core/seal/sealed-records.ts';
import { hashSha256 } from '../../../core/sha256.ts';
import { oauthKey } from '../../../core/store/keys.ts';
import { checkRecordVersion, RECORD_VERSION } from '../../../core/store/record-version.ts';

export type SingleFlight<Result> = (
  /** A secret of the asker. */
  name: string,
  work: () => Promise<Result>,
  /** Whether a result is worth keeping: the next one may do better than a passing failure. */
  isFinal: (result: Result) => boolean,
) => Promise<Result>;

/** Longer than the work may take: a replica that holds the lock for longer has died. */
const LOCK_SECONDS = 30;
/** Clients that lost an answer, or raced themselves, come again within this time. */
const RESULT_SECONDS = 10;
/** After a failure of unknown outcome: those who waited must not send the same again at once. */
const FAILURE_SECONDS = 2;
const POLL_MS = 50;

const NO_ANSWER = 'The identity provider could not be reached. Try again in a moment.';

type Outcome<Result> =
  | { readonly result: Result }
  | { readonly failed: true; readonly details?: string };

/** Results are plain data, sealed while they lie in the store. */
export function createSingleFlight<Result>(
  { store, seal }: RecordsDeps,
  clock: Clock,
): SingleFlight<Result> {
  const pause = () => new Promise<void>((resolve) => void clock.after(POLL_MS, resolve));
  /** Of this process: of many that wait for the same, one asks the store how far it is. */
  const running = new Map<string, Promise<Result>>();

  return function runOnce(name, work, isFinal) {
    const hash = hashSha256(name);
    const known = running.get(hash);
    if (known !== undefined) return known;
    const started = runOnOneReplica(hash, work, isFinal).finally(() => running.delete(hash));
    running.set(hash, started);
    return started;
  };

  async function runOnOneReplica(
    hash: string,
    work: () => Promise<Result>,
    isFinal: (result: Result) => boolean,
  ): Promise<Result> {
    const lock = generateSecret();
    const deadline = clock.monotonic() + LOCK_SECONDS * 1000;
    while (clock.monotonic() < deadline) {
      const [stored, earlier] = await Promise.all([
        store.getOrSet(flightKey(hash), lock, LOCK_SECONDS),
        store.get(earlierKey(hash)),
      ]);
      const isMine = stored === lock;
      const outcome = isMine
        ? openOutcome(earlierKey(hash), earlier)
        : openOutcome(flightKey(hash), stored);
      if (outcome === undefined && isMine) return runAndStore(hash, lock, work, isFinal);
      if (outcome !== undefined) {
        if (isMine) await release(hash, lock);
        return readResult(outcome);
      }
      await pause();
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
      await (isFinal(result) ? keep(hash, { result }, RESULT_SECONDS) : release(hash, lock));
      return result;
    } catch (error) {
      const details = error instanceof GatewayError ? { details: error.message } : {};
      await keep(hash, { failed: true, ...details }, FAILURE_SECONDS);
      throw error;
    }
  }

  /**
   * In place of the lock, in one step. Whatever becomes of the store now, what was gained must reach
   * its asker; the lock then keeps others from sending the same once more.
   */
  async function keep(hash: string, outcome: Outcome<Result>, seconds: number): Promise<void> {
    const text = JSON.stringify({ ...outcome, version: RECORD_VERSION });
    const keys = [flightKey(hash), earlierKey(hash)];
    await Promise.all(keys.map((key) => store.set(key, seal.seal(key, text), seconds))).catch(
      () => {},
    );
  }

  /** Only one's own lock: the work may have taken so long that another replica has begun. */
  async function release(hash: string, lock: string): Promise<void> {
    const key = flightKey(hash);
    const stored = await store.get(key).catch(() => undefined);
    if (stored === lock) await store.delete(key).catch(() => {});
  }

  /** Undefined for a lock, and for nothing. */
  function openOutcome(key: string, stored: string | undefined): Outcome<Result> | undefined {
    const text = stored === undefined ? undefined : seal.open(key, stored);
    if (text === undefined) return undefined;
    const record = JSON.parse(text) as Outcome<Result> & { readonly version?: number };
    checkRecordVersion(record.version, 'The outcome of a refresh');
    return record;
  }
}

/** The lock of the replica that does the work, and after it the outcome. */
const flightKey = (hash: string): string => oauthKey('flight', hash);

/** Where replicas of 0.1.0, which hold the same lock, keep and look for the outcome. */
const earlierKey = (hash: string): string => oauthKey('answer', hash);

const readResult = <Result>(outcome: Outcome<Result>): Result =>
  'failed' in outcome
    ? fail('upstream_failed', { details: outcome.details ?? NO_ANSWER })
    : outcome.result;
