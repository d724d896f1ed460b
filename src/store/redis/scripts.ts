// The steps that must be atomic. Time is the server's, so that replicas agree.
// No script decodes or encodes a client's JSON.
import { createScript } from './lua-script.ts';

/** The server's time in milliseconds. */
export const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

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
export const createSessionScript = createScript(`${NOW}${ADD_TO_USER_SET}
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
export const addUserSessionScript = createScript(`${NOW}${ADD_TO_USER_SET}
if ARGV[4] == '1' and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
addToUserSet(KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), now)
return 1
`);

/** KEYS: the user's set. ARGV: how many it may have, id. Takes the id out, while there are too many. */
export const claimUserSessionScript = createScript(`
if redis.call('ZCARD', KEYS[1]) <= tonumber(ARGV[1]) then return 0 end
return redis.call('ZREM', KEYS[1], ARGV[2])
`);

/** KEYS: one. ARGV: value, ttl (s). SET with NX and GET, which servers before 7.0 refuse. */
export const getOrSetScript = createScript(`
local stored = redis.call('GET', KEYS[1])
if stored then return stored end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return ARGV[1]
`);

/** KEYS: one. GETDEL, which servers before 6.2 do not have. */
export const getAndDeleteScript = createScript(`
local value = redis.call('GET', KEYS[1])
redis.call('DEL', KEYS[1])
return value
`);

/**
 * KEYS: the sorted set of a list. ARGV: key, ttl (s). Entries of values that have expired go; the set lives as long
 * as the last of its values.
 */
export const addToListScript = createScript(`${NOW}
local lifetime = ARGV[2] * 1000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + lifetime, ARGV[1])
if redis.call('PTTL', KEYS[1]) < lifetime then redis.call('PEXPIRE', KEYS[1], lifetime) end
return 1
`);

/** KEYS: a list. ARGV: value, how many are kept, ttl (s). */
export const addRecentScript = createScript(`
redis.call('LPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], 0, ARGV[2] - 1)
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
`);

/**
 * KEYS: the sorted set of a budget. ARGV: entry, which begins with its bytes, its bytes, how many may count, ttl (s).
 * Entries whose time is over go.
 */
export const reserveBytesScript = createScript(`${NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local sum = tonumber(ARGV[2])
for _, entry in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if entry ~= ARGV[1] then sum = sum + tonumber(string.match(entry, '^%d+')) end
end
if sum > tonumber(ARGV[3]) then return 0 end
local lifetime = ARGV[4] * 1000
redis.call('ZADD', KEYS[1], now + lifetime, ARGV[1])
if redis.call('PTTL', KEYS[1]) < lifetime then redis.call('PEXPIRE', KEYS[1], lifetime) end
return 1
`);

const OWNED = `
local found = redis.call('HMGET', KEYS[1], 'sessionId', 'userId')
if not found[1] or (found[2] or '') ~= ARGV[1] then return 0 end
`;

/** KEYS: session. ARGV: owner ('' for none), log level. */
export const setSessionLogLevelScript = createScript(`${OWNED}
redis.call('HSET', KEYS[1], 'logLevel', ARGV[2])
return 1
`);

/** KEYS: session, then sorted sets that it leaves. ARGV: owner ('' for none), id. */
export const endSessionScript = createScript(`${OWNED}
redis.call('DEL', KEYS[1])
for at = 2, #KEYS do redis.call('ZREM', KEYS[at], ARGV[2]) end
return 1
`);
