// §2.1: implements the port Sessions on Redis: sessions and their index, on a single server and on a cluster.
import {
  buildSessionIndexKey,
  buildSessionKey,
  buildUserSessionsKey,
  hashOwner,
  type OwnedRecord,
  readOwner,
} from '../keys.ts';
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

/** Sessions of one user read together: mostly the first entries are correct; otherwise the batches grow. */
const MAX_BATCH = 64;
/** The next new session continues where this limit stopped. */
const MAX_ROUNDS = 100;

/** `forget` is set if reads are tracked: it drops the key of an ended session. */
export function createRedisSessions(
  { commands, sessionKeyPrefix, clock, isCluster }: RedisAccess,
  changeKey: ChangeKey,
  forget?: (key: string) => void,
): Sessions {
  const index = buildSessionIndexKey(sessionKeyPrefix);
  const buildKey = (id: string) => buildSessionKey(sessionKeyPrefix, id);
  const buildUserSetKey = (owner: Owner) =>
    buildUserSessionsKey(sessionKeyPrefix, hashOwner(owner));
  /** Undefined for a session without an owner. */
  const findUserSetKey = (session: OwnedRecord) => {
    const owner = readOwner(session);
    return owner && buildUserSetKey(owner);
  };

  /** Also undefined for a damaged record, which must not hide the others. */
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
        // The index first: an entry without a session gets swept, but a session without an entry never would.
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

    // Needs no script: a session that is gone never returns, so nothing can happen between the two steps.
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
      const { items, next } = await readSetPage(commands, set, request);
      const found = await Promise.all(items.map(({ id }) => readListed(id)));
      return { items: found.filter((session) => session !== undefined), next };
    },
  };

  // The sweep checks the index entries that are due: it removes those of gone sessions, and updates the times of touched ones.

  /** True if the entry was removed. */
  async function sweepEntry(id: string) {
    const [leftMs, [userId, userIssuer]] = await Promise.all([
      commands.run((client) => client.pttl(buildKey(id))),
      commands.run((client) => client.hmget(buildKey(id), 'userId', 'userIssuer')),
    ]);
    if (leftMs < 0) return removeFromSet(commands, index, id);
    const expiresAt = clock.now() + leftMs;
    // XX: a session that ends at this moment must not return to the index.
    await commands.run((client) => client.zadd(index, 'XX', expiresAt, id));
    const userSet = findUserSetKey({
      userId: userId ?? undefined,
      userIssuer: userIssuer ?? undefined,
    });
    if (userSet === undefined) return false;
    // For sessions with a limit per user, including those opened before the limit was set.
    const args = [id, expiresAt, leftMs, 1];
    const added = await commands.run((client) => runAddUserSession(client, [userSet], args));
    if (added === 0) return false;
    // The session may have ended in the meantime.
    const exists = await commands.run((client) => client.exists(buildKey(id)));
    if (exists === 0) await removeFromSet(commands, userSet, id);
    return false;
  }

  // The sessions of one user on a cluster, in a sorted set by expiry (§12). Its scores lag behind the frequent touches: they are
  // corrected when the user opens another session, and by the sweep. The set outlives its sessions, and expires once its user is
  // gone.

  /** False if the entry was correct. */
  async function correctEntry(
    userSet: string,
    { id, time: dueAt }: TimedEntry,
    corrected: Set<string>,
  ) {
    const leftMs = await commands.run((client) => client.pttl(buildKey(id)));
    const expiresAt = clock.now() + leftMs;
    // Each entry is corrected once: clock skew and latency exceed a millisecond.
    const isRight = leftMs >= 0 && (expiresAt <= dueAt || corrected.has(id));
    if (isRight) return false;
    corrected.add(id);
    if (leftMs < 0) await commands.run((client) => client.zrem(userSet, id));
    else await commands.run((client) => client.zadd(userSet, 'XX', expiresAt, id));
    return true;
  }

  /**
   * Adds a new session, and ends excess sessions. Resolves to their IDs. The set and the sessions are in different slots, so one
   * script cannot handle both. Before a session is ended, it is removed from the set, but only while the set is too large:
   * however many replicas do this at once, the allowed number of sessions remains.
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
      // The scores are lower bounds: a session may expire later.
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

// §2.1: converts sessions to and from Redis hashes, and defines the scripts that change them together with their sets.

/** Field, value, field, value … as arguments of HSET. */
const toHashFields = (session: SessionRecord): readonly string[] =>
  Object.entries(session).flatMap(([field, value]) =>
    value === undefined ? [] : [field, String(value)],
  );

