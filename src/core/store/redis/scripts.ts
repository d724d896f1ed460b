// The steps that must be atomic. Time is the server's, so that replicas agree (decisions 7).
// No script decodes or encodes a client's JSON.
import { createScript } from './script.ts';

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

/**
 * Spec §8: KEYS the windows' sorted sets, then the session's hash where ARGV[3] is 1.
 * ARGV: number of windows, unique suffix, 0 or 1, then length (ms) and maximum of each window.
 * Answers [index of the deciding window or 0, admitted, entries, oldest, now, session's fields].
 */
export const admitScript = createScript(`${NOW}
local windows = tonumber(ARGV[1])
local session = {}
if ARGV[3] == '1' then session = redis.call('HGETALL', KEYS[windows + 1]) end
local function oldest(key)
  return redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or tostring(now)
end
local counts = {}
for i = 1, windows do
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now - tonumber(ARGV[2 + 2 * i]))
  counts[i] = redis.call('ZCARD', KEYS[i])
  if counts[i] >= tonumber(ARGV[3 + 2 * i]) then
    return { i, 0, counts[i], oldest(KEYS[i]), now, session }
  end
end
for i = 1, windows do
  redis.call('ZADD', KEYS[i], now, now .. '-' .. ARGV[2])
  redis.call('PEXPIRE', KEYS[i], ARGV[2 + 2 * i])
end
if windows == 0 then return { 0, 1, 0, tostring(now), now, session } end
return { 1, 1, counts[1] + 1, oldest(KEYS[1]), now, session }
`);

/** KEYS: session[, index]. ARGV: id, ttl (s), then the hash's fields. */
export const createSessionScript = createScript(`${NOW}
redis.call('HSET', KEYS[1], unpack(ARGV, 3))
redis.call('EXPIRE', KEYS[1], ARGV[2])
if KEYS[2] then redis.call('ZADD', KEYS[2], now + ARGV[2] * 1000, ARGV[1]) end
return 1
`);

/** KEYS: one. GETDEL, which servers before 6.2 do not have. */
export const takeScript = createScript(`
local value = redis.call('GET', KEYS[1])
redis.call('DEL', KEYS[1])
return value
`);

const OWNED = `
local found = redis.call('HMGET', KEYS[1], 'sessionId', 'userId')
if not found[1] or (found[2] or '') ~= ARGV[1] then return 0 end
`;

/** KEYS: session. ARGV: owner ('' for none), ttl (s), then the fields that change. */
export const touchSessionScript = createScript(`${OWNED}
redis.call('HSET', KEYS[1], unpack(ARGV, 3))
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
`);

/** KEYS: session[, index]. ARGV: owner ('' for none), id. */
export const endSessionScript = createScript(`${OWNED}
redis.call('DEL', KEYS[1])
if KEYS[2] then redis.call('ZREM', KEYS[2], ARGV[2]) end
return 1
`);
