// Embedded store: lmdb in DATA_DIR. Everything that a reply reports is on disk before the reply, except the time when a session
// was last used (session-records.ts).
import { stat } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../platform/clock.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import { createListeners } from '../listeners.ts';
import {
  type ByteEntry,
  isMissingGrant,
  type LimitWindow,
  MIN_ENTRY_BYTES,
  NO_GRANT,
  NO_SESSION,
  NOT_COUNTED,
  type Store,
  StoreUnavailable,
  type Windows,
  type WindowVerdict,
} from '../store.ts';
import { type OpenFolder, openDataFolder } from './folder.ts';
import { createEmbeddedKeyValue } from './key-value.ts';
import { createEmbeddedSessions } from './sessions.ts';

interface EmbeddedStoreSettings extends ClockAndLog {
  readonly dataDir: string;
  readonly sessionKeyPrefix: string;
}

/** @throws DataDirError if the folder is in use or cannot be written. */
export async function openEmbeddedStore(settings: EmbeddedStoreSettings): Promise<Store> {
  const { dataDir, sessionKeyPrefix, clock, log } = settings;
  const { close, ...unwatched } = await openDataFolder(dataDir);
  let isClosing = false;
  const ensureOpen = () => {
    if (isClosing) throw new StoreUnavailable('The store is closed');
  };
  const { write, ensureWritable } = watchWrites({ ...unwatched, ensureOpen }, settings);
  const folder: OpenFolder = { ...unwatched, ensureOpen, write };
  // Each part opens its databases in separate transactions: if a common one opened them, a full disk would later make lmdb abort
  // the process (SIGABRT).
  const { sweepValues, lookUpGrant, ...keyValue } = createEmbeddedKeyValue(folder, clock);
  const {
    accessSession,
    close: closeSessions,
    ...sessions
  } = createEmbeddedSessions(folder, clock, sessionKeyPrefix);
  const slidingWindows = createSlidingWindows(clock);
  const { sweepBudgets, ...byteBudgets } = createByteBudgets(clock);
  /** All listeners are in memory: there is one process per DATA_DIR. */
  const listeners = createListeners(log);

  return {
    isShared: false,
    databaseSystem: 'lmdb',
    ...keyValue,
    ...sessions,
    ...byteBudgets,

    admitRequest(windows, access, grantKey) {
      const grant = grantKey === undefined ? NO_GRANT : lookUpGrant(grantKey);
      if (grantKey !== undefined && isMissingGrant(grant)) return NOT_COUNTED;
      // A monotonic clock: with one that can be set back, windows would stay full until the time is made up.
      const time = Math.floor(clock.monotonic());
      const verdict = slidingWindows.countRequest(windows, time);
      const isSpared = verdict?.isAdmitted === false || 'failure' in grant;
      let session = NO_SESSION;
      try {
        if (access !== undefined && !isSpared) session = { record: accessSession(access) };
      } catch (failure) {
        session = { failure };
      }
      return { verdict, entry: verdict?.isAdmitted ? String(time) : undefined, session, grant };
    },
    async uncountRequest(key, entry) {
      slidingWindows.uncountRequest(key, Number(entry));
    },

    async sweepSessions() {
      await slidingWindows.sweep(Math.floor(clock.monotonic()));
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
      // Starts before the folder closes, which waits for it. A failure is logged.
      const committed = closeSessions().catch(() => {});
      isClosing = true;
      await close();
      await committed;
    },
  };
}

// §4.3: the service is not ready while DATA_DIR cannot be written.

/** Without requests, nothing else would notice that there is space again. */
const RETRY_MS = 1000;
/** Longer than a write to a slow disk takes. */
const STALL_MS = 5000;
/**
 * Milliseconds that a write then has to end: if this process was suspended, or its clock was set, the write may have ended long
 * ago, with its result still unread.
 */
