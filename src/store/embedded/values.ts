// Values by key in lmdb, each until its time is over.
import type { Database } from 'lmdb';
import type { Clock } from '../../platform/clock.ts';
import { isStringArray } from '../../platform/json.ts';
import type { Store } from '../store.ts';
import { createRecord, type ExpiringRecord, readExpiry, readRecord } from './expiring-records.ts';
import type { DataFolder } from './folder.ts';

export interface EmbeddedValuesOptions extends Omit<DataFolder, 'close'> {
  readonly clock: Clock;
}

export interface EmbeddedValues
  extends Pick<
    Store,
    'get' | 'set' | 'getOrSet' | 'getAndDelete' | 'delete' | 'addRecent' | 'readRecent'
  > {
  /** Deletes what has expired. */
  sweep(): Promise<void>;
  readonly records: ValueRecords;
}

/** For what writes values beside something else. */
export interface ValueRecords {
  /** The time at which a value is gone, though it may be over: epoch milliseconds; 0 where there is none. */
  readExpiry(key: string): number;
  read(key: string): string | undefined;
  /** To be called inside `write`. */
  put(key: string, value: string, expiresAt: number): void;
  /** To be called inside `write`. */
  remove(key: string): void;
}

/** Entries by the time they are due, so that a sweep reads only those. */
type DueKey = [dueAt: number, key: string];

/** A few milliseconds of work: requests come in between. */
const SWEEP_BATCH = 500;

export function createEmbeddedValues(options: EmbeddedValuesOptions): EmbeddedValues {
  const { root, clock, write, ensureOpen } = options;
  const values: Database<ExpiringRecord<string>, string> = root.openDB({ name: 'values' });
  const dueKeys: Database<true, DueKey> = root.openDB({ name: 'values-due' });

  function read(key: string): string | undefined {
    ensureOpen();
    const record = readRecord(values, key);
    return record !== undefined && record.expiresAt > clock.now() ? record.value : undefined;
  }

  const putFor = (key: string, value: string, ttlSeconds: number) =>
    put(key, value, clock.now() + ttlSeconds * 1000);

  function put(key: string, value: string, expiresAt: number): void {
    const expiredAtBefore = readExpiry(values, key);
    if (expiredAtBefore > 0) dueKeys.remove([expiredAtBefore, key]);
    values.put(key, createRecord(value, expiresAt));
    dueKeys.put([expiresAt, key], true);
  }

  function listDue(): readonly DueKey[] {
    ensureOpen();
    const end: DueKey = [clock.now() + 1, ''];
    return [...dueKeys.getKeys({ start: [0, ''], end, limit: SWEEP_BATCH })];
  }

  return {
    get: async (key) => read(key),
    set: (key, value, ttlSeconds) => write(() => putFor(key, value, ttlSeconds)),
    getOrSet: (key, value, ttlSeconds) =>
      write(() => {
        const stored = read(key);
        if (stored === undefined) putFor(key, value, ttlSeconds);
        return stored ?? value;
      }),
    getAndDelete: (key) =>
      write(() => {
        const value = read(key);
        values.remove(key);
        return value;
      }),
    delete: (key) => write(() => void values.remove(key)),
    addRecent: (key, value, { max, ttlSeconds }) =>
      write(() => {
        const recent = [value, ...parseRecent(read(key))].slice(0, max);
        putFor(key, JSON.stringify(recent), ttlSeconds);
      }),
    readRecent: async (key) => parseRecent(read(key)),
    async sweep() {
      for (let due = listDue(); due.length > 0; due = listDue()) {
        await write(() => {
          for (const dueKey of due) {
            dueKeys.remove(dueKey);
            const [, key] = dueKey;
            if (readExpiry(values, key) <= clock.now()) values.remove(key);
          }
        });
      }
    },
    records: {
      readExpiry: (key) => readExpiry(values, key),
      read,
      put,
      remove: (key) => void values.remove(key),
    },
  };
}

/** Of `addRecent`, which alone writes this key. */
function parseRecent(text: string | undefined): readonly string[] {
  const recent: unknown = text === undefined ? [] : JSON.parse(text);
  return isStringArray(recent) ? recent : [];
}
