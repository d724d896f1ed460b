// The embedded store: lmdb in DATA_DIR. What was answered is on disk before the answer.
import type { Database } from 'lmdb';
import type { Clock } from '../../clock.ts';
import type { Log } from '../../log.ts';
import { createListeners } from '../listeners.ts';
import type { Store } from '../store.ts';
import { type Expiring, expiring, expiryOf, readLive } from './expiring.ts';
import { openFolder } from './folder.ts';
import { createEmbeddedSessions, SWEEP_BATCH } from './sessions.ts';
import { createWindows } from './windows.ts';

export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly sessionKeyPrefix: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Entries by the time they are due, so that a sweep reads only those. */
type DueKey = [dueAt: number, name: string];

/** @throws DataDirError when the folder is in use or cannot be written. */
export async function openEmbeddedStore(options: EmbeddedOptions): Promise<Store> {
  const { sessionKeyPrefix: prefix, clock, log } = options;
  const { root, write, ensureOpen, close } = await openFolder(options.dataDir);
  const values: Database<Expiring<string>, string> = root.openDB({ name: 'values' });
  const valuesDue: Database<true, DueKey> = root.openDB({ name: 'values-due' });
  const { read: readSession, ...sessions } = createEmbeddedSessions({
    root,
    prefix,
    clock,
    write,
    ensureOpen,
  });
  const windows = createWindows();
  /** One process per DATA_DIR: all listeners are here. */
  const listeners = createListeners(log);

  function read(key: string): string | undefined {
    ensureOpen();
    return readLive(values, key, clock.now());
  }

  function dueNow(): readonly DueKey[] {
    ensureOpen();
    const end: DueKey = [clock.now() + 1, ''];
    return [...valuesDue.getKeys({ start: [0, ''], end, limit: SWEEP_BATCH })];
  }

  async function sweepValues(): Promise<void> {
    for (let due = dueNow(); due.length > 0; due = dueNow()) {
      await write(() => {
        for (const key of due) {
          valuesDue.remove(key);
          if (expiryOf(values, key[1]) <= clock.now()) values.remove(key[1]);
        }
      });
    }
  }

  function putValue(key: string, value: string, ttlSeconds: number): void {
    const expiresAt = clock.now() + ttlSeconds * 1000;
    const before = expiryOf(values, key);
    if (before > 0) valuesDue.remove([before, key]);
    values.put(key, expiring(value, expiresAt));
    valuesDue.put([expiresAt, key], true);
  }

  return {
    get: async (key) => read(key),
    set: (key, value, ttlSeconds) => write(() => putValue(key, value, ttlSeconds)),
    add: (key, value, ttlSeconds) =>
      write(() => {
        if (read(key) !== undefined) return false;
        putValue(key, value, ttlSeconds);
        return true;
      }),
    take: (key) =>
      write(() => {
        const value = read(key);
        values.remove(key);
        return value;
      }),
    delete: (key) => write(() => void values.remove(key)),

    async admit(limits, sessionId) {
      const now = clock.now();
      const verdict = windows.admit(limits, now);
      return {
        verdict,
        entry: verdict?.admitted ? String(now) : undefined,
        session: sessionId === undefined ? undefined : readSession(sessionId),
      };
    },
    async withdraw(key, entry) {
      windows.withdraw(key, Number(entry));
    },

    ...sessions,
    async sweepSessions() {
      windows.sweep(clock.now());
      await sweepValues();
      return sessions.sweepSessions();
    },

    async publish(channel, message) {
      ensureOpen();
      setImmediate(listeners.to(channel), message);
    },
    subscribe: listeners.add,

    async ping() {},
    close() {
      listeners.clear();
      return close();
    },
  };
}
