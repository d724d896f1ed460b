// The embedded store: lmdb in DATA_DIR. What was answered is on disk before the answer.
import type { Database } from 'lmdb';
import type { Clock } from '../../clock.ts';
import type { Log } from '../../log.ts';
import { sessionKey } from '../keys.ts';
import { createListeners } from '../listeners.ts';
import type { SessionRecord, Store } from '../store.ts';
import { openFolder } from './folder.ts';
import { createWindows } from './windows.ts';

export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly sessionKeyPrefix: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** A value with the time (epoch milliseconds) at which it is gone. */
interface Expiring<Value> {
  readonly value: Value;
  readonly expiresAt: number;
}

/** Entries by the time they are due, so that a sweep reads only those. */
type DueKey = [dueAt: number, name: string];

/** A few milliseconds of work: requests come in between. */
const SWEEP_BATCH = 500;

/** @throws DataDirError when the folder is in use or cannot be written. */
export async function openEmbeddedStore(options: EmbeddedOptions): Promise<Store> {
  const { sessionKeyPrefix: prefix, clock, log } = options;
  const { root, write, ensureOpen, close } = await openFolder(options.dataDir);
  const values: Database<Expiring<string>, string> = root.openDB({ name: 'values' });
  const valuesDue: Database<true, DueKey> = root.openDB({ name: 'values-due' });
  const sessions: Database<Expiring<SessionRecord>, string> = root.openDB({ name: 'sessions' });
  /** Session id → the time under which it stands in `sessionsDue`, which may lag behind. */
  const index: Database<number, string> = root.openDB({ name: 'session-index' });
  const sessionsDue: Database<true, DueKey> = root.openDB({ name: 'sessions-due' });
  const windows = createWindows();
  /** One process per DATA_DIR: all listeners are here. */
  const listeners = createListeners(log);

  /** @throws Error when the record is damaged: that is not the same as absent. */
  function read<Value>(from: Database<Expiring<Value>, string>, key: string): Value | undefined {
    ensureOpen();
    const entry = from.get(key);
    if (entry === undefined) return undefined;
    if (!isWhole(entry)) throw new Error('A record in DATA_DIR is damaged');
    return entry.expiresAt > clock.now() ? entry.value : undefined;
  }

  /** The time at which a record is gone; a damaged one, which nobody can use, is gone now. */
  function expiryOf<Value>(from: Database<Expiring<Value>, string>, key: string): number {
    try {
      const entry = from.get(key);
      return entry !== undefined && isWhole(entry) ? entry.expiresAt : 0;
    } catch {
      return 0;
    }
  }

  const session = (id: string) => read(sessions, sessionKey(prefix, id));

  function enterIndex(id: string, dueAt: number): void {
    leaveIndex(id);
    index.put(id, dueAt);
    sessionsDue.put([dueAt, id], true);
  }

  function leaveIndex(id: string): boolean {
    const dueAt = index.get(id);
    if (dueAt === undefined) return false;
    sessionsDue.remove([dueAt, id]);
    index.remove(id);
    return true;
  }

  /** One due index entry: taken when its session is gone, else given its new time. */
  function settle(id: string): boolean {
    const expiresAt = expiryOf(sessions, sessionKey(prefix, id));
    if (expiresAt > clock.now()) {
      enterIndex(id, expiresAt);
      return false;
    }
    sessions.remove(sessionKey(prefix, id));
    return leaveIndex(id);
  }

  function dueKeys(due: Database<true, DueKey>): DueKey[] {
    ensureOpen();
    const end: DueKey = [clock.now() + 1, ''];
    return [...due.getKeys({ start: [0, ''], end, limit: SWEEP_BATCH })];
  }

  async function sweepValues(): Promise<void> {
    for (let due = dueKeys(valuesDue); due.length > 0; ) {
      await write(() => {
        for (const key of due) {
          valuesDue.remove(key);
          if (expiryOf(values, key[1]) <= clock.now()) values.remove(key[1]);
        }
      });
      due = dueKeys(valuesDue);
    }
  }

  function putValue(key: string, value: string, ttlSeconds: number): void {
    const expiresAt = clock.now() + ttlSeconds * 1000;
    const before = expiryOf(values, key);
    if (before > 0) valuesDue.remove([before, key]);
    values.put(key, { value, expiresAt });
    valuesDue.put([expiresAt, key], true);
  }

  return {
    get: async (key) => read(values, key),
    set: (key, value, ttlSeconds) => write(() => putValue(key, value, ttlSeconds)),
    add: (key, value, ttlSeconds) =>
      write(() => {
        if (read(values, key) !== undefined) return false;
        putValue(key, value, ttlSeconds);
        return true;
      }),
    take: (key) =>
      write(() => {
        const value = read(values, key);
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
        session: sessionId === undefined ? undefined : session(sessionId),
      };
    },
    async withdraw(key, entry) {
      windows.withdraw(key, Number(entry));
    },

    createSession: (value, ttlSeconds) =>
      write(() => {
        const expiresAt = clock.now() + ttlSeconds * 1000;
        sessions.put(sessionKey(prefix, value.sessionId), { value, expiresAt });
        enterIndex(value.sessionId, expiresAt);
      }),
    touchSession: (id, owner, changes, ttlSeconds) =>
      write(() => {
        const value = session(id);
        if (value === undefined || value.userId !== owner) return false;
        const expiresAt = clock.now() + ttlSeconds * 1000;
        sessions.put(sessionKey(prefix, id), { value: { ...value, ...changes }, expiresAt });
        return true;
      }),
    endSession: (id, owner) =>
      write(() => {
        const value = session(id);
        if (value === undefined || value.userId !== owner) return false;
        sessions.remove(sessionKey(prefix, id));
        leaveIndex(id);
        return true;
      }),
    // Looked up first: a flood of unknown ids must not become a flood of writes.
    async takeExpiredSession(id) {
      ensureOpen();
      return index.get(id) !== undefined && write(() => session(id) === undefined && settle(id));
    },

    async sweepSessions() {
      windows.sweep(clock.now());
      await sweepValues();
      let taken = 0;
      for (let due = dueKeys(sessionsDue); due.length > 0; ) {
        taken += await write(() => due.filter(([, id]) => settle(id)).length);
        due = dueKeys(sessionsDue);
      }
      return taken;
    },
    async countSessions() {
      ensureOpen();
      return (index.getStats() as { entryCount: number }).entryCount;
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

const isWhole = (entry: Expiring<unknown>): boolean => typeof entry.expiresAt === 'number';
