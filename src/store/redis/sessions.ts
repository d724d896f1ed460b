// §2.1: the port Sessions on Redis: sessions and their index, on one server and on a cluster.
import { buildSessionIndexKey, buildSessionKey, buildUserSessionsKey } from '../keys.ts';
import { hashOwner, type OwnedRecord, readOwner } from '../owner.ts';
import type { TimedEntry } from '../page.ts';
import { RECORD_VERSION } from '../records.ts';
import type { ListedSession, Owner, Sessions } from '../store.ts';
import {
  type ChangeKey,
  type RedisAccess,
  readSetPage,
  removeFromSet,
  toEntries,
} from './command-runner.ts';
import {
  encodeOwner,
  PERSON_FIELD,
  runAddUserSession,
  runClaimUserSession,
  runCreateSession,
  runEndSession,
  runSetSessionLogLevel,
  SESSION_FIELDS,
  toHashFields,
  tryParseSession,
} from './session-hash.ts';

/** A field and its value. */
const VERSION_FIELD = ['version', RECORD_VERSION] as const;

/** Small enough for one deadline. */
const SWEEP_BATCH = 200;

/** Sessions of one user: most entries are right at once; where the first ones are not, more are looked at together. */
const MAX_BATCH = 64;
/** The next session that is opened goes on where this one stopped. */
const MAX_ROUNDS = 100;

