// Sessions in lmdb, each until it expires. What is read here has touches (touched-times.ts) that are not
// yet on disk.
import type { Database } from 'lmdb';
import type { Clock } from '../../platform/clock.ts';
import { buildSessionKey } from '../keys.ts';
import { readOwner } from '../owner.ts';
import type { Owner, SessionRecord } from '../store.ts';
import {
  type ExpiringRecord,
  readExpiring,
  readExpiry,
  writeExpiring,
} from './expiring-records.ts';
import type { OpenFolder } from './folder.ts';
import { readExpiry as readTouchedExpiry, type TimesPlace } from './time-buckets.ts';
import { openTouchedTimes } from './touched-times.ts';

export interface StoredSession {
  /** As it lies in lmdb: touches change its times elsewhere. */
  readonly record: SessionRecord;
  /** When it is gone if it was never touched. */
  readonly expiresAt: number;
  /** Its times, if it was touched. */
  readonly touched: TimesPlace;
}

/** When a session is gone: epoch milliseconds. */
export const getExpiry = ({ touched, expiresAt }: StoredSession): number =>
  readTouchedExpiry(touched) ?? expiresAt;

export interface EmbeddedSessionRecords {
  /**
   * Undefined when there is none, or when it has expired.
   *
   * @throws Error when the record is damaged, or of a later version.
   */
  find(id: string): StoredSession | undefined;
  /** Sets the times of a session that was found; they are on disk a second later. */
  touch(session: StoredSession, lastAccessedAt: number, expiresAt: number): void;

  /** As `find`, beside the cache; in a transaction it sees what that and those before it have written. */
  findInTransaction(id: string): StoredSession | undefined;
  /** In a transaction: epoch milliseconds; 0 where there is none, or a damaged one. */
  readExpiry(id: string): number;
  /** In a transaction: of a session that may have expired, or be damaged. */
  readOwner(id: string): Owner | undefined;
  /** In a transaction: a new session. */
  put(record: SessionRecord, expiresAt: number): void;
  /** In a transaction: a changed record, with its times; `forgetChanged` once it is committed. */
  replace(session: StoredSession, record: SessionRecord): void;
  /** In a transaction; `forgetRemoved` once it is committed. */
  remove(id: string): void;

  /** What is in memory of a session is no longer true. */
  forgetChanged(id: string): void;
  forgetRemoved(id: string): void;
  /** Commits touches that are not yet on disk. */
  close(): Promise<void>;
}

export interface SessionRecordsOptions extends OpenFolder {
  readonly sessionKeyPrefix: string;
  readonly clock: Clock;
}

export function openSessionRecords(options: SessionRecordsOptions): EmbeddedSessionRecords {
  const { root, ensureOpen, sessionKeyPrefix, clock } = options;
  const records: Database<ExpiringRecord<SessionRecord>, string> = root.openDB({
    name: 'sessions',
  });
  const cache = createSessionCache<StoredSession>();
  const times = openTouchedTimes(options);
  const buildKey = (id: string) => buildSessionKey(sessionKeyPrefix, id);

  function read(id: string): StoredSession | undefined {
    const stored = readExpiring(records, buildKey(id));
    if (stored === undefined) return undefined;
    return { record: stored.value, expiresAt: stored.expiresAt, touched: times.locate(id) };
  }

  const isAlive = (session: StoredSession | undefined): session is StoredSession =>
    session !== undefined && getExpiry(session) > clock.now();

  function put(record: SessionRecord, expiresAt: number): void {
    records.put(buildKey(record.sessionId), writeExpiring(record, expiresAt));
  }

  return {
    find(id) {
      ensureOpen();
      const cached = cache.get(id);
      const session = cached ?? read(id);
      if (!isAlive(session)) return undefined;
      if (cached === undefined) cache.put(id, session.touched.key, session);
      return session;
    },
    touch: ({ touched }, lastAccessedAt, expiresAt) =>
      times.set(touched, lastAccessedAt, expiresAt),

    findInTransaction(id) {
      const session = read(id);
      return isAlive(session) ? session : undefined;
    },
    readExpiry(id) {
      const stored = readExpiry(records, buildKey(id));
      return stored === 0 ? 0 : (readTouchedExpiry(times.locate(id)) ?? stored);
    },
    readOwner(id) {
      try {
        const record = records.get(buildKey(id))?.value;
        return record ? readOwner(record) : undefined;
      } catch {
        return undefined;
      }
    },
    put,
    replace(session, record) {
      put(record, getExpiry(session));
      times.put(session.touched);
    },
    remove: (id) => void records.remove(buildKey(id)),

    forgetChanged: cache.delete,
    forgetRemoved(id) {
      cache.delete(id);
      times.remove(id);
    },
    close: times.close,
  };
}

// Sessions that were read lately, so that a call needs not read and decode its session's record.

/** Bounded; forgets those that were not read for long. */
interface SessionCache<Cached> {
  get(id: string): Cached | undefined;
  /** `key` is a number that stands for the id. */
  put(id: string, key: number, cached: Cached): void;
  delete(id: string): void;
}

/** Some 5 MB in each generation. */
const GENERATION = 5000;

/** How many of those that were read once are remembered. A power of two. */
const READ_ONCE = 16_384;

/**
 * In two generations: when the younger is full, it becomes the older, whose entries are forgotten
 * unless they are read again. Reading one of the younger writes nothing, as moving it to the end of
 * a list would.
 */
function createSessionCache<Cached>(): SessionCache<Cached> {
  let younger = new Map<string, Cached>();
  let older = new Map<string, Cached>();
  const readOnce = new Float64Array(READ_ONCE);

  function add(id: string, cached: Cached): void {
    if (younger.size >= GENERATION) {
      older = younger;
      younger = new Map();
    }
    younger.set(id, cached);
  }

  return {
    get(id) {
      const young = younger.get(id);
      if (young !== undefined) return young;
      const old = older.get(id);
      if (old !== undefined) add(id, old);
      return old;
    },
    // Only what is read again soon is kept: of more sessions than have room, each would only be in the
    // garbage collector's way.
    put(id, key, cached) {
      const at = (key >>> 0) % READ_ONCE;
      if (readOnce[at] === key) add(id, cached);
      else readOnce[at] = key;
    },
    delete(id) {
      younger.delete(id);
      older.delete(id);
    },
  };
}
