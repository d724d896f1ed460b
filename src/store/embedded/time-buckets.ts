// Times of touched sessions, 24 bytes each: a million of them must neither burden the garbage
// collector nor cost a page of the disk each.
import { Buffer } from 'node:buffer';

/** Entries in a row: the session's key, its last access, its expiry. */
export interface TimeBucket {
  readonly id: number;
  values: Float64Array;
  /** Numbers in use. */
  length: number;
  /** Whether memory and disk differ. */
  isChanged: boolean;
  /** The number of the commit that would have had to write it. */
  changedIn: number;
}

/** Where the times of a session are, if it was touched. */
export interface TimesPlace {
  readonly bucket: TimeBucket;
  readonly key: number;
  /** Where they were found last: entries move. */
  at: number;
  /** The number of the commit for which it is noted that they have changed. */
  touchedIn: number;
}

export const createPlace = (bucket: TimeBucket, key: number): TimesPlace => ({
  bucket,
  key,
  at: 0,
  touchedIn: -1,
});

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

/** As it goes to disk: a view, not a copy. Empty when no entry is left. */
export const toBytes = ({ values, length }: TimeBucket): Buffer =>
  Buffer.from(values.buffer, 0, length * BYTES);

/** Epoch milliseconds, or undefined when the session has no entry. */
export function readLastAccess(place: TimesPlace): number | undefined {
  return hasEntry(place) ? place.bucket.values[place.at + LAST_ACCESSED_AT] : undefined;
}

export function readExpiry(place: TimesPlace): number | undefined {
  return hasEntry(place) ? place.bucket.values[place.at + EXPIRES_AT] : undefined;
}

export function setTimes(place: TimesPlace, lastAccessedAt: number, expiresAt: number): void {
  const { bucket } = place;
  if (!hasEntry(place)) {
    if (bucket.length === bucket.values.length) grow(bucket);
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

function hasEntry(place: TimesPlace): boolean {
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

function grow(bucket: TimeBucket): void {
  const entries = bucket.values.length / ENTRY_LENGTH;
  const values = new Float64Array(Math.ceil(1.5 * entries) * ENTRY_LENGTH);
  values.set(bucket.values);
  bucket.values = values;
}
