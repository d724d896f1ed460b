// Sessions by the time they are due, all of them, and those of one user. The times may lag behind
// touches; whoever needs them right puts them again.
import type { Database, RootDatabase } from 'lmdb';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject } from '../../platform/json.ts';
import type { PageRequest } from '../page.ts';
import { type KeyPage, readKeyPage } from './expiring-records.ts';

/** What writes is to be called inside a transaction. */
export interface SessionIndex {
  has(id: string): boolean;
  size(): number;
  /** Adds a session, or moves it; with a `userId` also among those of the user. */
  put(id: string, dueAt: number, userId: string | undefined): void;
  /** False when it is not there. */
  remove(id: string, userId: string | undefined): boolean;
  /** Those that are due by `now`, the earliest first. */
  listDue(now: number, limit: number): readonly string[];
  /** Those of the user that are due first. */
  listFirstOfUser(userId: string, limit: number): readonly DueSession[];
  countUserSessions(userId: string): number;
  /** Those that are due last, of all or of one user. */
  readPage(request: PageRequest, userId: string | undefined): KeyPage;
}

export interface DueSession {
  readonly id: string;
  /** Epoch milliseconds. */
  readonly dueAt: number;
}

type DueKey = [dueAt: number, id: string];

/** The user's `sub`, hashed: keys have a largest size. */
type UserKey = [user: string, dueAt: number, id: string];

export function openSessionIndex(root: RootDatabase): SessionIndex {
  /** Session id → the time under which it stands in the others. */
  const times: Database<number, string> = root.openDB({ name: 'session-index' });
  const all: Database<true, DueKey> = root.openDB({ name: 'sessions-due' });
  const ofUsers: Database<true, UserKey> = root.openDB({ name: 'user-sessions-due' });

  const buildUserRange = (userId: string) => {
    const user = hashSha256(userId);
    return { start: [user, 0], end: [user, Number.MAX_VALUE] };
  };

  function remove(id: string, userId: string | undefined): boolean {
    const dueAt = times.get(id);
    if (dueAt === undefined) return false;
    all.remove([dueAt, id]);
    if (userId !== undefined) ofUsers.remove([hashSha256(userId), dueAt, id]);
    times.remove(id);
    return true;
  }

  return {
    has: (id) => times.get(id) !== undefined,
    size: () => countEntries(times.getStats()),
    put(id, dueAt, userId) {
      remove(id, userId);
      times.put(id, dueAt);
      all.put([dueAt, id], true);
      if (userId !== undefined) ofUsers.put([hashSha256(userId), dueAt, id], true);
    },
    remove,
    listDue: (now, limit) =>
      [...all.getKeys({ start: [0, ''], end: [now + 1, ''], limit })].map(([, id]) => id),
    listFirstOfUser: (userId, limit) =>
      [...ofUsers.getKeys({ ...buildUserRange(userId), limit })].map(([, dueAt, id]) => ({
        id,
        dueAt,
      })),
    readPage: (request, userId) =>
      userId === undefined
        ? readKeyPage(all, [], request)
        : readKeyPage(ofUsers, [hashSha256(userId)], request),
    countUserSessions: (userId) => ofUsers.getKeysCount(buildUserRange(userId)),
  };
}

/** The types of lmdb leave open what the statistics hold. */
function countEntries(stats: unknown): number {
  if (isObject(stats) && typeof stats.entryCount === 'number') return stats.entryCount;
  throw new Error('lmdb does not say how many entries there are');
}
