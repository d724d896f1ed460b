// Sessions by the time they are due, all of them, and those of one user. The times may lag behind
// touches; whoever needs them right puts them again.
import type { Database, RootDatabase } from 'lmdb';
import { isObject } from '../../platform/json.ts';
import { hashOwner } from '../owner.ts';
import type { PageRequest } from '../page.ts';
import type { Owner } from '../store.ts';
import { type KeyPage, readKeyPage } from './expiring-records.ts';

/** What writes is to be called inside a transaction. */
export interface SessionIndex {
  has(id: string): boolean;
  size(): number;
  /** Adds a session, or moves it; with an owner also among those of the user. */
  put(id: string, dueAt: number, owner: Owner | undefined): void;
  /** False when it is not there. */
  remove(id: string, owner: Owner | undefined): boolean;
  /** Those that are due by `now`, the earliest first. */
  listDue(now: number, limit: number): readonly string[];
  /** Those of the user that are due first. */
  listFirstOfUser(owner: Owner, limit: number): readonly DueSession[];
  countUserSessions(owner: Owner): number;
  /** Those that are due last, of all or of one user. */
  readPage(request: PageRequest, owner: Owner | undefined): KeyPage;
}

export interface DueSession {
  readonly id: string;
  /** Epoch milliseconds. */
  readonly dueAt: number;
}

type DueKey = [dueAt: number, id: string];

/** The owner's hash. */
type UserKey = [user: string, dueAt: number, id: string];

export function openSessionIndex(root: RootDatabase): SessionIndex {
  /** Session id → the time under which it stands in the others. */
  const times: Database<number, string> = root.openDB({ name: 'session-index' });
  const all: Database<true, DueKey> = root.openDB({ name: 'sessions-due' });
  const ofUsers: Database<true, UserKey> = root.openDB({ name: 'user-sessions-due' });

  const buildUserRange = (owner: Owner) => {
    const user = hashOwner(owner);
    return { start: [user, 0], end: [user, Number.MAX_VALUE] };
  };

  function remove(id: string, owner: Owner | undefined): boolean {
    const dueAt = times.get(id);
    if (dueAt === undefined) return false;
    all.remove([dueAt, id]);
    if (owner !== undefined) ofUsers.remove([hashOwner(owner), dueAt, id]);
    times.remove(id);
    return true;
  }

  return {
    has: (id) => times.get(id) !== undefined,
    size: () => countEntries(times.getStats()),
    put(id, dueAt, owner) {
      remove(id, owner);
      times.put(id, dueAt);
      all.put([dueAt, id], true);
      if (owner !== undefined) ofUsers.put([hashOwner(owner), dueAt, id], true);
    },
    remove,
    listDue: (now, limit) =>
      [...all.getKeys({ start: [0, ''], end: [now + 1, ''], limit })].map(([, id]) => id),
    listFirstOfUser: (owner, limit) =>
      [...ofUsers.getKeys({ ...buildUserRange(owner), limit })].map(([, dueAt, id]) => ({
        id,
        dueAt,
      })),
    readPage: (request, owner) =>
      owner === undefined
        ? readKeyPage(all, [], request)
        : readKeyPage(ofUsers, [hashOwner(owner)], request),
    countUserSessions: (owner) => ofUsers.getKeysCount(buildUserRange(owner)),
  };
}

/** The types of lmdb leave open what the statistics hold. */
function countEntries(stats: unknown): number {
  if (isObject(stats) && typeof stats.entryCount === 'number') return stats.entryCount;
  throw new Error('lmdb does not say how many entries there are');
}
