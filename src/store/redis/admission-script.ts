// §8, §11: the script that admits requests, many at once: their order is kept, and none fails for
// another. Arguments and replies are numbers in a fixed order, because each costs both sides time.
import {
  type Admission,
  GRANT_VERSION_LENGTH,
  type GrantLookup,
  type LimitWindow,
  NO_GRANT,
  NO_SESSION,
  type SessionAccess,
  type SessionLookup,
  StoreUnavailable,
} from '../store.ts';
import type { RedisClient } from './connection.ts';
import { createScript, NOW } from './lua-script.ts';
import {
  encodeOwner,
  IS_ALWAYS_DUE,
  IS_OWNED_BY,
  IS_SLIDE_DUE,
  parseSessionFields,
  SESSION_FIELDS,
} from './session-hash.ts';

/** A request as the script takes it. */
export interface AdmissionRequest {
  readonly windows: readonly LimitWindow[];
  readonly access: SessionAccess | undefined;
  /** Of the hash of `access`. */
  readonly sessionKey: string;
  readonly grantKey?: string | undefined;
}

/** What its requests share. */
export interface AdmissionBatch {
  readonly suffix: string;
  /** Epoch milliseconds. */
  readonly now: number;
  /** `OIDC_ISSUER`. */
  readonly defaultIssuer: string | undefined;
  /** Whether a session slides only where a share of its time is over. */
  readonly slidesRarely: boolean;
}

/** Of the script's ARGV for a session: none is asked for, or it is only read; else seconds. */
const NO_ACCESS = -1;
const READ_ONLY = 0;

/**
 * Entries that are removed from a window at once. After a pause of busy callers a million may have become
 * too old, and removing those would keep Redis busy for half a second: the next scripts go on.
 */
const MAX_REMOVED = 5000;

/** Of the script's ARGV for a request that names no grant; else the index of its key among those of grants. */
const NO_GRANT_INDEX = 0;

/** Values in the reply for each request. */
const VALUES = 4;

/**
 * KEYS: the windows' sorted sets, each once, then the grants, each once, then the hash of each request that has a
 * session.
 * ARGV: suffix of the entries, time of access (ms), numbers of windows and of grants, the default issuer, length (ms) and
 * maximum of each window, then for each request: the index of its grant (0 for none), how many windows it has, the index of each of
 * these, then -1, or the session's time-to-live (s; 0 to read it only), its owner and the owner's issuer.
 * Answers the time, then for each request: decision, entries and oldest entry of the deciding window,
 * session; then of each grant its version, '' where it is missing. A decision is 1 for admitted, -n for refused by the
 * n-th window, 0 without windows or without the grant. It is the error's text where a key is of a wrong type, and so is
 * the session, and in a list of one the version: that concerns no other request, but any other error concerns all. Each
 * window is cleared, read and written once, however many requests it counts, and each grant read once.
 */
