// Spec §2.1, decisions 4: sessions and their index, on one server and on a cluster.
import type { Clock } from '../../clock.ts';
import { hashSha256 } from '../../sha256.ts';
import { sessionIndexKey, sessionKey, userSessionsKey } from '../keys.ts';
import { RECORD_VERSION } from '../record-version.ts';
import type { SessionRecord, SessionSteps } from '../store.ts';
import type { Link } from './link.ts';
import { toFields } from './records.ts';
import {
  createSessionScript,
  endSessionScript,
  enterUserSessionScript,
  touchSessionScript,
} from './scripts.ts';
import { createClusterUserSessions } from './user-sessions.ts';

export interface SessionsOptions {
  readonly link: Link;
  readonly prefix: string;
  readonly clock: Clock;
  /** A cluster keeps session and sets in different slots: several steps in place of one script. */
  readonly isCluster: boolean;
}

/** A field and its value. */
const VERSION = ['version', RECORD_VERSION] as const;

/** Small enough for one deadline. */
const SWEEP_BATCH = 200;

export function createRedisSessions({
  link,
  prefix,
  clock,
  isCluster,
}: SessionsOptions): SessionSteps {
  const index = sessionIndexKey(prefix);
  const keyOf = (id: string) => sessionKey(prefix, id);
  const setOf = (userId: string) => userSessionsKey(prefix, hashSha256(userId));
  const onCluster = createClusterUserSessions({ link, clock, keyOf, end: removeSession });

  const leave = async (set: string, id: string) =>
    (await link.run((client) => client.zrem(set, id))) === 1;

  async function removeSession(id: string): Promise<boolean> {
    const removed = await link.run((client) => client.del(keyOf(id)));
    await leave(index, id);
    return removed === 1;
  }

  const create = (
    session: SessionRecord,
    ttlSeconds: number,
    { keys = [], userMax = 0 }: { keys?: readonly string[]; userMax?: number },
  ) =>
    link.run((client) =>
      createSessionScript(
        client,
        [keyOf(session.sessionId), ...keys],
        [session.sessionId, ttlSeconds, userMax, prefix, ...VERSION, ...toFields(session)],
      ),
    );

  /** First the index: an entry whose session never came is swept, a session without one never. */
  async function createOnCluster(session: SessionRecord, ttlSeconds: number, userMax: number) {
    const { sessionId: id, userId } = session;
    const dueAt = clock.now() + ttlSeconds * 1000;
    await link.run((client) => client.zadd(index, dueAt, id));
    await create(session, ttlSeconds, {});
    if (userId === undefined || userMax === 0) return [];
    return onCluster.enter({ id, key: setOf(userId), ttlSeconds }, userMax);
  }

  return {
    async createSession(session, ttlSeconds, userMax = 0) {
      if (isCluster) return createOnCluster(session, ttlSeconds, userMax);
      const { userId } = session;
      const sets = userId === undefined || userMax === 0 ? [] : [setOf(userId)];
      const ended = await create(session, ttlSeconds, { keys: [index, ...sets], userMax });
      return Array.isArray(ended) ? ended.map(String) : [];
    },

    async touchSession(id, owner, changes, ttlSeconds) {
      const args = [owner ?? '', ttlSeconds, ...toFields(changes)];
      return (await link.run((client) => touchSessionScript(client, [keyOf(id)], args))) === 1;
    },

    async endSession(id, owner) {
      const sets = [index, ...(owner === undefined ? [] : [setOf(owner)])];
      const keys = [keyOf(id), ...(isCluster ? [] : sets)];
      const ended = await link.run((client) => endSessionScript(client, keys, [owner ?? '', id]));
      if (ended !== 1) return false;
      if (isCluster) await Promise.all(sets.map((set) => leave(set, id)));
      return true;
    },

    // No script: a session that is gone stays gone, so nothing can come between the two steps.
    async takeExpiredSession(id) {
      const exists = await link.run((client) => client.exists(keyOf(id)));
      return exists === 0 && leave(index, id);
    },

    async sweepSessions() {
      let taken = 0;
      for (;;) {
        const due = await link.run((client) =>
          client.zrangebyscore(index, '-inf', clock.now(), 'LIMIT', 0, SWEEP_BATCH),
        );
        taken += (await Promise.all(due.map(settle))).filter(Boolean).length;
        if (due.length < SWEEP_BATCH) return taken;
      }
    },

    countSessions: () => link.run((client) => client.zcard(index)),
  };

  /** One due index entry: taken when its session is gone, else given its new time. */
  async function settle(id: string): Promise<boolean> {
    const [leftMs, userId] = await Promise.all([
      link.run((client) => client.pttl(keyOf(id))),
      link.run((client) => client.hget(keyOf(id), 'userId')),
    ]);
    if (leftMs < 0) return leave(index, id);
    const expiresAt = clock.now() + leftMs;
    // XX: a session that is ended at this moment must not come back into the index.
    await link.run((client) => client.zadd(index, 'XX', expiresAt, id));
    if (userId !== null) await settleOfUser(setOf(userId), id, { expiresAt, leftMs });
    return false;
  }

  /** Where sessions are limited: also those that were opened before they were. */
  async function settleOfUser(set: string, id: string, { expiresAt, leftMs }: Remaining) {
    const args = [id, expiresAt, leftMs, 1];
    const entered = await link.run((client) => enterUserSessionScript(client, [set], args));
    if (entered === 0) return;
    // It may have been ended meanwhile.
    const exists = await link.run((client) => client.exists(keyOf(id)));
    if (exists === 0) await leave(set, id);
  }
}

interface Remaining {
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  readonly leftMs: number;
}
