// §2.1: the port Sessions on Redis: sessions and their index, on one server and on a cluster.
import { buildSessionIndexKey, buildSessionKey, buildUserSessionsKey } from '../keys.ts';
import { hashOwner, type OwnedRecord, readOwner } from '../owner.ts';
import type { TimedEntry } from '../page.ts';
import { checkRecordVersion, RECORD_VERSION } from '../records.ts';
import type { ListedSession, Owner, SessionRecord, Sessions } from '../store.ts';
import {
  type ChangeKey,
  createScript,
  NOW,
  type RedisAccess,
  readSetPage,
  removeFromSet,
  toEntries,
} from './command-runner.ts';

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
      if (isCluster && userSet !== undefined)
        return addUserSession(id, userSet, ttlSeconds, userMax);
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
  async function sweepEntry(id: string) {
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
  async function addUserSession(newId: string, userSet: string, ttlSeconds: number, max: number) {
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

// §2.1: a session as a Redis hash, and back; and the scripts that change it with the sets in which it stands.

/** Field, value, field, value … as HSET takes them. */
const toHashFields = (session: SessionRecord): readonly string[] =>
  Object.entries(session).flatMap(([field, value]) =>
    value === undefined ? [] : [field, String(value)],
  );

/** The fields that are read, in the order in which `parseSessionFields` takes their values. */
export const SESSION_FIELDS = [
  'sessionId',
  'userId',
  'userIssuer',
  'lastAccessedAt',
  'createdAt',
  'protocolVersion',
  'clientInfo',
  'clientCapabilities',
  'logLevel',
  'server',
  'version',
] as const;

/** For operators; calls do not read it. */
const PERSON_FIELD = 'person';

/**
 * The session that HMGET of `SESSION_FIELDS` found, undefined when there is none.
 *
 * @throws Error when the hash is not a session: somebody else wrote it.
 */
export function parseSessionFields(values: readonly unknown[]): SessionRecord | undefined {
  const [
    sessionId,
    userId,
    userIssuer,
    lastAccessedAt,
    createdAt,
    protocolVersion,
    clientInfo,
    clientCapabilities,
    logLevel,
    server,
    version,
  ] = values;
  if (
    typeof sessionId !== 'string' ||
    typeof protocolVersion !== 'string' ||
    typeof clientCapabilities !== 'string'
  ) {
    if (values.every((value) => value === null)) return undefined;
    throw new Error('A session in Redis is damaged');
  }
  checkRecordVersion(readString(version), 'A session in Redis');
  const record = {
    sessionId,
    createdAt: readTime(createdAt),
    lastAccessedAt: readTime(lastAccessedAt),
    protocolVersion,
    userId: readString(userId),
    userIssuer: readString(userIssuer),
    clientInfo: readString(clientInfo),
    clientCapabilities,
    logLevel: readString(logLevel),
    server: readString(server),
  };
  if (Number.isNaN(record.createdAt + record.lastAccessedAt))
    throw new Error('A session in Redis is damaged');
  return record;
}

/** Undefined also for a damaged one. */
export function tryParseSession(values: unknown): SessionRecord | undefined {
  try {
    return Array.isArray(values) ? parseSessionFields(values) : undefined;
  } catch {
    return undefined;
  }
}

const readString = (value: unknown) => (typeof value === 'string' ? value : undefined);

/** Epoch milliseconds; NaN where there are none. */
const readTime = (value: unknown) => (value === null ? Number.NaN : Number(value));

// For a driver in which not every call slides its session: only one that has less than this share of its full time left, or more than that,
// by the time-to-live in Redis. Not by `lastAccessedAt`: clocks differ, and the full time may have been another one then.

const SLIDE_BELOW = 0.95;

export const isSlideDue = (leftMs: number, fullSeconds: number): boolean =>
  leftMs <= fullSeconds * 1000 * SLIDE_BELOW || leftMs > fullSeconds * 1000;

/** The same in a script, of `key` and `ttl`, in seconds. */
export const IS_SLIDE_DUE = `
local function isSlideDue(key, ttl)
  local left = redis.call('PTTL', key)
  return left <= ttl * 1000 * ${SLIDE_BELOW} or left > ttl * 1000
end
`;

/** For a driver in which each call slides its session. */
export const IS_ALWAYS_DUE = `
local function isSlideDue() return true end
`;

// The scripts.

/**
 * Adds a session to its user's set. The set lives for twice its newest session's time: until then
 * that session is gone, or the sweep has added it again. What the sweep should have added again an
 * hour ago is gone.
 */
const ADD_TO_USER_SET = `
local function addToUserSet(set, id, expiry, lifetime, now)
  redis.call('ZREMRANGEBYSCORE', set, '-inf', now - 3600000)
  redis.call('ZADD', set, expiry, id)
  if redis.call('PTTL', set) < 2 * lifetime then redis.call('PEXPIRE', set, 2 * lifetime) end
end
`;

/**
 * KEYS: session[, index[, the user's set]]. ARGV: id, ttl (s), how many sessions the user may have, prefix
 * of sessions, then the hash's fields. Answers the ids of the sessions that were ended. Entries that lag
 * behind touches are corrected first, some 3,000 at most; the next opening goes on.
 */
const runCreateSession = createScript(`${NOW}${ADD_TO_USER_SET}
local id, lifetime, max = ARGV[1], ARGV[2] * 1000, tonumber(ARGV[3])
redis.call('HSET', KEYS[1], unpack(ARGV, 5))
redis.call('PEXPIRE', KEYS[1], lifetime)
if KEYS[2] then redis.call('ZADD', KEYS[2], now + lifetime, id) end
local ended = {}
if not KEYS[3] then return ended end
local set = KEYS[3]
addToUserSet(set, id, now + lifetime, lifetime, now)
local over = redis.call('ZCARD', set) - max
local size = 1
for round = 1, 32 do
  local first = over > 0 and redis.call('ZRANGE', set, 0, size, 'WITHSCORES') or {}
  local moved = {}
  for at = 1, #first, 2 do
    local other = first[at]
    local left = other ~= id and redis.call('PTTL', ARGV[4] .. other)
    if left and left >= 0 and now + left > tonumber(first[at + 1]) then
      table.insert(moved, now + left)
      table.insert(moved, other)
    elseif left and #moved == 0 and over > 0 then
      over = over - 1
      redis.call('ZREM', set, other)
      if redis.call('DEL', ARGV[4] .. other) == 1 then
        redis.call('ZREM', KEYS[2], other)
        table.insert(ended, other)
      end
    end
  end
  if #moved > 0 then redis.call('ZADD', set, unpack(moved)) end
  if over <= 0 then break end
  size = math.min(2 * size, 128)
end
return ended
`);

/** KEYS: the user's set. ARGV: id, expiry, time (ms) that is left, 1 to add only where a set is. */
const runAddUserSession = createScript(`${NOW}${ADD_TO_USER_SET}
if ARGV[4] == '1' and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
addToUserSet(KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), now)
return 1
`);

/** KEYS: the user's set. ARGV: how many it may have, id. Takes the id out, while there are too many. */
const runClaimUserSession = createScript(`
if redis.call('ZCARD', KEYS[1]) <= tonumber(ARGV[1]) then return 0 end
return redis.call('ZREM', KEYS[1], ARGV[2])
`);

/** True if a session, by its fields `userId` and `userIssuer`, is that of an owner as `encodeOwner` names it. */
export const IS_OWNED_BY = `
local function isOwnedBy(userId, userIssuer, owner, issuer)
  return (userId or '') == owner and (userIssuer or '') == issuer
end
`;

/** '' for nobody. */
export const encodeOwner = (owner: Owner | undefined): readonly [owner: string, issuer: string] => [
  owner?.sub ?? '',
  owner?.issuer ?? '',
];

const OWNED = `${IS_OWNED_BY}
local found = redis.call('HMGET', KEYS[1], 'sessionId', 'userId', 'userIssuer')
if not found[1] or not isOwnedBy(found[2], found[3], ARGV[1], ARGV[2]) then return 0 end
`;

/** KEYS: session. ARGV: owner, its issuer, log level. */
const runSetSessionLogLevel = createScript(`${OWNED}
redis.call('HSET', KEYS[1], 'logLevel', ARGV[3])
return 1
`);

/** KEYS: session, then sorted sets that it leaves. ARGV: owner, its issuer, id. */
const runEndSession = createScript(`${OWNED}
redis.call('DEL', KEYS[1])
for at = 2, #KEYS do redis.call('ZREM', KEYS[at], ARGV[3]) end
return 1
`);