const createAdmissionScript = (slideRule: string) =>
  createScript(`${NOW}${IS_OWNED_BY}${slideRule}
local suffix, accessedAt, windows, grants = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local counts, skipped, oldest, added, versions = {}, {}, {}, {}, {}

local function readWrongType(failure)
  if not string.find(failure.err, 'WRONGTYPE', 1, true) then error(failure.err) end
  return failure.err
end

local function removeOld(w, size)
  local since = now - ARGV[4 + 2 * w]
  local old = size > ${MAX_REMOVED} and redis.call('ZCOUNT', KEYS[w], '-inf', since) or 0
  if old <= ${MAX_REMOVED} then
    return size - redis.call('ZREMRANGEBYSCORE', KEYS[w], '-inf', since)
  end
  redis.call('ZREMRANGEBYRANK', KEYS[w], 0, ${MAX_REMOVED - 1})
  skipped[w] = old - ${MAX_REMOVED}
  return size - old
end

local function count(w)
  if not counts[w] then
    local size = redis.pcall('ZCARD', KEYS[w])
    counts[w] = type(size) == 'table' and readWrongType(size) or removeOld(w, size)
  end
  return counts[w]
end

local function findOldest(w)
  if not oldest[w] then
    local first = skipped[w] or 0
    oldest[w] = tonumber(redis.call('ZRANGE', KEYS[w], first, first, 'WITHSCORES')[2]) or now
  end
  return oldest[w]
end

local function decide(at, size, request)
  for i = 1, size do
    local w = tonumber(ARGV[at + i])
    local entries = count(w)
    if type(entries) == 'string' then return entries, 0, 0 end
    if entries >= tonumber(ARGV[5 + 2 * w]) then return -i, entries, findOldest(w) end
  end
  if size == 0 then return 0, 0, 0 end
  local member = now .. '-' .. suffix .. '.' .. request
  for i = 1, size do
    local w = tonumber(ARGV[at + i])
    counts[w] = counts[w] + 1
    local members = added[w] or {}
    members[#members + 1] = now
    members[#members + 1] = member
    added[w] = members
  end
  local first = tonumber(ARGV[at + 1])
  return 1, counts[first], findOldest(first)
end

local function access(key, ttl, owner, issuer)
  local found = redis.pcall('HMGET', key, '${SESSION_FIELDS.join("', '")}')
  if found.err then return readWrongType(found) end
  if ttl > 0 and found[1] and isOwnedBy(found[2], found[3], owner, issuer, ARGV[5]) and isSlideDue(key, ttl) then
    redis.call('HSET', key, 'lastAccessedAt', accessedAt)
    redis.call('EXPIRE', key, ttl)
    found[4] = accessedAt
  end
  return found
end

for g = 1, grants do
  local version = redis.pcall('GETRANGE', KEYS[windows + g], 0, ${GRANT_VERSION_LENGTH - 1})
  versions[g] = type(version) == 'table' and { readWrongType(version) } or version
end

local replies, request, session, at = { now }, 0, windows + grants, 6 + 2 * windows
local last = #ARGV
while at <= last do
  local version, size = versions[tonumber(ARGV[at])], tonumber(ARGV[at + 1])
  at = at + 1
  local decision, entries, since = 0, 0, 0
  if version ~= '' then decision, entries, since = decide(at, size, request) end
  at = at + size + 1
  local ttl, found = tonumber(ARGV[at]), 0
  if ttl >= 0 then
    session = session + 1
    at = at + 2
    local isRefused = type(decision) == 'number' and decision < 0
    local hasNoGrant = version == '' or type(version) == 'table'
    if not isRefused and not hasNoGrant then found = access(KEYS[session], ttl, ARGV[at - 1], ARGV[at]) end
  end
  at = at + 1
  local to = 4 * request
  replies[to + 2], replies[to + 3], replies[to + 4], replies[to + 5] = decision, entries, since, found
  request = request + 1
end
for w, members in pairs(added) do
  redis.call('ZADD', KEYS[w], unpack(members))
  redis.call('PEXPIRE', KEYS[w], ARGV[4 + 2 * w])
end
for g = 1, grants do replies[4 * request + 1 + g] = versions[g] end
return replies
`);

const slidingScript = createAdmissionScript(IS_ALWAYS_DUE);
const rarelySlidingScript = createAdmissionScript(IS_SLIDE_DUE);

/**
 * Resolves to what each request came to, in their order. `suffix`, which no other batch may have, and
 * the place of a request make its entries unique. `now` is noted as the time of access.
 */
