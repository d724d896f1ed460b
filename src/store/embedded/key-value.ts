// The port KeyValue on lmdb: values by key, each until its time is over, and lists of them.
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

/** Entries by the time they are due, so that a sweep reads only those. */
type DueKey = [dueAt: number, key: string];

type ListedKey = [list: string, expiresAt: number, key: string];

/** A few milliseconds of work: requests come in between. */
const SWEEP_BATCH = 500;

/** Entries of listed values that have expired, which each new one clears away. */
const CLEARED_AT_ONCE = 100;

export function createEmbeddedKeyValue({ root, write, ensureOpen }: OpenFolder, clock: Clock) {
  const values: Database<ExpiringRecord<string>, string> = root.openDB({ name: 'values' });
  const dueKeys: Database<true, DueKey> = root.openDB({ name: 'values-due' });
  const listed: Database<true, ListedKey> = root.openDB({ name: 'listed-values' });

  function readUntimely(key: string) {
    ensureOpen();
    return readExpiring(values, key);
  }

  function read(key: string) {
    const record = readUntimely(key);
    return record !== undefined && record.expiresAt > clock.now() ? record.value : undefined;
  }

  const grantVersions = createGrantVersions(readUntimely, clock);

  /** All values are changed by it. */
  const change = <Result>(keys: string | readonly string[], task: () => Result) =>
    grantVersions.forget([keys].flat(), write(task));

  /** To be called inside `change`, as all below. Returns when it is gone: epoch milliseconds. */
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

  /** False where something else stands there: then it stays. */
  const changeExpected = (key: string, expected: string | undefined, makeChange: () => void) =>
    change(key, () => {
      const isExpected = read(key) === expected;
      if (isExpected) makeChange();
      return isExpected;
    });

  const port: KeyValue = {
    get: async (key) => read(key),
    set: (key, value, ttlSeconds) => change(key, () => void put(key, value, ttlSeconds)),
    getOrSet: (key, value, ttlSeconds) =>
      change(key, () => {
        const stored = read(key);
        if (stored === undefined) put(key, value, ttlSeconds);
        return stored ?? value;
      }),
    compareAndSet: (key, expected, value, ttlSeconds) =>
      changeExpected(key, expected, () => put(key, value, ttlSeconds)),
    compareAndDelete: (key, expected) => changeExpected(key, expected, () => values.remove(key)),
    getAndDelete: (key) =>
      change(key, () => {
        const value = read(key);
        values.remove(key);
        return value;
      }),
    delete: (key) => change(key, () => void values.remove(key)),

    setListed: (list, key, value, ttlSeconds) =>
      change(key, () => putListed(list, key, value, ttlSeconds)),
    replaceListed: (list, key, value, ttlSeconds) =>
      change(key, () => {
        const wasThere = read(key) !== undefined;
        if (wasThere) putListed(list, key, value, ttlSeconds);
        return wasThere;
      }),
    deleteListed: (list, key) =>
      change(key, () => {
        const wasThere = read(key) !== undefined;
        listed.remove([list, readExpiry(values, key), key]);
        values.remove(key);
        return wasThere;
      }),
    async readListed(list, request) {
      ensureOpen();
      const page = readKeyPage(listed, [list], request);
      const items = page.entries.flatMap(({ id: key, time: expiresAt }) => {
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
      change(key, () => {
        const recent = [value, ...parseRecent(read(key))].slice(0, max);
        put(key, JSON.stringify(recent), ttlSeconds);
      }),
    readRecent: async (key) => parseRecent(read(key)),
  };

  return {
    ...port,
    /** With what the value under the key begins. */
    lookUpGrant: grantVersions.lookUp,
    /** Deletes what has expired. */
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

/** Reads the value of `addRecent`, which alone writes this key. */
function parseRecent(text: string | undefined) {
  const recent: unknown = text === undefined ? [] : JSON.parse(text);
  return isStringArray(recent) ? recent : [];
}

// The versions of grants, each asked for at every call of its user: read from memory, since a grant may have 20 KB, and
// lmdb gives a value as a whole.

interface KnownVersion {
  readonly version: string;
  readonly expiresAt: number;
}

/** `read` may throw, and gives records whose time is over, too: that is for the clock to say at each call. */
function createGrantVersions(
  read: (key: string) => ExpiringRecord<string> | undefined,
  clock: Clock,
) {
  const known = createBoundedMap<string, KnownVersion>('storedVersions');
  /** The number of changes of a key that are under way: until they are on disk, reads give what was there before. */
  const changes = new Map<string, number>();

  function find(key: string) {
    const remembered = known.get(key);
    if (remembered !== undefined) return remembered;
    const record = read(key);
    if (record === undefined) return undefined;
    const { value, expiresAt } = record;
    const found = { version: value.slice(0, GRANT_VERSION_LENGTH), expiresAt };
    if (!changes.has(key)) known.set(key, found);
    return found;
  }

  return {
    lookUp(key: string): GrantLookup {
      try {
        const found = find(key);
        return found === undefined || found.expiresAt <= clock.now() || found.version === ''
          ? NO_GRANT
          : { version: found.version };
      } catch (failure) {
        return { failure };
      }
    },
    /** To be called as values are changed: what was known of them holds no more. Settles as the change does. */
    forget<Result>(keys: readonly string[], changing: Promise<Result>): Promise<Result> {
      for (const key of keys) {
        known.delete(key);
        changes.set(key, (changes.get(key) ?? 0) + 1);
      }
      return changing.finally(() => {
        for (const key of keys) {
          const left = (changes.get(key) ?? 0) - 1;
          if (left > 0) changes.set(key, left);
          else changes.delete(key);
        }
      });
    },
  };
}
