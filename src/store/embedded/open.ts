// The embedded store: lmdb in DATA_DIR. All that an answer reports is on disk before it, except
// when a session was last used (touched-times.ts).
import { stat } from 'node:fs/promises';
import type { Database } from 'lmdb';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { createListeners } from '../listeners.ts';
import {
  type ByteEntry,
  MIN_ENTRY_BYTES,
  NO_SESSION,
  type SessionAccess,
  type SessionLookup,
  type Store,
} from '../store.ts';
import { type DataFolder, openDataFolder } from './folder.ts';
import { readKeyPage } from './key-page.ts';
import { createEmbeddedSessions } from './sessions.ts';
import { createSlidingWindows } from './sliding-windows.ts';
import { createEmbeddedValues, type ValueRecords } from './values.ts';
import { watchWrites } from './write-watch.ts';

export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly sessionKeyPrefix: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** @throws DataDirError when the folder is in use or cannot be written. */
export async function openEmbeddedStore(options: EmbeddedOptions): Promise<Store> {
  const { dataDir, sessionKeyPrefix, clock, log } = options;
  const { close, ...unwatched } = await openDataFolder(dataDir);
  const { write, ensureWritable } = watchWrites(unwatched, { dataDir, clock, log });
  const folder = { ...unwatched, write };
  const { sweep: sweepValues, records, ...values } = createEmbeddedValues({ ...folder, clock });
  const embeddedSessions = createEmbeddedSessions({ ...folder, sessionKeyPrefix, clock });
  const { accessSession, close: closeSessions, ...sessions } = embeddedSessions;
  const slidingWindows = createSlidingWindows(clock);
  const { sweep: sweepBudgets, ...byteBudgets } = createByteBudgets(clock);
  /** One process per DATA_DIR: all listeners are here. */
  const listeners = createListeners(log);

  return {
    ...values,
    ...createListedValues({ ...folder, records, clock }),
    ...sessions,
    ...byteBudgets,

    async admitRequest(windows, access) {
      const time = slidingWindows.getTime();
      const verdict = slidingWindows.countRequest(windows, time);
      const isRefused = verdict?.isAdmitted === false;
      return {
        verdict,
        entry: verdict?.isAdmitted ? String(time) : undefined,
        session: access === undefined || isRefused ? NO_SESSION : lookUp(access),
      };
    },
    async uncountRequest(key, entry) {
      slidingWindows.uncountRequest(key, Number(entry));
    },

    async sweepSessions() {
      await slidingWindows.sweep();
      sweepBudgets();
      await sweepValues();
      return sessions.sweepSessions();
    },

    async publish(channel, message) {
      folder.ensureOpen();
      setImmediate(listeners.prepareDelivery(channel), message);
    },
    subscribe: listeners.add,

    async ping() {
      ensureWritable();
    },
    async describe() {
      folder.ensureOpen();
      const { size: bytes } = await stat(folder.file);
      return { driver: 'embedded', bytes };
    },
    async close() {
      listeners.clear();
      // Begun before the folder closes, which waits for it. A failure is in the log.
      const committed = closeSessions().catch(() => {});
      await close();
      await committed;
    },
  };

  function lookUp(access: SessionAccess): SessionLookup {
    try {
      return { record: accessSession(access) };
    } catch (failure) {
      return { failure };
    }
  }
}

// Bytes of values that count in a budget, in memory: there is one process, and a restart forgets them.

interface ByteBudgets extends Pick<Store, 'reserveBytes' | 'releaseBytes'> {
  /** Forgets budgets in which nothing counts any more. */
  sweep(): void;
}

interface CountedEntry {
  readonly bytes: number;
  /** Of a clock that never jumps. */
  readonly expiresAt: number;
}

type Entries = Map<string, CountedEntry>;

function createByteBudgets(clock: Clock): ByteBudgets {
  const budgets = new Map<string, Entries>();

  return {
    async reserveBytes(budget, entry, { maxBytes, ttlSeconds }) {
      const entries = budgets.get(budget) ?? new Map();
      forgetExpired(entries, clock.monotonic());
      const key = toKey(entry);
      const bytes = Math.max(entry.bytes, MIN_ENTRY_BYTES);
      if (bytes + sumOthers(entries, key) > maxBytes) return false;
      entries.set(key, { bytes, expiresAt: clock.monotonic() + ttlSeconds * 1000 });
      budgets.set(budget, entries);
      return true;
    },
    async releaseBytes(budget, entry) {
      const entries = budgets.get(budget);
      if (entries?.delete(toKey(entry)) && entries.size === 0) budgets.delete(budget);
    },
    sweep() {
      const now = clock.monotonic();
      for (const [budget, entries] of budgets) {
        forgetExpired(entries, now);
        if (entries.size === 0) budgets.delete(budget);
      }
    },
  };
}

const toKey = ({ name, bytes }: ByteEntry): string => `${bytes}:${name}`;

function forgetExpired(entries: Entries, now: number): void {
  for (const [key, { expiresAt }] of entries) if (expiresAt <= now) entries.delete(key);
}

function sumOthers(entries: Entries, key: string): number {
  let sum = 0;
  for (const [other, { bytes }] of entries) if (other !== key) sum += bytes;
  return sum;
}

// Values that can also be listed: an index beside them, by the time at which they expire.

interface ListedValuesOptions extends Pick<DataFolder, 'root' | 'write' | 'ensureOpen'> {
  readonly records: ValueRecords;
  readonly clock: Clock;
}

type ListedKey = [list: string, expiresAt: number, key: string];

/** Entries of values that have expired, which each new one clears away. */
const CLEARED_AT_ONCE = 100;

function createListedValues({
  root,
  write,
  ensureOpen,
  records,
  clock,
}: ListedValuesOptions): Pick<Store, 'setListed' | 'deleteListed' | 'readListed'> {
  const entries: Database<true, ListedKey> = root.openDB({ name: 'listed-values' });

  function clearExpired(list: string): void {
    const range = { start: [list, 0], end: [list, clock.now() + 1], limit: CLEARED_AT_ONCE };
    for (const entry of [...entries.getKeys(range)]) entries.remove(entry);
  }

  return {
    setListed: (list, key, value, ttlSeconds) =>
      write(() => {
        const expiresAt = clock.now() + ttlSeconds * 1000;
        entries.remove([list, records.readExpiry(key), key]);
        clearExpired(list);
        records.put(key, value, expiresAt);
        entries.put([list, expiresAt, key], true);
      }),
    deleteListed: (list, key) =>
      write(() => {
        const wasThere = records.read(key) !== undefined;
        entries.remove([list, records.readExpiry(key), key]);
        records.remove(key);
        return wasThere;
      }),
    async readListed(list, request) {
      ensureOpen();
      const page = readKeyPage(entries, [list], request);
      const items = page.entries.flatMap(({ id: key, time: expiresAt }) => {
        const value = records.readExpiry(key) === expiresAt ? records.read(key) : undefined;
        return value === undefined ? [] : [{ key, value, expiresAt }];
      });
      return { items, next: page.next };
    },
  };
}
