// §2.1: implements the port Sessions on lmdb: sessions, their index, and the limit of a user's sessions.
import type { Database, RootDatabase } from 'lmdb';
import type { Clock } from '../../platform/clock.ts';
import { isObject } from '../../platform/json.ts';
import { hashOwner, isOwnedBy, readOwner } from '../keys.ts';
import type { PageRequest } from '../page.ts';
import type { ListedSession, Owner, Sessions } from '../store.ts';
import type { OpenFolder } from './folder.ts';
import { getExpiry, openSessionRecords, type StoredSession, toRecord } from './session-records.ts';
import { readKeyPage } from './time-buckets.ts';

/** A few milliseconds of work: requests run in between. */
const SWEEP_BATCH = 500;

/** Sessions of one user that are read together. */
const MAX_BATCH = 500;

export function createEmbeddedSessions(folder: OpenFolder, clock: Clock, sessionKeyPrefix: string) {
  const { root, write, ensureOpen } = folder;
  const records = openSessionRecords(folder, clock, sessionKeyPrefix);
  const index = openSessionIndex(root);

  function remove(id: string, owner: Owner | undefined) {
    records.remove(id);
    return index.remove(id, owner);
  }

  /** Returns false if the owner has no such session. */
  const changeOwned = (
    id: string,
    owner: Owner | undefined,
    change: (session: StoredSession) => void,
  ) =>
    write(() => {
      const session = records.findInTransaction(id);
      if (session === undefined || !isOwnedBy(session.record, owner)) return false;
      change(session);
      return true;
    });

  /** Removes an index entry whose session is gone (true), else updates its time. */
  function sweepIndexEntry(id: string) {
    const owner = records.readOwner(id);
    const expiresAt = records.readExpiry(id);
    if (expiresAt <= clock.now()) return remove(id, owner);
    // Sessions from before a limit was set count as soon as their user has a limited one.
    const isLimited = owner !== undefined && index.listFirstOfUser(owner, 1).length > 0;
    index.remove(id, owner);
    index.put(id, expiresAt, isLimited ? owner : undefined);
    return false;
  }

  const port: Sessions = {
    async createSession(session, ttlSeconds, userMax = 0) {
      const endedIds = await write(() => {
        const { sessionId: id } = session;
        const expiresAt = clock.now() + ttlSeconds * 1000;
        const limitedUser = userMax > 0 ? readOwner(session) : undefined;
        records.put(session, expiresAt);
        index.put(id, expiresAt, limitedUser);
        return limitedUser === undefined ? [] : endOldest(limitedUser, id, userMax);
      });
      endedIds.forEach(records.forgetRemoved);
      return endedIds;
    },
    /** On disk before the reply, with the time that a call has just set. */
    async setSessionLogLevel(id, owner, logLevel) {
      const isSet = await changeOwned(id, owner, (session) =>
        records.replace(session, { ...toRecord(session), logLevel }),
      );
      records.forgetChanged(id);
      return isSet;
    },
    async endSession(id, owner) {
      const hasEnded = await changeOwned(id, owner, () => remove(id, owner));
      if (hasEnded) records.forgetRemoved(id);
      return hasEnded;
    },
    async claimExpiredSession(id) {
      ensureOpen();
      // Looked up first: a flood of unknown IDs must not become a flood of writes.
      if (!index.has(id)) return false;
      const isClaimed = await write(
        () => records.findInTransaction(id) === undefined && sweepIndexEntry(id),
      );
      if (isClaimed) records.forgetRemoved(id);
      return isClaimed;
    },

    async sweepSessions() {
      let claimed = 0;
      for (;;) {
        ensureOpen();
        const due = index.listDue(clock.now(), SWEEP_BATCH);
        if (due.length === 0) return claimed;
        const gone = await write(() => due.filter(sweepIndexEntry));
        gone.forEach(records.forgetRemoved);
        claimed += gone.length;
      }
    },
    async countSessions() {
      ensureOpen();
      return index.size();
    },
    async listSessions(request, owner) {
      ensureOpen();
      const { items, next } = index.readPage(request, owner);
      return { items: items.flatMap(({ id }) => readListed(id) ?? []), next };
    },
  };
  /** `close` commits touches that are only in memory. */
  return { ...port, accessSession: records.access, close: records.close };

  /** Undefined also for a damaged session, which must not hide all others. */
  function readListed(id: string): ListedSession | undefined {
    try {
      // Bypasses the cache, which is for sessions in use.
      const session = records.findInTransaction(id);
      return session && { record: toRecord(session), expiresAt: getExpiry(session) };
    } catch {
      return undefined;
    }
  }

  /**
   * Ends sessions of a user who has too many (§12), in a transaction: those that expire first, but never the new one. Returns
   * their IDs, and corrects times of the index on the way.
   */
  function endOldest(owner: Owner, newId: string, max: number): readonly string[] {
    const now = clock.now();
    const ended: string[] = [];
    let excess = index.countUserSessions(owner) - max;
    for (let size = 2; excess > 0; size = Math.min(2 * size, MAX_BATCH)) {
      const first = index.listFirstOfUser(owner, size).filter(({ id }) => id !== newId);
      if (first.length === 0) break;
      let hasMoved = false;
      for (const { id, dueAt } of first) {
        const expiresAt = records.readExpiry(id);
        if (expiresAt > dueAt) {
          index.put(id, expiresAt, owner);
          hasMoved = true;
        } else if (!hasMoved && excess > 0) {
          excess -= 1;
          if (expiresAt > now) {
            remove(id, owner);
            ended.push(id);
          } else {
            // It stays in the index until it is counted as expired.
            index.remove(id, owner);
            index.put(id, dueAt, undefined);
          }
        }
      }
    }
    return ended;
  }
}

