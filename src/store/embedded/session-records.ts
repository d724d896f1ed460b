// Stores sessions in lmdb until they expire. Reads see touches (below) that are not on disk yet.
import type { Database } from 'lmdb';
import type { Clock } from '../../platform/clock.ts';
import { buildSessionKey, isOwnedBy, readOwner } from '../keys.ts';
import type { SessionAccess, SessionRecord } from '../store.ts';
import type { OpenFolder } from './folder.ts';
import {
  createTimeBucket,
  ENTRY_LENGTH,
  type ExpiringRecord,
  openTouchLog,
  readExpiring,
  readExpiry,
  readLastAccess,
  readTouchedExpiry,
  removeTimes,
  setTimes,
  type TimeBucket,
  type TimesPlace,
  toBytes,
  writeExpiring,
} from './time-buckets.ts';

export interface StoredSession {
  /** The record in lmdb: touches change its times elsewhere. */
  readonly record: SessionRecord;
  /** The expiry if it was never touched. */
  readonly expiresAt: number;
  /** The place of its times, if it was touched. */
  readonly touched: TimesPlace;
}

/** The record with the time of the last access, which touches change elsewhere. */
export function toRecord({ record, touched }: StoredSession): SessionRecord {
  const lastAccessedAt = readLastAccess(touched);
  return lastAccessedAt === undefined ? record : { ...record, lastAccessedAt };
}

/** Returns the expiry of a session in epoch milliseconds. */
export const getExpiry = ({ touched, expiresAt }: StoredSession): number =>
  readTouchedExpiry(touched, expiresAt);

export function openSessionRecords(folder: OpenFolder, clock: Clock, sessionKeyPrefix: string) {
  const { root, ensureOpen } = folder;
  const records: Database<ExpiringRecord<SessionRecord>, string> = root.openDB({
    name: 'sessions',
  });
  const cache = createSessionCache();
  const times = openTouchedTimes(folder, clock);
  const buildKey = (id: string) => buildSessionKey(sessionKeyPrefix, id);

  function read(id: string): StoredSession | undefined {
    const stored = readExpiring(records, buildKey(id));
    if (stored === undefined) return undefined;
    return { record: stored.value, expiresAt: stored.expiresAt, touched: times.locate(id) };
  }

  function put(record: SessionRecord, expiresAt: number) {
    records.put(buildKey(record.sessionId), writeExpiring(record, expiresAt));
  }

  return {
    /**
     * Reads a session, and slides it if its owner's request asks for that: in memory now, on disk a second later. Undefined if
     * there is none, or it has expired.
     *
     * @throws Error if the record is damaged, or of a later version.
     */
    access({ sessionId: id, owner, slideSeconds }: SessionAccess): SessionRecord | undefined {
      ensureOpen();
      const now = clock.now();
      const cached = cache.get(id);
      const session = cached ?? read(id);
      if (session === undefined) return undefined;
      const { record, touched, expiresAt } = session;
      if (readTouchedExpiry(touched, expiresAt) <= now) return undefined;
      if (cached === undefined) cache.put(id, touched.key, session);
      if (slideSeconds === undefined || !isOwnedBy(record, owner)) return toRecord(session);
      times.set(touched, now, now + slideSeconds * 1000);
      // A copy: all calls in the session share the record.
      return { ...record, lastAccessedAt: now };
    },

    /** Finds a session without the cache; in a transaction it sees all writes so far. */
    findInTransaction(id: string) {
      const session = read(id);
      return session !== undefined && getExpiry(session) > clock.now() ? session : undefined;
    },
    /** In a transaction: epoch milliseconds; 0 for an absent or damaged session. */
    readExpiry(id: string) {
      const stored = readExpiry(records, buildKey(id));
      return stored === 0 ? 0 : readTouchedExpiry(times.locate(id), stored);
    },
    /** In a transaction: reads the owner of a session that may have expired or be damaged. */
    readOwner(id: string) {
      try {
        const record = records.get(buildKey(id))?.value;
        return record ? readOwner(record) : undefined;
      } catch {
        return undefined;
      }
    },
    /** In a transaction: adds a session. */
    put,
    /** In a transaction: replaces a record, with its times; call `forgetChanged` once it is committed. */
    replace(session: StoredSession, record: SessionRecord) {
      put(record, getExpiry(session));
      times.put(session.touched);
    },
    /** In a transaction; call `forgetRemoved` once it is committed. */
    remove: (id: string) => void records.remove(buildKey(id)),

    /** Drops the cached session. */
    forgetChanged: cache.delete,
    forgetRemoved(id: string) {
      cache.delete(id);
      times.remove(id);
    },
    /** Commits touches that are not on disk yet. */
    close: times.close,
  };
}

