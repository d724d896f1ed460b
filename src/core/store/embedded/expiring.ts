// What lies in lmdb until its time is over.
import type { Database } from 'lmdb';
import { checkRecordVersion, RECORD_VERSION } from '../record-version.ts';

/** A value with the time (epoch milliseconds) at which it is gone. */
export interface Expiring<Value> {
  readonly value: Value;
  readonly expiresAt: number;
  /** None in what 0.1.0 wrote. */
  readonly version?: number;
}

export const expiring = <Value>(value: Value, expiresAt: number): Expiring<Value> => ({
  value,
  expiresAt,
  version: RECORD_VERSION,
});

/**
 * The value, or undefined when it is absent or its time is over.
 *
 * @throws Error when the record is damaged, or of a later version: that is not the same as absent.
 */
export function readLive<Value>(
  from: Database<Expiring<Value>, string>,
  key: string,
  now: number,
): Value | undefined {
  const entry = from.get(key);
  if (entry === undefined) return undefined;
  if (!isWhole(entry)) throw new Error('A record in DATA_DIR is damaged');
  checkRecordVersion(entry.version, 'A record in DATA_DIR');
  return entry.expiresAt > now ? entry.value : undefined;
}

/** The time at which a record is gone; a damaged one, which nobody can use, is gone at 0. */
export function expiryOf<Value>(from: Database<Expiring<Value>, string>, key: string): number {
  try {
    const entry = from.get(key);
    return entry !== undefined && isWhole(entry) ? entry.expiresAt : 0;
  } catch {
    return 0;
  }
}

const isWhole = (entry: Expiring<unknown>): boolean => typeof entry.expiresAt === 'number';