const GRACE_MS = 1000;
/** On a nearly full disk, small writes succeed and large ones fail: failures are logged only once per interval. */
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
    // A closed store says nothing about the disk, and lmdb would throw synchronously.
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
      // Any other error was thrown by the change itself.
      if (error instanceof StoreUnavailable) noteFailure(error);
      throw error;
    } finally {
      pending -= 1;
      stopWatching();
      if (pending > 0) watchNext();
      if (failure !== undefined) retryLater();
    }
  }

  /** Writes end in order, so one is watched at a time. */
  function watchNext() {
    let grace: NodeJS.Timeout | undefined;
    const cancel = clock.after(STALL_MS, () => {
      const cause = `a write has taken ${STALL_MS / 1000} s so far`;
      const error = new StoreUnavailable('DATA_DIR cannot be written', { cause });
      grace = setTimeout(() => noteFailure(error), GRACE_MS).unref();
    });
    stopWatching = () => {
      cancel();
      clearTimeout(grace);
    };
  }

  function noteFailure(error: StoreUnavailable) {
    failure = error;
    if (clock.monotonic() - reportedAt < REPORT_INTERVAL_MS) return;
    reportedAt = clock.monotonic();
    isReported = true;
    log.error(
      'DATA_DIR cannot be written: sessions and logins are not saved, and the service is not ready. Free disk space, or let this process write to the folder; it recovers by itself.',
      { folder: dataDir, cause: error.cause },
    );
  }

  function retryLater() {
    if (isRetryDue) return;
    isRetryDue = true;
    clock.after(RETRY_MS, () => {
      isRetryDue = false;
      // Pending writes will also show the result.
      if (failure === undefined || pending > 0) return;
      watchedWrite(() => void retries.put('last', clock.now())).catch(() => {});
    });
  }

  return {
    write: watchedWrite,
    /** @throws StoreUnavailable if the last write failed. */
    ensureWritable() {
      if (failure !== undefined) throw failure;
    },
  };
}

// Implements the port Windows in memory, since there is one process: exact sliding windows (§8), and budgets of bytes. A restart
// clears them.

/** A fraction of a millisecond of work: requests run in between. */
const SWEEP_BATCH = 1000;

function createSlidingWindows(clock: Clock) {
  const byKey = new Map<string, RequestTimes>();

  function createVerdict(isAdmitted: boolean, window: LimitWindow, time: number): WindowVerdict {
    const { key, scope, max, windowMs } = window;
    const times = byKey.get(key);
    const oldest = times?.pairs[times.head] ?? time;
    const resetInMs = oldest + windowMs - time;
    const remaining = isAdmitted ? max - (times?.count ?? 0) : 0;
    const resetAt = clock.now() + resetInMs;
    return { isAdmitted, scope, limit: max, remaining, resetAt, resetInMs };
  }

  return {
    /** Checks all windows in order, then counts the request at `time` in all of them; a refused request counts in none. */
    countRequest(windows: readonly LimitWindow[], time: number) {
      for (const window of windows) {
        const times = byKey.get(window.key);
        if (times) dropTimesUntil(times, time - window.windowMs);
        if ((times?.count ?? 0) >= window.max) return createVerdict(false, window, time);
      }
      for (const { key, windowMs } of windows) {
        const times = byKey.get(key);
        // Keys are kept only once they count something: refused addresses leave no trace.
        if (times === undefined) byKey.set(key, { count: 1, windowMs, pairs: [time, 1], head: 0 });
        else addTime(times, time);
      }
      const first = windows[0];
      return first && createVerdict(true, first, time);
    },
    uncountRequest(key: string, time: number) {
      const times = byKey.get(key);
      if (times && removeTime(times, time) && times.count === 0) byKey.delete(key);
    },
    /** Forgets keys whose requests have all left their window. */
    async sweep(time: number) {
      let left = SWEEP_BATCH;
      for (const [key, times] of byKey) {
        if (isOver(times, time)) byKey.delete(key);
        left -= 1;
        if (left > 0) continue;
        left = SWEEP_BATCH;
        await nextTurn();
      }
    },
  };
}

