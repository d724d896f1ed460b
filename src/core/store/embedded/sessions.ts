// Spec §2.1, decisions 4 and 10: sessions in lmdb, their index, and how many a user may have.
import type { Database, RootDatabase } from 'lmdb';
import type { Clock } from '../../clock.ts';
import { sessionKey } from '../keys.ts';
import type { SessionRecord, SessionSteps } from '../store.ts';
import { type Expiring, expiring, expiryOf, readLive } from './expiring.ts';
import type { Folder } from './folder.ts';
import { openSessionIndex } from './session-index.ts';

export interface EmbeddedSessionsOptions extends Pick<Folder, 'write' | 'ensureOpen'> {
  readonly root: RootDatabase;
  readonly prefix: string;
  readonly clock: Clock;
}

export interface EmbeddedSessions extends SessionSteps {
  read(id: string): SessionRecord | undefined;
}

/** A few milliseconds of work: requests come in between. */
export const SWEEP_BATCH = 500;

export function createEmbeddedSessions(options: EmbeddedSessionsOptions): EmbeddedSessions {
  const { root, prefix, clock, write, ensureOpen } = options;
  const sessions: Database<Expiring<SessionRecord>, string> = root.openDB({ name: 'sessions' });
  const index = openSessionIndex(root);
  const keyOf = (id: string) => sessionKey(prefix, id);

  function read(id: string): SessionRecord | undefined {
    ensureOpen();
    return readLive(sessions, keyOf(id), clock.now());
  }

  /** Of a session that may have expired, or be damaged. */
  function ownerOf(id: string): string | undefined {
    try {
      return sessions.get(keyOf(id))?.value.userId;
    } catch {
      return undefined;
    }
  }

  function remove(id: string, owner: string | undefined): boolean {
    sessions.remove(keyOf(id));
    return index.leave(id, owner);
  }

  /** One index entry: taken when its session is gone, else given its new time. */
  function settle(id: string): boolean {
    const owner = ownerOf(id);
    const expiresAt = expiryOf(sessions, keyOf(id));
    if (expiresAt <= clock.now()) return remove(id, owner);
    // Sessions from before there was a limit count as soon as their user has one that does.
    const isLimited = owner !== undefined && index.firstOf(owner, 1).length > 0;
    index.enter(id, expiresAt, isLimited ? owner : undefined);
    return false;
  }

  /** Ends what is more than `max`, but not `own`. Times are put right on the way. */
  function endOldest(owner: string, own: string, max: number): readonly string[] {
    const ended: string[] = [];
    let over = index.countOf(owner) - max;
    for (let size = 2; over > 0; size = Math.min(2 * size, SWEEP_BATCH)) {
      const first = index.firstOf(owner, size).filter(({ id }) => id !== own);
      if (first.length === 0) break;
      let moved = false;
      for (const { id, dueAt } of first) {
        const expiresAt = expiryOf(sessions, keyOf(id));
        if (expiresAt > dueAt) {
          index.enter(id, expiresAt, owner);
          moved = true;
        } else if (!moved && over > 0) {
          over -= 1;
          if (expiresAt > clock.now()) {
            remove(id, owner);
            ended.push(id);
          } else {
            // It stays in the index until somebody counts it as expired.
            index.leave(id, owner);
            index.enter(id, dueAt, undefined);
          }
        }
      }
    }
    return ended;
  }

  return {
    read,
    createSession: (value, ttlSeconds, userMax = 0) =>
      write(() => {
        const { sessionId: id, userId } = value;
        const expiresAt = clock.now() + ttlSeconds * 1000;
        const limited = userMax > 0 ? userId : undefined;
        sessions.put(keyOf(id), expiring(value, expiresAt));
        index.enter(id, expiresAt, limited);
        return limited === undefined ? [] : endOldest(limited, id, userMax);
      }),
    touchSession: (id, owner, changes, ttlSeconds) =>
      write(() => {
        const value = read(id);
        if (value === undefined || value.userId !== owner) return false;
        const expiresAt = clock.now() + ttlSeconds * 1000;
        sessions.put(keyOf(id), expiring({ ...value, ...changes }, expiresAt));
        return true;
      }),
    endSession: (id, owner) =>
      write(() => {
        const value = read(id);
        if (value === undefined || value.userId !== owner) return false;
        remove(id, owner);
        return true;
      }),
    // Looked up first: a flood of unknown ids must not become a flood of writes.
    async takeExpiredSession(id) {
      ensureOpen();
      return index.has(id) && write(() => read(id) === undefined && settle(id));
    },

    async sweepSessions() {
      let taken = 0;
      for (let due = dueNow(); due.length > 0; due = dueNow()) {
        taken += await write(() => due.filter(settle).length);
      }
      return taken;
    },
    async countSessions() {
      ensureOpen();
      return index.size();
    },
  };

  function dueNow(): readonly string[] {
    ensureOpen();
    return index.due(clock.now(), SWEEP_BATCH);
  }
}