/** `forget` where reads are tracked: the session of that key has ended. */
export function createRedisSessions(
  { commands, sessionKeyPrefix, clock, isCluster }: RedisAccess,
  changeKey: ChangeKey,
  forget?: (key: string) => void,
): Sessions {
  /** The key of the sorted set of live sessions. */
  const index = buildSessionIndexKey(sessionKeyPrefix);
  const buildKey = (id: string) => buildSessionKey(sessionKeyPrefix, id);
  const buildUserSetKey = (owner: Owner) =>
    buildUserSessionsKey(sessionKeyPrefix, hashOwner(owner));
  /** Undefined for a session that is nobody's. */
  const findUserSetKey = (session: OwnedRecord) => {
    const owner = readOwner(session);
    return owner && buildUserSetKey(owner);
  };

  /** Undefined also for a damaged one, which must not hide all others. */
  async function readListed(id: string): Promise<ListedSession | undefined> {
    const key = buildKey(id);
    const [[person, ...values], leftMs] = await Promise.all([
      commands.run((client) => client.hmget(key, PERSON_FIELD, ...SESSION_FIELDS)),
      commands.run((client) => client.pttl(key)),
    ]);
    const record = tryParseSession(values);
    return record === undefined || leftMs < 0
      ? undefined
      : { record: { ...record, person: person ?? undefined }, expiresAt: clock.now() + leftMs };
  }

  return {
    async createSession(session, ttlSeconds, userMax = 0) {
      const { sessionId: id } = session;
      const key = buildKey(id);
      const userSet = userMax === 0 ? undefined : findUserSetKey(session);
      if (isCluster) {
        // First the index: an entry whose session never came is swept, a session without one never.
        const dueAt = clock.now() + ttlSeconds * 1000;
        await commands.run((client) => client.zadd(index, dueAt, id));
      }
      const sets = userSet === undefined ? [index] : [index, userSet];
      const keys = isCluster ? [key] : [key, ...sets];
      const fields = [...VERSION_FIELD, ...toHashFields(session)];
      const args = [id, ttlSeconds, isCluster ? 0 : userMax, sessionKeyPrefix, ...fields];
      const answer = await changeKey(key, (client) => runCreateSession(client, keys, args));
      if (isCluster && userSet !== undefined) {
        return addUserSession(id, userSet, ttlSeconds, userMax);
      }
      const ended = Array.isArray(answer) ? answer.map(String) : [];
      for (const one of ended) forget?.(buildKey(one));
      return ended;
    },

    async setSessionLogLevel(id, owner, logLevel) {
      const key = buildKey(id);
      const found = await changeKey(key, (client) =>
        runSetSessionLogLevel(client, [key], [...encodeOwner(owner), logLevel]),
      );
      return found === 1;
    },

    async endSession(id, owner) {
      const sets = [index, ...(owner === undefined ? [] : [buildUserSetKey(owner)])];
      const key = buildKey(id);
      const keys = isCluster ? [key] : [key, ...sets];
      const ended = await changeKey(key, (client) =>
        runEndSession(client, keys, [...encodeOwner(owner), id]),
      );
      if (ended !== 1) return false;
      if (isCluster) await Promise.all(sets.map((set) => removeFromSet(commands, set, id)));
      return true;
    },

    // No script: a session that is gone stays gone, so nothing can come between the two steps.
    async claimExpiredSession(id) {
      const exists = await commands.run((client) => client.exists(buildKey(id)));
      return exists === 0 && removeFromSet(commands, index, id);
    },

    async sweepSessions() {
      let removed = 0;
      for (;;) {
        const due = await commands.run((client) =>
          client.zrangebyscore(index, '-inf', clock.now(), 'LIMIT', 0, SWEEP_BATCH),
        );
        removed += (await Promise.all(due.map(sweepEntry))).filter(Boolean).length;
        if (due.length < SWEEP_BATCH) return removed;
      }
    },

    countSessions: () => commands.run((client) => client.zcard(index)),

    async listSessions(request, owner) {
      const set = owner === undefined ? index : buildUserSetKey(owner);
      const { entries, next } = await readSetPage(commands, set, request);
      const found = await Promise.all(entries.map(({ id }) => readListed(id)));
      return { items: found.filter((session) => session !== undefined), next };
    },
  };

  // The sweep goes through the index entries that are due. Those of gone sessions are removed, those of touched
  // sessions get their new time.

  /** True when the entry was removed. */
  async function sweepEntry(id: string): Promise<boolean> {
    const [leftMs, [userId, userIssuer]] = await Promise.all([
      commands.run((client) => client.pttl(buildKey(id))),
      commands.run((client) => client.hmget(buildKey(id), 'userId', 'userIssuer')),
    ]);
    if (leftMs < 0) return removeFromSet(commands, index, id);
    const expiresAt = clock.now() + leftMs;
    // XX: a session that is ended at this moment must not come back into the index.
    await commands.run((client) => client.zadd(index, 'XX', expiresAt, id));
    const userSet = findUserSetKey({
      userId: userId ?? undefined,
      userIssuer: userIssuer ?? undefined,
    });
    if (userSet === undefined) return false;
    // For sessions that are limited: also those that were opened before they were.
    const args = [id, expiresAt, leftMs, 1];
    const added = await commands.run((client) => runAddUserSession(client, [userSet], args));
    if (added === 0) return false;
    // It may have been ended meanwhile.
    const exists = await commands.run((client) => client.exists(buildKey(id)));
    if (exists === 0) await removeFromSet(commands, userSet, id);
    return false;
  }

  // The sessions of one user on a cluster, in a sorted set by expiry (§12). Its scores lag
  // behind touches, which are many: they are corrected where it matters, when one more session is opened,
  // and by the sweep. The set outlives its sessions, and no user who went away leaves one behind.

  /** False when the entry was right already. */
  async function correctEntry(
    userSet: string,
    { id, time: dueAt }: TimedEntry,
    corrected: Set<string>,
  ) {
    const leftMs = await commands.run((client) => client.pttl(buildKey(id)));
    const expiresAt = clock.now() + leftMs;
    // Once each: clocks and distances differ by more than a millisecond.
    const isRight = leftMs >= 0 && (expiresAt <= dueAt || corrected.has(id));
    if (isRight) return false;
    corrected.add(id);
    if (leftMs < 0) await commands.run((client) => client.zrem(userSet, id));
    else await commands.run((client) => client.zadd(userSet, 'XX', expiresAt, id));
    return true;
  }

  /**
   * Adds a new session, and ends those that are too many. Resolves to the ids of those. The set and the sessions lie in
   * different slots, so they cannot be judged in one script. Who ends a session has taken it out of the set before, and only
   * while there were too many: whatever many replicas do at once, as many are left as are allowed.
   */
  async function addUserSession(
    newId: string,
    userSet: string,
    ttlSeconds: number,
    max: number,
  ): Promise<readonly string[]> {
    const ttlMs = ttlSeconds * 1000;
    await commands.run((client) =>
      runAddUserSession(client, [userSet], [newId, clock.now() + ttlMs, ttlMs, 0]),
    );
    const ended: string[] = [];
    const corrected = new Set<string>();
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      if ((await commands.run((client) => client.zcard(userSet))) <= max) break;
      const limit = Math.min(2 ** (round + 1), MAX_BATCH);
      // The times are those at which they are due: a session may expire later.
      const flat = await commands.run((client) =>
        client.zrangebyscore(userSet, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, limit),
      );
      const others = toEntries(flat).filter(({ id }) => id !== newId);
      const [first] = others;
      if (first === undefined) break;
      const corrections = await Promise.all(
        others.map((entry) => correctEntry(userSet, entry, corrected)),
      );
      if (corrections.includes(true)) continue;
      const claimed = await commands.run((client) =>
        runClaimUserSession(client, [userSet], [max, first.id]),
      );
      if (claimed !== 1) continue;
      const removed = await commands.run((client) => client.del(buildKey(first.id)));
      await removeFromSet(commands, index, first.id);
      if (removed === 1) ended.push(first.id);
    }
    return ended;
  }
}
