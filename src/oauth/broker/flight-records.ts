// What replicas tell each other of work that is done once: who does it, and its outcome. Results are
// plain data, sealed while they lie in the store.

import { buildOAuthKey } from '../../store/keys.ts';
import { checkRecordVersion, RECORD_VERSION } from '../../store/record-version.ts';
import type { RecordsDeps } from '../../store/seal/sealed-records.ts';

/** Longer than the work may take: a replica that holds the lock for longer has died. */
export const LOCK_SECONDS = 30;

export type FlightOutcome<Result> =
  | { readonly result: Result }
  | { readonly failed: true; readonly details?: string };

/** By the hash of what is worked on. `lock` is a secret of the one that asks for it. */
export interface FlightRecords<Result> {
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

export function createFlightRecords<Result>({ store, seal }: RecordsDeps): FlightRecords<Result> {
  return {
    async lockOrRead(hash, lock) {
      const earlier = store.get(buildEarlierKey(hash));
      // Whether it can be read matters to the holder of the lock alone.
      earlier.catch(() => {});
      const stored = await store.getOrSet(buildFlightKey(hash), lock, LOCK_SECONDS);
      if (stored !== lock) return openOutcome(buildFlightKey(hash), stored);
      try {
        const outcome = openOutcome(buildEarlierKey(hash), await earlier);
        if (outcome === undefined) return 'locked';
        await release(hash, lock);
        return outcome;
      } catch (error) {
        // Else everybody would wait for work that nobody does.
        await release(hash, lock);
        throw error;
      }
    },
    async keepOutcome(hash, outcome, seconds) {
      await keep([buildFlightKey(hash), buildEarlierKey(hash)], outcome, seconds).catch(() => {});
    },
    async keepFailure(hash, lock, outcome, seconds) {
      const key = buildFlightKey(hash);
      await Promise.all([
        store.compareAndSet(key, lock, sealOutcome(key, outcome), seconds),
        keep([buildEarlierKey(hash)], outcome, seconds),
      ]).catch(() => {});
    },
    release,
  };

  async function keep(
    keys: readonly string[],
    outcome: FlightOutcome<Result>,
    seconds: number,
  ): Promise<void> {
    await Promise.all(keys.map((key) => store.set(key, sealOutcome(key, outcome), seconds)));
  }

  function sealOutcome(key: string, outcome: FlightOutcome<Result>): string {
    return seal.seal(key, JSON.stringify({ ...outcome, version: RECORD_VERSION }));
  }

  async function release(hash: string, lock: string): Promise<void> {
    await store.compareAndDelete(buildFlightKey(hash), lock).catch(() => {});
  }

  /** Undefined for a lock, and for nothing. */
  function openOutcome(key: string, stored: string | undefined): FlightOutcome<Result> | undefined {
    const text = stored === undefined ? undefined : seal.open(key, stored);
    if (text === undefined) return undefined;
    const record = JSON.parse(text) as FlightOutcome<Result> & { readonly version?: number };
    checkRecordVersion(record.version, 'The outcome of a refresh');
    return record;
  }
}

/** The lock of the replica that does the work, and after it the outcome. */
const buildFlightKey = (hash: string): string => buildOAuthKey('flight', hash);

/** Where replicas of 0.1.0, which hold the same lock, keep and look for the outcome. */
const buildEarlierKey = (hash: string): string => buildOAuthKey('answer', hash);
