// The embedded store: lmdb in DATA_DIR. All that an answer reports is on disk before it, except
// when a session was last used (session-records.ts).
import { stat } from 'node:fs/promises';
import type { ClockAndLog } from '../../platform/log.ts';
import { createListeners } from '../listeners.ts';
import {
  isMissingGrant,
  NO_GRANT,
  NO_SESSION,
  NOT_COUNTED,
  type SessionAccess,
  type SessionLookup,
  type Store,
  StoreUnavailable,
} from '../store.ts';
import { type OpenFolder, openDataFolder } from './folder.ts';
import { createEmbeddedKeyValue } from './key-value.ts';
import { createEmbeddedSessions } from './sessions.ts';
import { createByteBudgets, createSlidingWindows } from './windows.ts';

export interface EmbeddedStoreSettings extends ClockAndLog {
  readonly dataDir: string;
  readonly sessionKeyPrefix: string;
}

/** @throws DataDirError when the folder is in use or cannot be written. */
export async function openEmbeddedStore(settings: EmbeddedStoreSettings): Promise<Store> {
  const { dataDir, sessionKeyPrefix, clock, log } = settings;
  const { close, ...unwatched } = await openDataFolder(dataDir);
  let isClosing = false;
  const ensureOpen = () => {
    if (isClosing) throw new StoreUnavailable('The store is closed');
  };
  const { write, ensureWritable } = watchWrites({ ...unwatched, ensureOpen }, settings);
  const folder: OpenFolder = { ...unwatched, ensureOpen, write };
  // Each opens its databases by transactions of their own: opened in a common one, a full disk later ends the process in
  // lmdb (SIGABRT).
  const { sweepValues, lookUpGrant, ...keyValue } = createEmbeddedKeyValue(folder, clock);
  const {
    accessSession,
    close: closeSessions,
    ...sessions
  } = createEmbeddedSessions(folder, clock, sessionKeyPrefix);
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

    admitRequest(windows, access, grantKey) {
      const grant = grantKey === undefined ? NO_GRANT : lookUpGrant(grantKey);
      if (grantKey !== undefined && isMissingGrant(grant)) {
        return NOT_COUNTED;
      }
      const time = slidingWindows.getTime();
      const verdict = slidingWindows.countRequest(windows, time);
      const isSpared = verdict?.isAdmitted === false || 'failure' in grant;
      return {
        verdict,
        entry: verdict?.isAdmitted ? String(time) : undefined,
        session: access === undefined || isSpared ? NO_SESSION : lookUp(access),
        grant,
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
      isClosing = true;
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

// §4.3: the service is not ready while DATA_DIR cannot be written, and is again once it can.

/** Without requests nothing else would find out that there is room again. */
const RETRY_MS = 1000;
/** A disk that is slow is not one that hangs. */
const STALL_MS = 5000;
/**
 * Milliseconds that a write has then to end: when this process was stopped, or its clock was set, the write has
 * ended long ago, and nobody has read that yet.
 */
const GRACE_MS = 1000;
/** On a disk that is nearly full, small writes succeed and large ones fail: no line for each. */
const REPORT_INTERVAL_MS = 60_000;

function watchWrites(
  { root, write, ensureOpen }: OpenFolder,
  { dataDir, clock, log }: EmbeddedStoreSettings,
) {
  const retries = root.openDB<number, string>({ name: 'write-retries' });
  let failure: unknown;
  let pending = 0;
  let isRetryDue = false;
  let reportedAt = Number.NEGATIVE_INFINITY;
  let isReported = false;
  let stopWatching = () => {};

  async function watchedWrite<Result>(change: () => Result): Promise<Result> {
    // That the store is closed says nothing about the disk. lmdb would throw, and not by its promise.
    ensureOpen();
    pending += 1;
    if (pending === 1) watchNext();
    try {
      const result = await write(change);
      if (failure !== undefined) {
        failure = undefined;
        if (isReported) log.info('DATA_DIR can be written again.', { folder: dataDir });
        isReported = false;
      }
      return result;
    } catch (error) {
      // Anything else was thrown by the change itself.
      if (error instanceof StoreUnavailable) noteFailure(error);
      throw error;
    } finally {
      pending -= 1;
      stopWatching();
      if (pending > 0) watchNext();
      if (failure !== undefined) retryLater();
    }
  }

  /** The writes end in their order: one is watched, and then the next. */
  function watchNext(): void {
    let grace: NodeJS.Timeout | undefined;
    const cancel = clock.after(STALL_MS, () => {
      const cause = `a write has taken ${STALL_MS / 1000} s, and goes on`;
      const error = new StoreUnavailable('DATA_DIR cannot be written', { cause });
      grace = setTimeout(() => noteFailure(error), GRACE_MS).unref();
    });
    stopWatching = () => {
      cancel();
      clearTimeout(grace);
    };
  }

  function noteFailure(error: StoreUnavailable): void {
    failure = error;
    if (clock.monotonic() - reportedAt < REPORT_INTERVAL_MS) return;
    reportedAt = clock.monotonic();
    isReported = true;
    log.error(
      'DATA_DIR cannot be written: sessions and logins are not saved, and the service is not ready. Free disk space, or let this process write to the folder; it recovers by itself.',
      { folder: dataDir, cause: error.cause },
    );
  }

  function retryLater(): void {
    if (isRetryDue) return;
    isRetryDue = true;
    clock.after(RETRY_MS, () => {
      isRetryDue = false;
      // Writes that are under way will tell as well.
      if (failure === undefined || pending > 0) return;
      watchedWrite(() => void retries.put('last', clock.now())).catch(() => {});
    });
  }

  return {
    write: watchedWrite,
    /** @throws StoreUnavailable when the last write failed. */
    ensureWritable(): void {
      if (failure !== undefined) throw failure;
    },
  };
}