// The index: sessions by the time they are due, all of them and those of each user. The times may lag behind touches; they are
// corrected on demand.

type DueKey = [dueAt: number, id: string];

/** The owner's hash. */
type UserKey = [user: string, dueAt: number, id: string];

/** Call functions that write inside a transaction. */
function openSessionIndex(root: RootDatabase) {
  /** Maps session IDs to their times in the other databases. */
  const times: Database<number, string> = root.openDB({ name: 'session-index' });
  const all: Database<true, DueKey> = root.openDB({ name: 'sessions-due' });
  const ofUsers: Database<true, UserKey> = root.openDB({ name: 'user-sessions-due' });

  const buildUserRange = (owner: Owner) => {
    const user = hashOwner(owner);
    return { start: [user, 0], end: [user, Number.MAX_VALUE] };
  };

  function remove(id: string, owner: Owner | undefined) {
    const dueAt = times.get(id);
    if (dueAt === undefined) return false;
    all.remove([dueAt, id]);
    if (owner !== undefined) ofUsers.remove([hashOwner(owner), dueAt, id]);
    times.remove(id);
    return true;
  }

  return {
    has: (id: string) => times.get(id) !== undefined,
    size() {
      // The types of lmdb do not describe the statistics.
      const stats: unknown = times.getStats();
      if (isObject(stats) && typeof stats.entryCount === 'number') return stats.entryCount;
      throw new Error('lmdb does not say how many entries there are');
    },
    /** Adds a session, or moves it; with an owner also among those of the user. */
    put(id: string, dueAt: number, owner: Owner | undefined) {
      remove(id, owner);
      times.put(id, dueAt);
      all.put([dueAt, id], true);
      if (owner !== undefined) ofUsers.put([hashOwner(owner), dueAt, id], true);
    },
    /** Returns false if it is absent. */
    remove,
    /** Lists sessions that are due by `now`, the earliest first. */
    listDue: (now: number, limit: number) =>
      [...all.getKeys({ start: [0, ''], end: [now + 1, ''], limit })].map(([, id]) => id),
    listFirstOfUser: (owner: Owner, limit: number) =>
      [...ofUsers.getKeys({ ...buildUserRange(owner), limit })].map(([, dueAt, id]) => ({
        id,
        dueAt,
      })),
    /** Reads sessions that are due last, of all or of one user. */
    readPage: (request: PageRequest, owner: Owner | undefined) =>
      owner === undefined
        ? readKeyPage(all, [], request)
        : readKeyPage(ofUsers, [hashOwner(owner)], request),
    countUserSessions: (owner: Owner) => ofUsers.getKeysCount(buildUserRange(owner)),
  };
}
