// The embedded store: lmdb in DATA_DIR. All that an answer reports is on disk before it, except
// when a session was last used (touched-times.ts).
import { stat } from 'node:fs/promises';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { createListeners } from '../listeners.ts';
import { NO_SESSION, type SessionAccess, type SessionLookup, type Store } from '../store.ts';
import { openDataFolder } from './folder.ts';
import { createEmbeddedKeyValue } from './key-value.ts';
import { createEmbeddedSessions } from './sessions.ts';
import { createByteBudgets, createSlidingWindows } from './windows.ts';
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
  const { sweepValues, ...keyValue } = createEmbeddedKeyValue({ ...folder, clock });
  const embeddedSessions = createEmbeddedSessions({ ...folder, sessionKeyPrefix, clock });
  const { accessSession, close: closeSessions, ...sessions } = embeddedSessions;
  const slidingWindows = createSlidingWindows(clock);
  const { sweepBudgets, ...byteBudgets } = createByteBudgets(clock);
  /** One process per DATA_DIR: all listeners are here. */
  const listeners = createListeners(log);

  return {
    isShared: false,
    databaseSystem: 'lmdb',
    ...keyValue,
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