// A cache of sessions, so that calls do not have to read and decode the session's record.

/** About 5 MB in each generation. */
const GENERATION = 5000;

/** The number of remembered sessions that were read once. A power of two. */
const READ_ONCE = 16_384;

/**
 * A bounded cache of two generations: when the younger is full, it becomes the older, whose entries are dropped unless they are
 * read again. Unlike in an LRU cache, reading a young entry writes nothing.
 */
function createSessionCache() {
  let younger = new Map<string, StoredSession>();
  let older = new Map<string, StoredSession>();
  const readOnce = new Float64Array(READ_ONCE);

  function add(id: string, cached: StoredSession) {
    if (younger.size >= GENERATION) {
      older = younger;
      younger = new Map();
    }
    younger.set(id, cached);
  }

  return {
    get(id: string) {
      const young = younger.get(id);
      if (young !== undefined) return young;
      const old = older.get(id);
      if (old !== undefined) add(id, old);
      return old;
    },
    /**
     * Caches a session, if it is read again soon: with more sessions than have room, each would only burden the garbage
     * collector. `key` is a hash of the ID.
     */
    put(id: string, key: number, cached: StoredSession) {
      const at = (key >>> 0) % READ_ONCE;
      if (readOnce[at] === key) add(id, cached);
      else readOnce[at] = key;
    },
    delete(id: string) {
      younger.delete(id);
      older.delete(id);
    },
  };
}

// §3.1: write-behind of the times when sessions were last used and when they expire. A call touches its session: it sets both
// in memory. They are committed once a second, so that no call waits for the disk. A crash loses the touches of about the last
// second, and nothing else.
//
// A touch does not write the session's record: with a million sessions in use, each would cost a page. Touched times are stored
// together in buckets. Each commit writes some of the changed buckets, and if not all of them, a log of the touches since the
// last commit.

const COMMIT_INTERVAL_MS = 1000;

/** With a million sessions a bucket has 6 KB. */
const BUCKETS = 16_384;

/** A fraction of a millisecond of work: requests run in between. */
const COMMIT_BATCH = 256;

