// §2.1: sessions in lmdb, their index, and how many a user may have.
import type { Clock } from '../../clock.ts';
import type { SessionOperations, SessionRecord } from '../store.ts';
import { createEndOldest } from './end-oldest.ts';
import type { DataFolder } from './folder.ts';
import { openSessionIndex } from './session-index.ts';
import { openSessionRecords } from './session-records.ts';

export interface EmbeddedSessionsOptions extends Omit<DataFolder, 'close'> {
  readonly sessionKeyPrefix: string;
  readonly clock: Clock;
}

export interface EmbeddedSessions extends SessionOperations {
  readSessionSync(id: string): SessionRecord | undefined;
}

/** A few milliseconds of work: requests come in between. */
const SWEEP_BATCH = 500;

export function createEmbeddedSessions(options: EmbeddedSessionsOptions): EmbeddedSessions {
  const { root, clock, write, ensureOpen } = options;
  const records = openSessionRecords(options);
  const index = openSessionIndex(root);

  function remove(id: string, owner: string | undefined): boolean {
    records.remove(id);
    return index.remove(id, owner);
  }

  const endOldest = createEndOldest({ index, readExpiry: records.readExpiry, remove });

  /** One index entry: removed (true) when its session is gone, else given its new time. */
  function sweepIndexEntry(id: string): boolean {
    const owner = records.readOwner(id);
    const expiresAt = records.readExpiry(id);
    if (expiresAt <= clock.now()) return remove(id, owner);
    // Sessions from before there was a limit count as soon as their user has one that does.
    const isLimited = owner !== undefined && index.listFirstOfUser(owner, 1).length > 0;
    index.put(id, expiresAt, isLimited ? owner : undefined);
    return false;
  }

  return {
    readSessionSync: records.read,
    readSession: async (id) => records.read(id),
    createSession: (session, ttlSeconds, userMax = 0) =>
      write(() => {
        const { sessionId: id, userId } = session;
        const expiresAt = clock.now() + ttlSeconds * 1000;
        const limitedUser = userMax > 0 ? userId : undefined;
        records.put(id, session, expiresAt);
        index.put(id, expiresAt, limitedUser);
        return limitedUser === undefined
          ? []
          : endOldest({ owner: limitedUser, newId: id, max: userMax, now: clock.now() });
      }),
    touchSession: (id, owner, changes, ttlSeconds) =>
      write(() => {
        const session = records.read(id);
        if (session === undefined || session.userId !== owner) return false;
        const expiresAt = clock.now() + ttlSeconds * 1000;
        records.put(id, { ...session, ...changes }, expiresAt);
        return true;
      }),
    endSession: (id, owner) =>
      write(() => {
        const session = records.read(id);
        if (session === undefined || session.userId !== owner) return false;
        remove(id, owner);
        return true;
      }),
    // Looked up first: a flood of unknown ids must not become a flood of writes.
    async claimExpiredSession(id) {
      ensureOpen();
      return index.has(id) && write(() => records.read(id) === undefined && sweepIndexEntry(id));
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