// §8: the times of the requests of one window, oldest first. Requests in the same millisecond share an entry: a window has no
// more entries than milliseconds, however many requests it counts.

/** Plain data: there may be one for every address that the global limit admits. */
interface RequestTimes {
  /** Requests, not entries. */
  count: number;
  readonly windowMs: number;
  /** Pairs of a time and the number of its requests. */
  readonly pairs: number[];
  /** The index of the oldest entry: dropped entries precede it. */
  head: number;
}

/** How many numbers of dropped entries may precede the oldest, however few follow: 2 KB. */
const MAX_DROPPED = 256;

/** `time` must not be earlier than any time added before. */
function addTime(times: RequestTimes, time: number) {
  const { pairs, head } = times;
  const newest = pairs.length - 2;
  if (newest >= head && pairs[newest] === time) addToCount(pairs, newest, 1);
  else pairs.push(time, 1);
  times.count += 1;
}

/** Drops entries at or before `until`, and entries that were taken back. */
function dropTimesUntil(times: RequestTimes, until: number) {
  const { pairs } = times;
  while (times.head < pairs.length) {
    const count = pairs[times.head + 1] ?? 0;
    if ((pairs[times.head] ?? 0) > until && count > 0) break;
    times.count -= count;
    times.head += 2;
  }
  // Only once as many were dropped as are left, so that few are moved.
  if (times.head < MAX_DROPPED || times.head * 2 < pairs.length) return;
  pairs.splice(0, times.head);
  times.head = 0;
}

/** Takes back one request at `time`. Returns false if there is none. */
function removeTime(times: RequestTimes, time: number) {
  const { pairs, head } = times;
  // Mostly the last entry.
  let at = pairs.length - 2;
  while (at >= head && (pairs[at] ?? 0) > time) at -= 2;
  if (at < head || pairs[at] !== time || pairs[at + 1] === 0) return false;
  addToCount(pairs, at, -1);
  times.count -= 1;
  return true;
}

/** Returns true if all requests have left the window, or were taken back. */
const isOver = ({ pairs, windowMs }: RequestTimes, time: number) =>
  (pairs.at(-2) ?? 0) <= time - windowMs;

function addToCount(pairs: number[], at: number, change: number) {
  pairs[at + 1] = (pairs[at + 1] ?? 0) + change;
}

// Budgets of bytes.

/** By key; `expiresAt` is on the monotonic clock. */
type Entries = Map<string, { readonly bytes: number; readonly expiresAt: number }>;

function createByteBudgets(
  clock: Clock,
): Pick<Windows, 'reserveBytes' | 'releaseBytes'> & { sweepBudgets(): void } {
  const budgets = new Map<string, Entries>();

  return {
    async reserveBytes(budget, entry, { maxBytes, ttlSeconds }) {
      const entries: Entries = budgets.get(budget) ?? new Map();
      forgetExpired(entries, clock.monotonic());
      const key = toKey(entry);
      const bytes = Math.max(entry.bytes, MIN_ENTRY_BYTES);
      let sum = bytes;
      for (const [other, counted] of entries) if (other !== key) sum += counted.bytes;
      if (sum > maxBytes) return false;
      entries.set(key, { bytes, expiresAt: clock.monotonic() + ttlSeconds * 1000 });
      budgets.set(budget, entries);
      return true;
    },
    async releaseBytes(budget, entry) {
      const entries = budgets.get(budget);
      if (entries?.delete(toKey(entry)) && entries.size === 0) budgets.delete(budget);
    },
    /** Forgets empty budgets. */
    sweepBudgets() {
      const now = clock.monotonic();
      for (const [budget, entries] of budgets) {
        forgetExpired(entries, now);
        if (entries.size === 0) budgets.delete(budget);
      }
    },
  };
}

const toKey = ({ name, bytes }: ByteEntry) => `${bytes}:${name}`;

function forgetExpired(entries: Entries, now: number) {
  for (const [key, { expiresAt }] of entries) if (expiresAt <= now) entries.delete(key);
}
