// §2.1: the port Sessions on Redis: sessions and their index, on one server and on a cluster.
import type { Clock } from '../../platform/clock.ts';
import { buildSessionIndexKey, buildSessionKey, buildUserSessionsKey } from '../keys.ts';
import { hashOwner, type OwnedRecord, readOwner } from '../owner.ts';
import { RECORD_VERSION } from '../records.ts';
import type { ListedSession, Owner, SessionRecord, Sessions } from '../store.ts';
import { createClusterUserSessions } from './cluster-user-sessions.ts';
import type { CommandRunner } from './command-runner.ts';
import {
  addUserSessionScript,
  createSessionScript,
  encodeOwner,
  endSessionScript,
  PERSON_FIELD,
  parseSessionFields,
  SESSION_FIELDS,
  setSessionLogLevelScript,
  toHashFields,
} from './session-hash.ts';
import { readSetPage, removeFromSet } from './sorted-sets.ts';

export interface RedisSessionsOptions {
  readonly commands: CommandRunner;
  readonly sessionKeyPrefix: string;
  readonly clock: Clock;
  /** A cluster keeps session and sets in different slots: several steps in place of one script. */
  readonly isCluster: boolean;
}

/** A field and its value. */
const VERSION_FIELD = ['version', RECORD_VERSION] as const;

export function createRedisSessions(options: RedisSessionsOptions): Sessions {
  const { commands, sessionKeyPrefix, clock, isCluster } = options;
  const index = buildSessionIndexKey(sessionKeyPrefix);
  const buildKey = (id: string) => buildSessionKey(sessionKeyPrefix, id);
  const buildUserSetKey = (owner: Owner) =>
    buildUserSessionsKey(sessionKeyPrefix, hashOwner(owner));
  const findUserSetKey = (session: OwnedRecord) => {
    const owner = readOwner(session);
    return owner && buildUserSetKey(owner);
  };
  const clusterUserSessions = createClusterUserSessions({ commands, clock, index, buildKey });

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

    sweepSessions: createSessionSweep({ commands, clock, index, buildKey, findUserSetKey }),

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

interface SessionSweepOptions {
  readonly commands: CommandRunner;
  readonly clock: Clock;
  /** Key of the sorted set of live sessions. */
  readonly index: string;
  buildKey(id: string): string;
  /** Undefined for a session that is nobody's. */
  findUserSetKey(session: OwnedRecord): string | undefined;
}

/** Small enough for one deadline. */
const SWEEP_BATCH = 200;

function createSessionSweep(options: SessionSweepOptions): Sessions['sweepSessions'] {
  const { commands, clock, index, buildKey, findUserSetKey } = options;

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

  /** Where sessions are limited: also those that were opened before they were. */
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
