// Values by key in lmdb, each until its time is over.
import type { Database } from 'lmdb';
import type { Clock } from '../../clock.ts';
import type { Store } from '../store.ts';
import { createRecord, type ExpiringRecord, readExpiry, readRecord } from './expiring-records.ts';
import type { DataFolder } from './folder.ts';

export interface EmbeddedValuesOptions extends Omit<DataFolder, 'close'> {
  readonly clock: Clock;
}

export interface EmbeddedValues
  extends Pick<Store, 'get' | 'set' | 'getOrSet' | 'getAndDelete' | 'delete'> {
  /** Deletes what has expired. */
  sweep(): Promise<void>;
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

  /** To be called inside `write`. */
  function put(key: string, value: string, ttlSeconds: number): void {
    const expiresAt = clock.now() + ttlSeconds * 1000;
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
    set: (key, value, ttlSeconds) => write(() => put(key, value, ttlSeconds)),
    getOrSet: (key, value, ttlSeconds) =>
      write(() => {
        const stored = read(key);
        if (stored === undefined) put(key, value, ttlSeconds);
        return stored ?? value;
      }),
    getAndDelete: (key) =>
      write(() => {
        const value = read(key);
        values.remove(key);
        return value;
      }),
    delete: (key) => write(() => void values.remove(key)),
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
  };
}
