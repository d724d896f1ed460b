// §2.1: sessions in lmdb, their index, and how many a user may have.
import type { Database } from 'lmdb';
import type { Clock } from '../../clock.ts';
import { sessionKey } from '../keys.ts';
import type { SessionOperations, SessionRecord } from '../store.ts';
import { createEndOldest } from './end-oldest.ts';
import {
  createRecord,
  type ExpiringRecord,
  readExpiry,
  readUnexpired,
} from './expiring-records.ts';
import type { DataFolder } from './folder.ts';
import { openSessionIndex } from './session-index.ts';

export interface EmbeddedSessionsOptions extends Omit<DataFolder, 'close'> {
  readonly prefix: string;
  readonly clock: Clock;
}

export interface EmbeddedSessions extends SessionOperations {
  readSessionSync(id: string): SessionRecord | undefined;
}

/** A few milliseconds of work: requests come in between. */
const SWEEP_BATCH = 500;

export function createEmbeddedSessions(options: EmbeddedSessionsOptions): EmbeddedSessions {
  const { root, prefix, clock, write, ensureOpen } = options;
  const sessions: Database<ExpiringRecord<SessionRecord>, string> = root.openDB({
    name: 'sessions',
  });
  const index = openSessionIndex(root);
  const keyOf = (id: string) => sessionKey(prefix, id);

  function readSessionSync(id: string): SessionRecord | undefined {
    ensureOpen();
    return readUnexpired(sessions, keyOf(id), clock.now());
  }

  /** Of a session that may have expired, or be damaged. */
  function readOwner(id: string): string | undefined {
    try {
      return sessions.get(keyOf(id))?.value.userId;
    } catch {
      return undefined;
    }
  }

  function remove(id: string, owner: string | undefined): boolean {
    sessions.remove(keyOf(id));
    return index.remove(id, owner);
  }

  const endOldest = createEndOldest({
    index,
    readExpiry: (id) => readExpiry(sessions, keyOf(id)),
    remove,
  });

  /** One index entry: removed (true) when its session is gone, else given its new time. */
  function sweepIndexEntry(id: string): boolean {
    const owner = readOwner(id);
    const expiresAt = readExpiry(sessions, keyOf(id));
    if (expiresAt <= clock.now()) return remove(id, owner);
    // Sessions from before there was a limit count as soon as their user has one that does.
    const isLimited = owner !== undefined && index.listFirstOfUser(owner, 1).length > 0;
    index.put(id, expiresAt, isLimited ? owner : undefined);
    return false;
  }

  return {
    readSessionSync,
    readSession: async (id) => readSessionSync(id),
    createSession: (session, ttlSeconds, userMax = 0) =>
      write(() => {
        const { sessionId: id, userId } = session;
        const expiresAt = clock.now() + ttlSeconds * 1000;
        const limitedUser = userMax > 0 ? userId : undefined;
        sessions.put(keyOf(id), createRecord(session, expiresAt));
        index.put(id, expiresAt, limitedUser);
        return limitedUser === undefined
          ? []
          : endOldest({ owner: limitedUser, newId: id, max: userMax, now: clock.now() });
      }),
    touchSession: (id, owner, changes, ttlSeconds) =>
      write(() => {
        const session = readSessionSync(id);
        if (session === undefined || session.userId !== owner) return false;
        const expiresAt = clock.now() + ttlSeconds * 1000;
        sessions.put(keyOf(id), createRecord({ ...session, ...changes }, expiresAt));
        return true;
      }),
    endSession: (id, owner) =>
      write(() => {
        const session = readSessionSync(id);
        if (session === undefined || session.userId !== owner) return false;
        remove(id, owner);
        return true;
      }),
    // Looked up first: a flood of unknown ids must not become a flood of writes.
    async claimExpiredSession(id) {
      ensureOpen();
      return index.has(id) && write(() => readSessionSync(id) === undefined && sweepIndexEntry(id));
    },

    async sweepSessions() {
      let claimed = 0;
      for (let due = listDue(); due.length > 0; due = listDue()) {
        claimed += await write(() => due.filter(sweepIndexEntry).length);
      }
      return claimed;
    },
    async countSessions() {
      ensureOpen();
      return index.size();
    },
  };

  function listDue(): readonly string[] {
    ensureOpen();
    return index.listDue(clock.now(), SWEEP_BATCH);
  }
}
