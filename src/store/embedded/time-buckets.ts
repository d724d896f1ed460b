// Times of touched sessions, 24 bytes each: a million of them must neither burden the garbage
// collector nor cost a page of the disk each. They lie in buckets, and what was touched lately in a log.
import { Buffer } from 'node:buffer';
import type { Database, RootDatabase } from 'lmdb';
import { findNextPlace, type PageRequest, type TimedEntry } from '../page.ts';
import { checkRecordVersion, RECORD_VERSION } from '../records.ts';

/** Entries in a row: the session's key, its last access, its expiry. */
export interface TimeBucket {
  readonly id: number;
  values: Float64Array;
  /** Numbers in use. */
  length: number;
  /** True if memory and disk differ. */
  isChanged: boolean;
  /** The number of the commit that would have had to write it. */
  changedIn: number;
}

/** The place of a session's times, if it was touched. */
export interface TimesPlace {
  readonly bucket: TimeBucket;
  readonly key: number;
  /** The place where they were found last: entries move. */
  at: number;
  /** The number of the commit for which it is noted that they have changed. */
  touchedIn: number;
}

const ENTRY_LENGTH = 3;
const LAST_ACCESSED_AT = 1;
const EXPIRES_AT = 2;
const BYTES = Float64Array.BYTES_PER_ELEMENT;

/** With what was on disk, if anything. */
export function createTimeBucket(id: number, bytes: Uint8Array | undefined): TimeBucket {
  const entries = bytes === undefined ? 0 : Math.floor(bytes.length / (ENTRY_LENGTH * BYTES));
  const length = entries * ENTRY_LENGTH;
  const values = new Float64Array(length + ENTRY_LENGTH);
  if (bytes) new Uint8Array(values.buffer).set(bytes.subarray(0, length * BYTES));
  return { id, values, length, isChanged: false, changedIn: 0 };
}

/**
 * As it goes to disk. Empty when no entry is left. A copy: most buckets have an entry or two, and V8 makes a buffer of its own,
 * of a quarter of a kilobyte, for an array that short only when it is asked for that.
 */
export const toBytes = ({ values, length }: TimeBucket): Buffer =>
  Buffer.from(values.slice(0, length).buffer);

/** Epoch milliseconds, or undefined when the session has no entry. */
export function readLastAccess(place: TimesPlace): number | undefined {
  return hasEntry(place) ? place.bucket.values[place.at + LAST_ACCESSED_AT] : undefined;
}

export function readTouchedExpiry(place: TimesPlace): number | undefined {
  return hasEntry(place) ? place.bucket.values[place.at + EXPIRES_AT] : undefined;
}

export function setTimes(place: TimesPlace, lastAccessedAt: number, expiresAt: number): void {
  const { bucket } = place;
  if (!hasEntry(place)) {
    if (bucket.length === bucket.values.length) {
      const entries = Math.ceil(1.5 * (bucket.length / ENTRY_LENGTH));
      const grown = new Float64Array(entries * ENTRY_LENGTH);
      grown.set(bucket.values);
      bucket.values = grown;
    }
    place.at = bucket.length;
    bucket.values[place.at] = place.key;
    bucket.length += ENTRY_LENGTH;
  }
  bucket.values[place.at + LAST_ACCESSED_AT] = lastAccessedAt;
  bucket.values[place.at + EXPIRES_AT] = expiresAt;
}

/** False when there is no entry. The last one takes its place. */
export function removeTimes(place: TimesPlace): boolean {
  if (!hasEntry(place)) return false;
  const { bucket } = place;
  bucket.length -= ENTRY_LENGTH;
  bucket.values.copyWithin(place.at, bucket.length, bucket.length + ENTRY_LENGTH);
  return true;
}

function hasEntry(place: TimesPlace) {
  const { bucket, key } = place;
  const { values, length } = bucket;
  if (place.at < length && values[place.at] === key) return true;
  for (let at = 0; at < length; at += ENTRY_LENGTH) {
    if (values[at] !== key) continue;
    place.at = at;
    return true;
  }
  return false;
}

// The log: what was touched in one second, in one record. Where more buckets have changed than a commit writes,
// the others follow in the next seconds; until then a restart finds their touches here.

export interface LoggedTouch {
  /** That of the session's entry in its bucket. */
  readonly key: number;
  readonly lastAccessedAt: number;
  readonly expiresAt: number;
}

/** Functions that write are to be called inside a transaction. */
export function openTouchLog(root: RootDatabase) {
  const records: Database<Buffer, number> = root.openDB({
    name: 'session-touches',
    encoding: 'binary',
  });

  return {
    put(sequence: number, touches: readonly LoggedTouch[]) {
      const values = new Float64Array(touches.length * ENTRY_LENGTH);
      let at = 0;
      for (const { key, lastAccessedAt, expiresAt } of touches) {
        values[at] = key;
        values[at + 1] = lastAccessedAt;
        values[at + 2] = expiresAt;
        at += ENTRY_LENGTH;
      }
      records.put(sequence, Buffer.from(values.buffer));
    },
    /** Touches of before are in their buckets by now. */
    removeBefore(sequence: number) {
      for (const key of [...records.getKeys({ end: sequence })]) records.remove(key);
    },
    /** All of them, the earliest first. */
    read: () =>
      [...records.getRange()].map(({ key, value }) => ({
        sequence: key,
        touches: readTouches(value),
      })),
  };
}

function readTouches(bytes: Buffer): readonly LoggedTouch[] {
  const values = new Float64Array(Math.floor(bytes.length / BYTES));
  new Uint8Array(values.buffer).set(bytes.subarray(0, values.byteLength));
  const touches: LoggedTouch[] = [];
  for (let at = 0; at + ENTRY_LENGTH <= values.length; at += ENTRY_LENGTH) {
    const [key = 0, lastAccessedAt = 0, expiresAt = 0] = values.subarray(at, at + ENTRY_LENGTH);
    touches.push({ key, lastAccessedAt, expiresAt });
  }
  return touches;
}

// Entries of lmdb by their time: records until it is over, and keys that have it in them, page by page.

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
export function readExpiry<Value>(database: Database<ExpiringRecord<Value>, string>, key: string) {
  try {
    const record = database.get(key);
    return record !== undefined && isWhole(record) ? record.expiresAt : 0;
  } catch {
    return 0;
  }
}

const isWhole = (record: ExpiringRecord<unknown>) => typeof record.expiresAt === 'number';

// Keys that end with a time and a name, the latest first.

/** A text before the time, if any, then the time, and the subject of the key. */
type TimedKey = (string | number)[];

/** Reads the keys that begin with `prefix`. */
export function readKeyPage<Key extends TimedKey>(
  database: Database<true, Key>,
  prefix: readonly string[],
  request: PageRequest,
) {
  const { from, limit } = request;
  const range = {
    reverse: true,
    start: [...prefix, from?.time ?? Number.MAX_VALUE, AFTER_ALL_NAMES],
    end: [...prefix, 0],
    offset: from?.skip ?? 0,
    limit,
  };
  const entries = [...database.getKeys(range)].map(
    (key): TimedEntry => ({ id: String(key.at(-1)), time: Number(key.at(-2)) }),
  );
  return { entries, next: findNextPlace(entries, request) };
}

const AFTER_ALL_NAMES = '\uffff';
