// §2.1: the port Sessions on Redis: sessions and their index, on one server and on a cluster.
import { buildSessionIndexKey, buildSessionKey, buildUserSessionsKey } from '../keys.ts';
import { hashOwner, type OwnedRecord, readOwner } from '../owner.ts';
import { RECORD_VERSION } from '../records.ts';
import type { ListedSession, Owner, SessionRecord, Sessions } from '../store.ts';
import { type RedisAccess, readSetPage, removeFromSet } from './command-runner.ts';
import {
  addUserSessionScript,
  claimUserSessionScript,
  createSessionScript,
  encodeOwner,
  endSessionScript,
  PERSON_FIELD,
  parseSessionFields,
  SESSION_FIELDS,
  setSessionLogLevelScript,
  toHashFields,
} from './session-hash.ts';

/** A field and its value. */
const VERSION_FIELD = ['version', RECORD_VERSION] as const;

export function createRedisSessions(redis: RedisAccess): Sessions {
  const { commands, sessionKeyPrefix, clock, isCluster } = redis;
  const index = buildSessionIndexKey(sessionKeyPrefix);
  const buildKey = (id: string) => buildSessionKey(sessionKeyPrefix, id);
  const buildUserSetKey = (owner: Owner) =>
    buildUserSessionsKey(sessionKeyPrefix, hashOwner(owner));
  const findUserSetKey = (session: OwnedRecord) => {
    const owner = readOwner(session);
    return owner && buildUserSetKey(owner);
  };
  const clusterUserSessions = createClusterUserSessions(redis, index, buildKey);

  const runCreateScript = (
    session: SessionRecord,
    ttlSeconds: number,
    { sets = [], userMax = 0 }: { sets?: readonly string[]; userMax?: number },
  ) =>
    commands.run((client) =>
      createSessionScript.run(
        client,
        [buildKey(session.sessionId), ...sets],
        [
          session.sessionId,
          ttlSeconds,
          userMax,
          sessionKeyPrefix,
          ...VERSION_FIELD,
          ...toHashFields(session),
        ],
      ),
    );

  /** First the index: an entry whose session never came is swept, a session without one never. */
  async function createOnCluster(session: SessionRecord, ttlSeconds: number, userMax: number) {
    const { sessionId: id } = session;
    const dueAt = clock.now() + ttlSeconds * 1000;
    await commands.run((client) => client.zadd(index, dueAt, id));
    await runCreateScript(session, ttlSeconds, {});
    const userSet = findUserSetKey(session);
    if (userSet === undefined || userMax === 0) return [];
    return clusterUserSessions.add({ id, userSet, ttlSeconds }, userMax);
  }

  /** Undefined also for a damaged one, which must not hide all others. */
  async function readListed(id: string): Promise<ListedSession | undefined> {
    const key = buildKey(id);
    const [[person, ...values], leftMs] = await Promise.all([
      commands.run((client) => client.hmget(key, PERSON_FIELD, ...SESSION_FIELDS)),
      commands.run((client) => client.pttl(key)),
    ]);
    const record = tryParse(values);
    return record === undefined || leftMs < 0
      ? undefined
      : { record: { ...record, person: person ?? undefined }, expiresAt: clock.now() + leftMs };
  }

  return {
    async createSession(session, ttlSeconds, userMax = 0) {
      if (isCluster) return createOnCluster(session, ttlSeconds, userMax);
      const userSet = findUserSetKey(session);
      const sets = userSet === undefined || userMax === 0 ? [index] : [index, userSet];
      const ended = await runCreateScript(session, ttlSeconds, { sets, userMax });
      return Array.isArray(ended) ? ended.map(String) : [];
    },

    async setSessionLogLevel(id, owner, logLevel) {
      const found = await commands.run((client) =>
        setSessionLogLevelScript.run(client, [buildKey(id)], [...encodeOwner(owner), logLevel]),
      );
      return found === 1;
    },

    async endSession(id, owner) {
      const sets = [index, ...(owner === undefined ? [] : [buildUserSetKey(owner)])];
      const keys = [buildKey(id), ...(isCluster ? [] : sets)];
      const ended = await commands.run((client) =>
        endSessionScript.run(client, keys, [...encodeOwner(owner), id]),
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

    sweepSessions: createSessionSweep(redis, index, buildKey, findUserSetKey),

    countSessions: () => commands.run((client) => client.zcard(index)),

    async listSessions(request, owner) {
      const set = owner === undefined ? index : buildUserSetKey(owner);
      const { entries, next } = await readSetPage(commands, set, request);
      const found = await Promise.all(entries.map(({ id }) => readListed(id)));
      return { items: found.filter((session) => session !== undefined), next };
    },
  };
}

function tryParse(values: readonly unknown[]): SessionRecord | undefined {
  try {
    return parseSessionFields(values);
  } catch {
    return undefined;
  }
}

// The sweep: goes through the index entries that are due. Those of gone sessions are removed, those of touched
// sessions get their new time.

/** Small enough for one deadline. */
const SWEEP_BATCH = 200;

/** `index` is the key of the sorted set of live sessions. `findUserSetKey`: undefined for a session that is nobody's. */
function createSessionSweep(
  { commands, clock }: RedisAccess,
  index: string,
  buildKey: (id: string) => string,
  findUserSetKey: (session: OwnedRecord) => string | undefined,
): Sessions['sweepSessions'] {
  return async function sweepSessions() {
    let removed = 0;
    for (;;) {
      const due = await commands.run((client) =>
        client.zrangebyscore(index, '-inf', clock.now(), 'LIMIT', 0, SWEEP_BATCH),
      );
      removed += (await Promise.all(due.map(sweepEntry))).filter(Boolean).length;
      if (due.length < SWEEP_BATCH) return removed;
    }
  };

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
    if (userSet !== undefined) await updateUserSet(userSet, id, { expiresAt, leftMs });
    return false;
  }

  /** For sessions that are limited: also those that were opened before they were. */
  async function updateUserSet(userSet: string, id: string, { expiresAt, leftMs }: Remaining) {
    const args = [id, expiresAt, leftMs, 1];
    const added = await commands.run((client) => addUserSessionScript.run(client, [userSet], args));
    if (added === 0) return;
    // It may have been ended meanwhile.
    const exists = await commands.run((client) => client.exists(buildKey(id)));
    if (exists === 0) await removeFromSet(commands, userSet, id);
  }
}

interface Remaining {
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  readonly leftMs: number;
}

// The sessions of one user on a cluster, in a sorted set by expiry (§12). Its scores lag
// behind touches, which are many: they are corrected where it matters, when one more session is opened,
// and by the sweep. The set outlives its sessions, and no user who went away leaves one behind.

export interface ClusterUserSessions {
  /** Adds a new session, and ends those that are too many. Resolves to the ids of those. */
  add(session: NewUserSession, max: number): Promise<readonly string[]>;
}

export interface NewUserSession {
  readonly id: string;
  /** Key of the user's set. */
  readonly userSet: string;
  readonly ttlSeconds: number;
}

/** Most entries are right at once; where the first ones are not, more are looked at together. */
const MAX_BATCH = 64;

/** The next session that is opened goes on where this one stopped. */
const MAX_ROUNDS = 100;

/**
 * On a cluster the set and the sessions lie in different slots, so they cannot be judged in one script.
 * Who ends a session has taken it out of the set before, and only while there were too many: whatever
 * many replicas do at once, as many are left as are allowed. `index` is the key of the sorted set of live sessions.
 */
function createClusterUserSessions(
  { commands, clock }: RedisAccess,
  index: string,
  buildKey: (id: string) => string,
): ClusterUserSessions {
  async function readFirst(userSet: string, limit: number): Promise<readonly Entry[]> {
    const flat = await commands.run((client) =>
      client.zrangebyscore(userSet, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, limit),
    );
    return flat.flatMap((id, at) => (at % 2 === 0 ? [{ id, dueAt: Number(flat[at + 1]) }] : []));
  }

  /** False when the entry was right already. */
  async function correctEntry(userSet: string, { id, dueAt }: Entry, corrected: Set<string>) {
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

  /** False when it is gone. */
  async function endClaimed(id: string): Promise<boolean> {
    const removed = await commands.run((client) => client.del(buildKey(id)));
    await removeFromSet(commands, index, id);
    return removed === 1;
  }

  return {
    async add({ id: newId, userSet, ttlSeconds }, max) {
      const ttlMs = ttlSeconds * 1000;
      await commands.run((client) =>
        addUserSessionScript.run(client, [userSet], [newId, clock.now() + ttlMs, ttlMs, 0]),
      );
      const ended: string[] = [];
      const corrected = new Set<string>();
      for (let round = 0; round < MAX_ROUNDS; round += 1) {
        if ((await commands.run((client) => client.zcard(userSet))) <= max) break;
        const limit = Math.min(2 ** (round + 1), MAX_BATCH);
        const others = (await readFirst(userSet, limit)).filter(({ id }) => id !== newId);
        const [first] = others;
        if (first === undefined) break;
        const corrections = await Promise.all(
          others.map((entry) => correctEntry(userSet, entry, corrected)),
        );
        if (corrections.includes(true)) continue;
        const claimed = await commands.run((client) =>
          claimUserSessionScript.run(client, [userSet], [max, first.id]),
        );
        if (claimed === 1 && (await endClaimed(first.id))) ended.push(first.id);
      }
      return ended;
    },
  };
}

interface Entry {
  readonly id: string;
  /** Epoch milliseconds; the session may expire later. */
  readonly dueAt: number;
}