/** The fields that are read, in the order that `parseSessionFields` expects. */
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
 * Parses the result of HMGET for `SESSION_FIELDS`, in which missing fields are not strings; undefined if there is no session.
 *
 * @throws Error if the hash is not a session, but was written by another program.
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
    if (!values.some((value) => typeof value === 'string')) return undefined;
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

/** Also undefined for a damaged record. */
export function tryParseSession(values: unknown): SessionRecord | undefined {
  try {
    return Array.isArray(values) ? parseSessionFields(values) : undefined;
  } catch {
    return undefined;
  }
}

const readString = (value: unknown) => (typeof value === 'string' ? value : undefined);

/** Epoch milliseconds; NaN if missing. */
const readTime = (value: unknown) => (typeof value === 'string' ? Number(value) : Number.NaN);

// For drivers where not every call slides its session: a session slides only if less than this part of its full time to live is
// left, or more than the full time, according to Redis. `lastAccessedAt` is not used: clocks differ, and the full time may have
// changed since.

const SLIDE_BELOW = 0.95;

export const isSlideDue = (leftMs: number, fullSeconds: number): boolean =>
  leftMs <= fullSeconds * 1000 * SLIDE_BELOW || leftMs > fullSeconds * 1000;

/** The same condition in a script, for `key` and `ttl` (in seconds). */
export const IS_SLIDE_DUE = `
local function isSlideDue(key, ttl)
  local left = redis.call('PTTL', key)
  return left <= ttl * 1000 * ${SLIDE_BELOW} or left > ttl * 1000
end
`;

/** For drivers where each call slides its session. */
export const IS_ALWAYS_DUE = `
local function isSlideDue() return true end
`;

/**
 * Adds a session to its user's set. The set lives for twice the time to live of its newest session: by then that session is gone,
 * or the sweep has added it again. Entries that the sweep should have renewed an hour ago are removed.
 */
const ADD_TO_USER_SET = `
local function addToUserSet(set, id, expiry, lifetime, now)
  redis.call('ZREMRANGEBYSCORE', set, '-inf', now - 3600000)
  redis.call('ZADD', set, expiry, id)
  if redis.call('PTTL', set) < 2 * lifetime then redis.call('PEXPIRE', set, 2 * lifetime) end
end
`;

/**
 * KEYS: session[, index[, the user's set]]. ARGV: ID, ttl (s), maximum sessions of the user, prefix of sessions, then the hash's
 * fields. Returns the IDs of ended sessions. First corrects entries that lag behind touches, about 3,000 at most; the next new
 * session continues.
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

/** KEYS: the user's set. ARGV: ID, expiry, remaining time (ms), 1 to add only to an existing set. */
const runAddUserSession = createScript(`${NOW}${ADD_TO_USER_SET}
if ARGV[4] == '1' and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
addToUserSet(KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), now)
return 1
`);

/** KEYS: the user's set. ARGV: maximum size, ID. Removes the ID if the set is too large. */
const runClaimUserSession = createScript(`
if redis.call('ZCARD', KEYS[1]) <= tonumber(ARGV[1]) then return 0 end
return redis.call('ZREM', KEYS[1], ARGV[2])
`);

/** True if the owner encoded by `encodeOwner` owns the session with these fields `userId` and `userIssuer`. */
export const IS_OWNED_BY = `
local function isOwnedBy(userId, userIssuer, owner, issuer)
  return (userId or '') == owner and (userIssuer or '') == issuer
end
`;

/** '' for no owner. */
export const encodeOwner = (owner: Owner | undefined): readonly [owner: string, issuer: string] => [
  owner?.sub ?? '',
  owner?.issuer ?? '',
];

const OWNED = `${IS_OWNED_BY}
local found = redis.call('HMGET', KEYS[1], 'sessionId', 'userId', 'userIssuer')
if not found[1] or not isOwnedBy(found[2], found[3], ARGV[1], ARGV[2]) then return 0 end
`;

/** KEYS: session. ARGV: owner, the owner's issuer, log level. */
const runSetSessionLogLevel = createScript(`${OWNED}
redis.call('HSET', KEYS[1], 'logLevel', ARGV[3])
return 1
`);

/** KEYS: session, then sorted sets to remove it from. ARGV: owner, the owner's issuer, ID. */
const runEndSession = createScript(`${OWNED}
redis.call('DEL', KEYS[1])
for at = 2, #KEYS do redis.call('ZREM', KEYS[at], ARGV[3]) end
return 1
`);
