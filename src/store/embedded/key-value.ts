// Implements the port KeyValue on lmdb: values by key until they expire, and lists of them.
import type { Database } from 'lmdb';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import { isStringArray } from '../../platform/json.ts';
import { GRANT_VERSION_LENGTH, type GrantLookup, type KeyValue, NO_GRANT } from '../store.ts';
import type { OpenFolder } from './folder.ts';
import {
  type ExpiringRecord,
  readExpiring,
  readExpiry,
  readKeyPage,
  writeExpiring,
} from './time-buckets.ts';

/** Keys by their expiry, so that a sweep reads only expired ones. */
type DueKey = [dueAt: number, key: string];

type ListedKey = [list: string, expiresAt: number, key: string];

/** A few milliseconds of work: requests run in between. */
const SWEEP_BATCH = 500;

/** Expired entries of a list that each new one removes. */
const CLEARED_AT_ONCE = 100;

export function createEmbeddedKeyValue({ root, write, ensureOpen }: OpenFolder, clock: Clock) {
  const values: Database<ExpiringRecord<string>, string> = root.openDB({ name: 'values' });
  const dueKeys: Database<true, DueKey> = root.openDB({ name: 'values-due' });
  const listed: Database<true, ListedKey> = root.openDB({ name: 'listed-values' });

  const grantVersions = createBoundedMap<
    string,
    { readonly version: string; readonly expiresAt: number }
  >('storedVersions');
  /** The number of pending changes to a key: until they are on disk, reads return the value before them. */
  const pendingChanges = new Map<string, number>();

  function read(key: string) {
    ensureOpen();
    const record = readExpiring(values, key);
    return record !== undefined && record.expiresAt > clock.now() ? record.value : undefined;
  }

  /** Runs every change to values in a transaction, and invalidates cached versions of these keys. */
  async function change<Result>(keys: readonly string[], task: () => Result): Promise<Result> {
    for (const key of keys) {
      grantVersions.delete(key);
      pendingChanges.set(key, (pendingChanges.get(key) ?? 0) + 1);
    }
    try {
      return await write(task);
    } finally {
      for (const key of keys) {
        const left = (pendingChanges.get(key) ?? 0) - 1;
        if (left > 0) pendingChanges.set(key, left);
        else pendingChanges.delete(key);
      }
    }
  }

  /** Call it only inside `change`. Returns the expiry in epoch milliseconds. */
  function put(key: string, value: string, ttlSeconds: number) {
    const expiresAt = clock.now() + ttlSeconds * 1000;
    const expiredAtBefore = readExpiry(values, key);
    if (expiredAtBefore > 0) dueKeys.remove([expiredAtBefore, key]);
    values.put(key, writeExpiring(value, expiresAt));
    dueKeys.put([expiresAt, key], true);
    return expiresAt;
  }

  function putListed(list: string, key: string, value: string, ttlSeconds: number) {
    listed.remove([list, readExpiry(values, key), key]);
    const expired = { start: [list, 0], end: [list, clock.now() + 1], limit: CLEARED_AT_ONCE };
    for (const entry of [...listed.getKeys(expired)]) listed.remove(entry);
    listed.put([list, put(key, value, ttlSeconds), key], true);
  }

  const port: KeyValue = {
    get: async (key) => read(key),
    set: (key, value, ttlSeconds) => change([key], () => void put(key, value, ttlSeconds)),
    getOrSet: (key, value, ttlSeconds) =>
      change([key], () => {
        const stored = read(key);
        if (stored === undefined) put(key, value, ttlSeconds);
        return stored ?? value;
      }),
    compareAndSet: (key, expected, value, ttlSeconds) =>
      change([key], () => {
        if (read(key) !== expected) return false;
        put(key, value, ttlSeconds);
        return true;
      }),
    compareAndDelete: (key, expected) =>
      change([key], () => {
        if (read(key) !== expected) return false;
        values.remove(key);
        return true;
      }),
    getAndDelete: (key) =>
      change([key], () => {
        const value = read(key);
        values.remove(key);
        return value;
      }),
    delete: (key) => change([key], () => void values.remove(key)),

    setListed: (list, key, value, ttlSeconds) =>
      change([key], () => putListed(list, key, value, ttlSeconds)),
    replaceListed: (list, key, value, ttlSeconds) =>
      change([key], () => {
        const wasThere = read(key) !== undefined;
        if (wasThere) putListed(list, key, value, ttlSeconds);
        return wasThere;
      }),
    deleteListed: (list, key) =>
      change([key], () => {
        const wasThere = read(key) !== undefined;
        listed.remove([list, readExpiry(values, key), key]);
        values.remove(key);
        return wasThere;
      }),
    async readListed(list, request) {
      ensureOpen();
      const page = readKeyPage(listed, [list], request);
      const items = page.items.flatMap(({ id: key, time: expiresAt }) => {
        const value = readExpiry(values, key) === expiresAt ? read(key) : undefined;
        return value === undefined ? [] : [{ key, value, expiresAt }];
      });
      return { items, next: page.next };
    },
    async countListed(list) {
      ensureOpen();
      return listed.getKeysCount({ start: [list, clock.now() + 1], end: [list, Number.MAX_VALUE] });
    },

    addRecent: (key, value, { max, ttlSeconds }) =>
      change([key], () => {
        const recent = [value, ...parseRecent(read(key))].slice(0, max);
        put(key, JSON.stringify(recent), ttlSeconds);
      }),
    readRecent: async (key) => parseRecent(read(key)),
  };

  return {
    ...port,
    /**
     * Looks up the version of a grant, as every call of its user does. Versions are cached, since a grant may have 20 KB, and lmdb
     * reads a value as a whole.
     */
    lookUpGrant(key: string): GrantLookup {
      try {
        let known = grantVersions.get(key);
        if (known === undefined) {
          ensureOpen();
          const record = readExpiring(values, key);
          if (record === undefined) return NO_GRANT;
          const { value, expiresAt } = record;
          known = { version: value.slice(0, GRANT_VERSION_LENGTH), expiresAt };
          if (!pendingChanges.has(key)) grantVersions.set(key, known);
        }
        const { version, expiresAt } = known;
        return expiresAt <= clock.now() || version === '' ? NO_GRANT : { version };
      } catch (failure) {
        return { failure };
      }
    },
    /** Deletes expired values. */
    async sweepValues(): Promise<void> {
      for (;;) {
        ensureOpen();
        const end: DueKey = [clock.now() + 1, ''];
        const due = [...dueKeys.getKeys({ start: [0, ''], end, limit: SWEEP_BATCH })];
        if (due.length === 0) return;
        const keys = due.map(([, key]) => key);
        await change(keys, () => {
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

/** Parses the value of `addRecent`, the only writer of this key. */
function parseRecent(text: string | undefined) {
  const recent: unknown = text === undefined ? [] : JSON.parse(text);
  return isStringArray(recent) ? recent : [];
}