function openTouchedTimes({ root, write }: OpenFolder, clock: Clock) {
  const stored: Database<Buffer, number> = root.openDB({
    name: 'session-times',
    encoding: 'binary',
  });
  const log = openTouchLog(root);
  const buckets: (TimeBucket | undefined)[] = Array.from({ length: BUCKETS });
  /** In the order they changed. */
  const changed: TimeBucket[] = [];
  let committing: readonly TimeBucket[] = [];
  /** Keys touched since the last commit began, and the number of the next commit. */
  let touched: number[] = [];
  let sequence = 0;
  /** True if the log has all changes that the buckets on disk lack. */
  let isLogWhole = true;
  let hasLog = false;
  let isCommitDue = false;
  let isClosed = false;
  let cancelCommit = () => {};

  for (const { sequence: logged, touches } of log.read()) {
    for (let at = 0; at < touches.length; at += ENTRY_LENGTH) {
      const [key = 0, lastAccessedAt = 0, expiresAt = 0] = touches.subarray(at, at + ENTRY_LENGTH);
      const place = locateKey(key);
      setTimes(place, lastAccessedAt, expiresAt);
      markChanged(place.bucket);
    }
    sequence = logged + 1;
    hasLog = true;
  }

  function locateKey(key: number): TimesPlace {
    const id = (key >>> 0) % BUCKETS;
    const bucket = buckets[id] ?? createTimeBucket(id, stored.get(id));
    buckets[id] = bucket;
    return { bucket, key, at: 0, touchedIn: -1 };
  }

  function set(place: TimesPlace, lastAccessedAt: number, expiresAt: number) {
    setTimes(place, lastAccessedAt, expiresAt);
    if (place.touchedIn !== sequence) touched.push(place.key);
    place.touchedIn = sequence;
    if (!place.bucket.isChanged) markChanged(place.bucket);
  }

  function markChanged(bucket: TimeBucket) {
    if (bucket.isChanged) return;
    bucket.isChanged = true;
    bucket.changedIn = sequence;
    changed.push(bucket);
    scheduleCommit();
  }

  function scheduleCommit() {
    if (isCommitDue || isClosed || changed.length === 0) return;
    isCommitDue = true;
    cancelCommit = clock.after(COMMIT_INTERVAL_MS, () => void commitChanged());
  }

  async function commitChanged() {
    const isLogged = isLogWhole && changed.length > COMMIT_BATCH;
    isLogWhole = await (isLogged ? commitOldest() : commitAll());
    committing = [];
    isCommitDue = false;
    scheduleCommit();
  }

  /** Commits the buckets that changed first, and a log of all touches of the last second. */
  function commitOldest() {
    const keys = startCommit(COMMIT_BATCH);
    const oldest = changed[0]?.changedIn ?? sequence;
    hasLog = true;
    return commit(committing, () => {
      const touches = keys.flatMap((key) => {
        const place = locateKey(key);
        const lastAccessedAt = readLastAccess(place);
        return lastAccessedAt === undefined
          ? []
          : [key, lastAccessedAt, readTouchedExpiry(place, 0)];
      });
      log.put(sequence - 1, touches);
      log.removeBefore(oldest);
    });
  }

  async function commitAll() {
    startCommit(changed.length);
    let isDone = true;
    for (let first = 0; first < committing.length; first += COMMIT_BATCH) {
      isDone = (await commit(committing.slice(first, first + COMMIT_BATCH))) && isDone;
    }
    if (isDone && hasLog) hasLog = !(await commit([], () => log.removeBefore(sequence)));
    return isDone && !hasLog;
  }

  /** Takes the buckets that changed first, and the touched keys: further touches are for the next commit. */
  function startCommit(size: number): readonly number[] {
    committing = changed.splice(0, size);
    const keys = touched;
    touched = [];
    sequence += 1;
    return keys;
  }

  /** Returns false if it failed, which `write` has reported: the buckets wait for the next commit. */
  async function commit(batch: readonly TimeBucket[], andThen?: () => void) {
    for (const bucket of batch) bucket.isChanged = false;
    try {
      await write(() => {
        batch.forEach(putBucket);
        andThen?.();
      });
      return true;
    } catch {
      batch.forEach(markChanged);
      return false;
    }
  }

  function putBucket(bucket: TimeBucket) {
    if (bucket.length > 0) stored.put(bucket.id, toBytes(bucket));
    else stored.remove(bucket.id);
  }

  return {
    /** Finds the place of a session's times, which is valid as long as the store is open. */
    locate: (sessionId: string) => locateKey(hashSessionId(sessionId)),
    set,
    /** Removes the times of an ended session. */
    remove(sessionId: string) {
      const place = locateKey(hashSessionId(sessionId));
      if (removeTimes(place)) markChanged(place.bucket);
    },
    /** In a transaction: writes the times in memory with it. */
    put: ({ bucket }: TimesPlace) => putBucket(bucket),
    /** Commits all changes in one step. */
    async close() {
      isClosed = true;
      cancelCommit();
      await commit([...committing, ...changed], () => log.removeBefore(sequence + 1));
    },
  };
}

/** 53 bits (cyrb53): a collision among millions of sessions is practically impossible. */
function hashSessionId(id: string) {
  let low = 0xdeadbeef;
  let high = 0x41c6ce57;
  for (let at = 0; at < id.length; at += 1) {
    const code = id.charCodeAt(at);
    low = Math.imul(low ^ code, 2_654_435_761);
    high = Math.imul(high ^ code, 1_597_334_677);
  }
  const mixedLow =
    Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  const mixedHigh =
    Math.imul(high ^ (high >>> 16), 2_246_822_507) ^
    Math.imul(mixedLow ^ (mixedLow >>> 13), 3_266_489_909);
  return 2 ** 32 * (mixedHigh & 0x1fffff) + (mixedLow >>> 0);
}