export async function runAdmissionScript(
  client: RedisClient,
  requests: readonly AdmissionRequest[],
  { suffix, now, defaultIssuer, slidesRarely }: AdmissionBatch,
): Promise<readonly Admission[]> {
  const { keys, args, grantIndexes } = encodeRequests(requests, defaultIssuer);
  const script = slidesRarely ? rarelySlidingScript : slidingScript;
  const reply = await script.run(client, keys, [suffix, now, ...args]);
  const firstVersion = 1 + VALUES * requests.length;
  if (!Array.isArray(reply) || reply.length !== firstVersion + grantIndexes.size) {
    throw new Error('Redis answered the admission script with no list of its length');
  }
  return requests.map(({ windows, grantKey }, at) => {
    const index = grantKey === undefined ? undefined : grantIndexes.get(grantKey);
    const grant = index === undefined ? NO_GRANT : readGrant(reply[firstVersion + index - 1]);
    return readAdmission(reply, at, windows, suffix, grant);
  });
}

/** A key is one window, of one length and maximum: requests that share it, or a grant, name it by its index. */
function encodeRequests(requests: readonly AdmissionRequest[], defaultIssuer: string | undefined) {
  const windowKeys: string[] = [];
  const limits: number[] = [];
  const indexes = new Map<string, number>();
  const grantIndexes = new Map<string, number>();
  const sessionKeys: string[] = [];
  const args: (string | number)[] = [];
  for (const { windows, access, sessionKey, grantKey } of requests) {
    args.push(grantKey === undefined ? NO_GRANT_INDEX : getGrantIndex(grantKey), windows.length);
    for (const { key, windowMs, max } of windows) {
      let index = indexes.get(key);
      if (index === undefined) {
        index = windowKeys.push(key);
        limits.push(windowMs, max);
        indexes.set(key, index);
      }
      args.push(index);
    }
    if (access === undefined) {
      args.push(NO_ACCESS);
    } else {
      sessionKeys.push(sessionKey);
      args.push(access.slideSeconds ?? READ_ONLY, ...encodeOwner(access.owner, defaultIssuer));
    }
  }
  return {
    keys: [...windowKeys, ...grantIndexes.keys(), ...sessionKeys],
    args: [windowKeys.length, grantIndexes.size, defaultIssuer ?? '', ...limits, ...args],
    grantIndexes,
  };

  function getGrantIndex(key: string): number {
    const index = grantIndexes.get(key) ?? grantIndexes.size + 1;
    grantIndexes.set(key, index);
    return index;
  }
}

function readAdmission(
  reply: readonly unknown[],
  at: number,
  windows: readonly LimitWindow[],
  suffix: string,
  grant: GrantLookup,
): Admission {
  const first = 1 + VALUES * at;
  const decision = reply[first];
  const session = readSession(reply[first + 3]);
  if (typeof decision !== 'number') {
    const limitFailure = createFailure(decision);
    return { verdict: undefined, entry: undefined, limitFailure, session, grant };
  }
  const window = windows[Math.abs(decision) - 1];
  if (window === undefined) return { verdict: undefined, entry: undefined, session, grant };
  const isAdmitted = decision > 0;
  const now = Number(reply[0]);
  const resetAt = Number(reply[first + 2]) + window.windowMs;
  return {
    verdict: {
      isAdmitted,
      scope: window.scope,
      limit: window.max,
      remaining: isAdmitted ? window.max - Number(reply[first + 1]) : 0,
      resetAt,
      resetInMs: resetAt - now,
    },
    entry: isAdmitted ? `${now}-${suffix}.${at}` : undefined,
    session,
    grant,
  };
}

/** Redis reads nothing where there is no value. */
function readGrant(version: unknown): GrantLookup {
  if (typeof version === 'string') return version === '' ? NO_GRANT : { version };
  return { failure: createFailure(version) };
}

function readSession(found: unknown): SessionLookup {
  if (typeof found === 'string') {
    return { failure: createFailure(found) };
  }
  if (!Array.isArray(found)) return NO_SESSION;
  try {
    return { record: parseSessionFields(found) };
  } catch (cause) {
    return { failure: createFailure(cause) };
  }
}

const createFailure = (cause: unknown): StoreUnavailable =>
  new StoreUnavailable('Redis could not run a command', { cause });
