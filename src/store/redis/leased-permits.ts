// §8.7: what processes have taken of windows in advance, as Redis keeps it: beside the log of a window a hash of when
// permits end to count → how many. Few fields, however many permits: ends are rounded up.
import { randomUUID } from 'node:crypto';
import { buildLeasedKey, buildReturnedKey, LEASED_MARK_KEY } from '../keys.ts';
import type { RedisClient } from './connection.ts';

/** The part of its window: the longer a share lasts, the longer its permits count, and the fewer are asked for. */
const LIFE_PART = 1 / 12;
const MAX_LIFE_MS = 5000;

/** Milliseconds for which a process may use a share. */
export const toShareLife = (windowMs: number): number =>
  Math.min(windowMs * LIFE_PART, MAX_LIFE_MS);

/** Fewer are not worth a share: rare callers cost what they cost without any. */
export const MIN_PERMITS = 4;

/** A share is at most this part of the limit, and of what is left: one that goes unused is hardly missed. */
export const PART_OF_MAX = 1 / 20;
const PART_OF_LEFT = 1 / 8;

/** The number of ends in a window's length. */
const ENDS_PER_WINDOW = 60;

/**
 * For a script that has `now` and `readWrongType`. Where `isMarked`, `sumPermits(w)` is what counts of those of `KEYS[w]`, or
 * the error's text where the hash is of a wrong type. `isCluster` is a cluster's: its scripts see one slot, and so not the mark. Where
 * nobody takes shares, there is none, and it is all that costs anything.
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
 * For the same script. Takes of the window `KEYS[w]` as many of the `wanted` permits as a share may have, where `left`
 * requests have room; answers how many, and when these end to count. A process uses them within a share's life from
 * before it asked, so whenever it does, they count for a whole window after. Rounded up, because \`now\` was rounded down.
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

/** Permits of one share that were not used. */
export interface UnusedPermits {
  /** The key of the window. */
  readonly key: string;
  /** As Redis named it. */
  readonly end: string;
  readonly permits: number;
}

/** ioredis sends a command again where a node of a cluster closed its connection, perhaps after it ran it: for so long it tries. */
const RESENT_MS = 60_000;

/**
 * KEYS: what names this command, then hashes. ARGV: for each an end, and how many of its permits were not used. None is
 * returned that is not there, nor twice.
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

/** On a cluster all must be of one window. EVAL, since of an EVALSHA that Redis does not know the second try comes after what was sent meanwhile. */
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
