// Stores times: those of touched sessions in buckets and a log, and records and keys with an expiry. Touched times take 24 bytes
// each: a million of them must neither burden the garbage collector nor cost a page of the disk each.
import { Buffer } from 'node:buffer';
import type { Database, RootDatabase } from 'lmdb';
import { findNextPlace, type PageRequest, type StoredPage, type TimedEntry } from '../page.ts';
import { checkRecordVersion, RECORD_VERSION } from '../records.ts';

/** Consecutive entries. */
export interface TimeBucket {
  readonly id: number;
  values: Float64Array;
  /** Numbers in use. */
  length: number;
  /** True if memory and disk differ. */
  isChanged: boolean;
  /** The number of the first commit that has not written the change yet. */
  changedIn: number;
}

/** The place of a session's times, if it was touched. */
export interface TimesPlace {
  readonly bucket: TimeBucket;
  readonly key: number;
  /** The last known place: entries move. */
  at: number;
  /** The number of the commit that the change is noted for. */
  touchedIn: number;
}

/** Numbers of an entry: the session's key, its last access, its expiry. */
export const ENTRY_LENGTH = 3;
const LAST_ACCESSED_AT = 1;
const EXPIRES_AT = 2;
const BYTES = Float64Array.BYTES_PER_ELEMENT;
const NO_BYTES = new Uint8Array();

/** Creates a bucket from its bytes on disk, if there are any. */
export function createTimeBucket(id: number, bytes: Uint8Array | undefined): TimeBucket {
  const values = readEntries(bytes ?? NO_BYTES, ENTRY_LENGTH);
  const length = values.length - ENTRY_LENGTH;
  return { id, values, length, isChanged: false, changedIn: 0 };
}

/**
 * Encodes a bucket; empty if no entry is left. A copy: most buckets have an entry or two, and V8 allocates a separate buffer, of
 * a quarter of a kilobyte, for such a short array on the first access to it.
 */
export const toBytes = ({ values, length }: TimeBucket): Buffer =>
  Buffer.from(values.slice(0, length).buffer);

/** Epoch milliseconds; undefined if the session has no entry. */
export function readLastAccess(place: TimesPlace): number | undefined {
  return hasEntry(place) ? place.bucket.values[place.at + LAST_ACCESSED_AT] : undefined;
}

/** Epoch milliseconds; `otherwise` if the session has no entry. */
export function readTouchedExpiry(place: TimesPlace, otherwise: number): number {
  return hasEntry(place) ? (place.bucket.values[place.at + EXPIRES_AT] ?? otherwise) : otherwise;
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

/** Removes an entry; the last one takes its place. Returns false if there is none. */
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

// The log: all touches of one second in one record. If more buckets have changed than a commit writes, the others follow in the
// next seconds; until then a restart finds their touches here.

/** Call functions that write inside a transaction. */
export function openTouchLog(root: RootDatabase) {
  const records: Database<Buffer, number> = root.openDB({
    name: 'session-touches',
    encoding: 'binary',
  });

  return {
    /** Touches are entries as in a bucket. */
    put(sequence: number, touches: readonly number[]) {
      records.put(sequence, Buffer.from(Float64Array.from(touches).buffer));
    },
    /** Removes older touches, which are in their buckets by now. */
    removeBefore(sequence: number) {
      for (const key of [...records.getKeys({ end: sequence })]) records.remove(key);
    },
    /** Reads all records, the earliest first. */
    read: () =>
      [...records.getRange()].map(({ key, value }) => ({
        sequence: key,
        touches: readEntries(value, 0),
      })),
  };
}

/** Reads whole entries, and leaves room for more. */
function readEntries(bytes: Uint8Array, room: number) {
  const length = Math.floor(bytes.length / (ENTRY_LENGTH * BYTES)) * ENTRY_LENGTH;
  const values = new Float64Array(length + room);
  new Uint8Array(values.buffer).set(bytes.subarray(0, length * BYTES));
  return values;
}

// lmdb entries with times: records with an expiry, and keys with a time in them, read page by page.

export interface ExpiringRecord<Value> {
  readonly value: Value;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  readonly version: number;
}

export const writeExpiring = <Value>(value: Value, expiresAt: number): ExpiringRecord<Value> => ({
  value,
  expiresAt,
  version: RECORD_VERSION,
});

/**
 * Reads a record, which may have expired; undefined if it is absent.
 *
 * @throws Error if the record is damaged, or of a later version: that is not the same as absent.
 */
export function readExpiring<Value>(
  database: Database<ExpiringRecord<Value>, string>,
  key: string,
): ExpiringRecord<Value> | undefined {
  const record = database.get(key);
  if (record === undefined) return undefined;
  if (typeof record.expiresAt !== 'number') throw new Error('A record in DATA_DIR is damaged');
  if (record.version !== RECORD_VERSION) checkRecordVersion(record.version, 'A record in DATA_DIR');
  return record;
}

/** Reads the expiry of a record; 0 for an absent or damaged one. */
export function readExpiry<Value>(database: Database<ExpiringRecord<Value>, string>, key: string) {
  try {
    const record = database.get(key);
    return typeof record?.expiresAt === 'number' ? record.expiresAt : 0;
  } catch {
    return 0;
  }
}

// Keys that end with a time and a name, the latest first.

/** A prefix, if any, then the time and the subject of the key. */
type TimedKey = (string | number)[];

/** Reads a page of the keys that begin with `prefix`. */
export function readKeyPage<Key extends TimedKey>(
  database: Database<true, Key>,
  prefix: readonly string[],
  request: PageRequest,
): StoredPage<TimedEntry> {
  const { from, limit } = request;
  const range = {
    reverse: true,
    start: [...prefix, from?.time ?? Number.MAX_VALUE, AFTER_ALL_NAMES],
    end: [...prefix, 0],
    offset: from?.skip ?? 0,
    limit,
  };
  const items = [...database.getKeys(range)].map((key) => ({
    id: String(key.at(-1)),
    time: Number(key.at(-2)),
  }));
  return { items, next: findNextPlace(items, request) };
}

const AFTER_ALL_NAMES = '\uffff';
