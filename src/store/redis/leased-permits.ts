// §8.7: permits that processes have leased from windows, as stored in Redis: besides the log of a window, a hash maps the time
// when permits stop counting to their number. Times are rounded up, so that there are few fields for any number of permits.
import { randomUUID } from 'node:crypto';
import { buildLeasedKey, buildReturnedKey, LEASED_MARK_KEY } from '../keys.ts';
import type { RedisClient } from './connection.ts';

/**
 * The part of the window that a share lasts for: the longer it is, the longer its permits count, and the fewer requests Redis
 * gets.
 */
const LIFE_PART = 1 / 12;
const MAX_LIFE_MS = 5000;

/** Milliseconds that a process may use a share for. */
export const toShareLife = (windowMs: number): number =>
  Math.min(windowMs * LIFE_PART, MAX_LIFE_MS);

/** Smaller shares are not worth it: rare callers are counted directly. */
export const MIN_PERMITS = 4;

/** A share is at most this part of the limit, and of the remaining requests, so that an unused share hardly matters. */
export const PART_OF_MAX = 1 / 20;
const PART_OF_LEFT = 1 / 8;

/** The number of distinct end times per window. */
const ENDS_PER_WINDOW = 60;

/**
 * For a script that defines `now` and `readWrongType`. If `isMarked`, `sumPermits(w)` returns the number of counting permits of
 * `KEYS[w]`, or the error's text if the hash has a wrong type. `isCluster` is true for scripts on a cluster, which see one slot
 * and therefore not the mark. Without any leases there is no mark, and checking for it is the only cost.
 */
export const SUM_PERMITS = `
local firstEnds = {}
local isMarked = isCluster or redis.call('EXISTS', '${LEASED_MARK_KEY}') == 1

local function leasedKey(w) return '${buildLeasedKey("' .. KEYS[w] .. '")}' end

local function sumPermits(w)
  local fields = redis.pcall('HGETALL', leasedKey(w))
  if fields.err then return readWrongType(fields) end
  local sum = 0
  for at = 1, #fields, 2 do
    local ends = tonumber(fields[at])
    if ends > now then
      sum = sum + tonumber(fields[at + 1])
      firstEnds[w] = math.min(ends, firstEnds[w] or ends)
    else
      redis.call('HDEL', leasedKey(w), fields[at])
    end
  end
  return sum
end
`;

/**
 * For the same script. Leases up to `wanted` permits of the window `KEYS[w]`, as many as a share may have, with `left` remaining
 * requests; returns their number, and when they stop counting. A process uses them within a share's life from the time before its
 * request, and each counts for a whole window after its use. Rounded up, because `now` was rounded down.
 */
export const TAKE_PERMITS = `
local function keep(key, ms)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, ms) end
end

local function takePermits(w, wanted, length, max, left)
  local permits = math.floor(math.min(wanted, max * ${PART_OF_MAX}, left * ${PART_OF_LEFT}))
  if permits < ${MIN_PERMITS} then return 0, '' end
  local life, step = math.min(length * ${LIFE_PART}, ${MAX_LIFE_MS}), math.ceil(length / ${ENDS_PER_WINDOW})
  local ends = math.ceil((now + 1 + life + length) / step) * step
  local field = string.format('%.0f', ends)
  redis.call('HINCRBY', leasedKey(w), field, permits)
  keep(leasedKey(w), ends - now)
  if not isCluster then
    redis.call('SET', '${LEASED_MARK_KEY}', '', 'NX')
    keep('${LEASED_MARK_KEY}', ends - now)
  end
  return permits, field
end
`;

/** Unused permits of one share. */
export interface UnusedPermits {
  /** The key of the window. */
  readonly key: string;
  /** As returned by Redis. */
  readonly end: string;
  readonly permits: number;
}

/**
 * ioredis resends a command if a cluster node closed the connection, perhaps after running the command; this is how long it
 * tries.
 */
const RESENT_MS = 60_000;

/**
 * KEYS: the ID of this command, then hashes. ARGV: an end time and a number of unused permits for each. Returns no permits that
 * are gone, and none twice.
 */
const RETURN_PERMITS = `
if not redis.call('SET', KEYS[1], '', 'NX', 'PX', ${RESENT_MS}) then return 0 end
for i = 2, #KEYS do
  local ends, unused = ARGV[2 * i - 3], tonumber(ARGV[2 * i - 2])
  local found = redis.pcall('HGET', KEYS[i], ends)
  local permits = type(found) == 'string' and tonumber(found) or 0
  if permits > unused then redis.call('HINCRBY', KEYS[i], ends, -unused)
  elseif permits > 0 then redis.call('HDEL', KEYS[i], ends) end
end
return 0
`;

/**
 * On a cluster, all must belong to one window. Uses EVAL: if Redis does not know the script of an EVALSHA, the retry would run
 * after commands sent in between.
 */
export async function returnPermits(client: RedisClient, unused: readonly UnusedPermits[]) {
  const [first] = unused;
  if (first === undefined) return;
  await client.eval(
    RETURN_PERMITS,
    unused.length + 1,
    buildReturnedKey(first.key, randomUUID()),
    ...unused.map(({ key }) => buildLeasedKey(key)),
    ...unused.flatMap(({ end, permits }) => [end, permits]),
  );
}
