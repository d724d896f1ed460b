// The embedded store: lmdb in DATA_DIR. What was answered is on disk before the answer.
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Database, open, type RootDatabase } from 'lmdb';
import type { Clock } from '../../clock.ts';
import { describeCause } from '../../log.ts';
import { sessionKey } from '../keys.ts';
import type { SessionRecord, Store } from '../store.ts';
import { DataDirError, lockFolder } from './lock.ts';
import { createWindows } from './windows.ts';

export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly sessionKeyPrefix: string;
  readonly clock: Clock;
}

/** A value with the time (epoch milliseconds) at which it is gone. */
interface Expiring<Value> {
  readonly value: Value;
  readonly expiresAt: number;
}

/** Entries by the time they are due, so that a sweep reads only those. */
type DueKey = [dueAt: number, name: string];

const SWEEP_BATCH = 1000;

/** @throws DataDirError when the folder is in use or cannot be written. */
export async function openEmbeddedStore(options: EmbeddedOptions): Promise<Store> {
  const { sessionKeyPrefix: prefix, clock } = options;
  const folder = resolve(options.dataDir);
  const { root, unlock } = await openFolder(folder);
  const values: Database<Expiring<string>, string> = root.openDB({ name: 'values' });
  const valuesDue: Database<true, DueKey> = root.openDB({ name: 'values-due' });
  const sessions: Database<Expiring<SessionRecord>, string> = root.openDB({ name: 'sessions' });
  /** Session id → the time under which it stands in `sessionsDue`, which may lag behind. */
  const index: Database<number, string> = root.openDB({ name: 'session-index' });
  const sessionsDue: Database<true, DueKey> = root.openDB({ name: 'sessions-due' });
  const windows = createWindows();

  /** Atomic; resolves when it is on disk. Writes of many requests share one commit. */
  async function write<Result>(change: () => Result): Promise<Result> {
    const result = await root.transaction(change);
    await root.flushed;
    return result;
  }

  const live = <Value>(entry: Expiring<Value> | undefined): Value | undefined =>
    entry !== undefined && entry.expiresAt > clock.now() ? entry.value : undefined;

  const session = (id: string) => live(sessions.get(sessionKey(prefix, id)));

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
    const entry = sessions.get(sessionKey(prefix, id));
    if (live(entry) !== undefined && entry !== undefined) {
      enterIndex(id, entry.expiresAt);
      return false;
    }
    sessions.remove(sessionKey(prefix, id));
    return leaveIndex(id);
  }

  async function sweepValues(): Promise<void> {
    const due = dueKeys(valuesDue, clock.now());
    if (due.length === 0) return;
    await write(() => {
      for (const key of due) {
        valuesDue.remove(key);
        if (live(values.get(key[1])) === undefined) values.remove(key[1]);
      }
    });
    if (due.length === SWEEP_BATCH) await sweepValues();
  }

  return {
    get: async (key) => live(values.get(key)),
    set: (key, value, ttlSeconds) =>
      write(() => {
        const expiresAt = clock.now() + ttlSeconds * 1000;
        values.put(key, { value, expiresAt });
        valuesDue.put([expiresAt, key], true);
      }),

    async admit(limits, sessionId) {
      return {
        verdict: windows.admit(limits, clock.now()),
        session: sessionId === undefined ? undefined : session(sessionId),
      };
    },

    createSession: (value, ttlSeconds) =>
      write(() => {
        const expiresAt = clock.now() + ttlSeconds * 1000;
        sessions.put(sessionKey(prefix, value.sessionId), { value, expiresAt });
        enterIndex(value.sessionId, expiresAt);
      }),
    touchSession: (id, owner, lastAccessedAt, ttlSeconds) =>
      write(() => {
        const value = session(id);
        if (value === undefined || value.userId !== owner) return false;
        const expiresAt = clock.now() + ttlSeconds * 1000;
        sessions.put(sessionKey(prefix, id), { value: { ...value, lastAccessedAt }, expiresAt });
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
    takeExpiredSession: (id) =>
      write(() => index.get(id) !== undefined && session(id) === undefined && settle(id)),

    async sweepSessions() {
      windows.sweep(clock.now());
      await sweepValues();
      let taken = 0;
      for (;;) {
        const due = dueKeys(sessionsDue, clock.now());
        if (due.length === 0) return taken;
        taken += await write(() => due.filter(([, id]) => settle(id)).length);
        if (due.length < SWEEP_BATCH) return taken;
      }
    },
    countSessions: async () => (index.getStats() as { entryCount: number }).entryCount,

    async ping() {},
    async close() {
      await root.close();
      await unlock();
    },
  };
}

/** An unwritable folder, a file in its place, a full disk: said by name at start. */
async function openFolder(
  folder: string,
): Promise<{ root: RootDatabase; unlock(): Promise<void> }> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const unlock = await lockFolder(folder);
    return { root: open({ path: join(folder, 'store.mdb'), noSubdir: true }), unlock };
  } catch (cause) {
    if (cause instanceof DataDirError) throw cause;
    throw new DataDirError(
      `DATA_DIR: the folder ${folder} cannot be used: ${describeCause(cause)}`,
    );
  }
}

const dueKeys = (due: Database<true, DueKey>, now: number): DueKey[] => [
  ...due.getKeys({ start: [0, ''], end: [now + 1, ''], limit: SWEEP_BATCH }),
];
