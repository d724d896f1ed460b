// §2.1: a session as a Redis hash, and back; and the scripts that change it with the sets in which it stands.
import { checkRecordVersion } from '../records.ts';
import type { Owner, SessionRecord } from '../store.ts';
import { createScript, NOW } from './command-runner.ts';

/** Field, value, field, value … as HSET takes them. */
export const toHashFields = (session: SessionRecord): readonly string[] =>
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
export const PERSON_FIELD = 'person';

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
  if (Number.isNaN(record.createdAt + record.lastAccessedAt)) {
    throw new Error('A session in Redis is damaged');
  }
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

const readString = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined;

/** Epoch milliseconds; NaN where there are none. */
const readTime = (value: unknown): number => (value === null ? Number.NaN : Number(value));

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
export const runCreateSession = createScript(`${NOW}${ADD_TO_USER_SET}
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
export const runAddUserSession = createScript(`${NOW}${ADD_TO_USER_SET}
if ARGV[4] == '1' and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
addToUserSet(KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), now)
return 1
`);

/** KEYS: the user's set. ARGV: how many it may have, id. Takes the id out, while there are too many. */
export const runClaimUserSession = createScript(`
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
export const runSetSessionLogLevel = createScript(`${OWNED}
redis.call('HSET', KEYS[1], 'logLevel', ARGV[3])
return 1
`);

/** KEYS: session, then sorted sets that it leaves. ARGV: owner, its issuer, id. */
export const runEndSession = createScript(`${OWNED}
redis.call('DEL', KEYS[1])
for at = 2, #KEYS do redis.call('ZREM', KEYS[at], ARGV[3]) end
return 1
`);
