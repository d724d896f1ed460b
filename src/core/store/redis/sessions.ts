// Spec §2.1, decisions 4: sessions and their index, on one server and on a cluster.
import type { Clock } from '../../clock.ts';
import { sessionIndexKey, sessionKey } from '../keys.ts';
import type { Store } from '../store.ts';
import type { Link } from './link.ts';
import { toFields } from './records.ts';
import { createSessionScript, endSessionScript, touchSessionScript } from './scripts.ts';

export interface SessionsOptions {
  readonly link: Link;
  readonly prefix: string;
  readonly clock: Clock;
  /** A cluster keeps session and index in different slots: two steps in place of one script. */
  readonly isCluster: boolean;
}

type SessionSteps = Pick<
  Store,
  | 'createSession'
  | 'touchSession'
  | 'endSession'
  | 'takeExpiredSession'
  | 'sweepSessions'
  | 'countSessions'
>;

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
  const together = isCluster ? [] : [index];

  const leaveIndex = async (id: string) =>
    (await link.run((client) => client.zrem(index, id))) === 1;

  return {
    async createSession(session, ttlSeconds) {
      const { sessionId: id } = session;
      // First the index: an entry whose session never came is swept, a session without an entry
      // would live uncounted.
      if (isCluster) {
        const dueAt = clock.now() + ttlSeconds * 1000;
        await link.run((client) => client.zadd(index, dueAt, id));
      }
      await link.run((client) =>
        createSessionScript(
          client,
          [keyOf(id), ...together],
          [id, ttlSeconds, ...toFields(session)],
        ),
      );
    },

    async touchSession(id, owner, changes, ttlSeconds) {
      const args = [owner ?? '', ttlSeconds, ...toFields(changes)];
      return (await link.run((client) => touchSessionScript(client, [keyOf(id)], args))) === 1;
    },

    async endSession(id, owner) {
      const args = [owner ?? '', id];
      const ended = await link.run((client) =>
        endSessionScript(client, [keyOf(id), ...together], args),
      );
      if (ended !== 1) return false;
      if (isCluster) await leaveIndex(id);
      return true;
    },

    // No script: a session that is gone stays gone, so nothing can come between the two steps.
    async takeExpiredSession(id) {
      const exists = await link.run((client) => client.exists(keyOf(id)));
      return exists === 0 && leaveIndex(id);
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
    const leftMs = await link.run((client) => client.pttl(keyOf(id)));
    if (leftMs < 0) return leaveIndex(id);
    // XX: a session that is ended at this moment must not come back into the index.
    await link.run((client) => client.zadd(index, 'XX', clock.now() + leftMs, id));
    return false;
  }
}
