// What lies in lmdb by its time: records until it is over, and keys that have it in them, page by page.
import type { Database } from 'lmdb';
import { findNextPlace, type PagePlace, type PageRequest, type TimedEntry } from '../page.ts';
import { checkRecordVersion, RECORD_VERSION } from '../records.ts';

export interface ExpiringRecord<Value> {
  readonly value: Value;
  /** Epoch milliseconds at which it is gone. */
  readonly expiresAt: number;
  readonly version: number;
}

export const writeExpiring = <Value>(value: Value, expiresAt: number): ExpiringRecord<Value> => ({
  value,
  expiresAt,
  version: RECORD_VERSION,
});

/**
 * The record, though its time may be over, or undefined when it is absent.
 *
 * @throws Error when the record is damaged, or of a later version: that is not the same as absent.
 */
export function readExpiring<Value>(
  database: Database<ExpiringRecord<Value>, string>,
  key: string,
): ExpiringRecord<Value> | undefined {
  const record = database.get(key);
  if (record === undefined) return undefined;
  if (!isWhole(record)) throw new Error('A record in DATA_DIR is damaged');
  checkRecordVersion(record.version, 'A record in DATA_DIR');
  return record;
}

/** The time at which a record is gone; a damaged one, which nobody can use, is gone at 0. */
export function readExpiry<Value>(
  database: Database<ExpiringRecord<Value>, string>,
  key: string,
): number {
  try {
    const record = database.get(key);
    return record !== undefined && isWhole(record) ? record.expiresAt : 0;
  } catch {
    return 0;
  }
}

const isWhole = (record: ExpiringRecord<unknown>): boolean => typeof record.expiresAt === 'number';

// Keys that end with a time and a name, the latest first.

/** What stands before the time, if anything, then the time, and what the key is of. */
type TimedKey = (string | number)[];

export interface KeyPage {
  readonly entries: readonly TimedEntry[];
  readonly next: PagePlace | undefined;
}

/** Of the keys that begin with `prefix`. */
export function readKeyPage<Key extends TimedKey>(
  database: Database<true, Key>,
  prefix: readonly string[],
  request: PageRequest,
): KeyPage {
  const { from, limit } = request;
  const range = {
    reverse: true,
    start: [...prefix, from?.time ?? Number.MAX_VALUE, AFTER_ALL_NAMES],
    end: [...prefix, 0],
    offset: from?.skip ?? 0,
    limit,
  };
  const entries = [...database.getKeys(range)].map((key) => ({
    id: String(key.at(-1)),
    time: Number(key.at(-2)),
  }));
  return { entries, next: findNextPlace(entries, request) };
}

const AFTER_ALL_NAMES = '\uffff';
