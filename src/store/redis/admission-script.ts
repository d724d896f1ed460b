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
import { SUM_PERMITS, TAKE_PERMITS } from './leased-permits.ts';
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
  readonly isCluster: boolean;
  /** To be taken in advance of windows that the requests count in. */
  readonly wanted?: readonly WantedPermits[] | undefined;
}

export interface WantedPermits {
  readonly window: LimitWindow;
  readonly permits: number;
}

/** What was taken of what was wanted of a window: perhaps none. */
export interface GrantedPermits {
  readonly permits: number;
  /** By which Redis finds them again. */
  readonly end: string;
  /** Requests that have room beside them. */
  readonly remaining: number;
  /** As in a verdict. */
  readonly resetAt: number;
  readonly resetInMs: number;
}

export interface AnsweredBatch {
  /** What each request came to, in their order. */
  readonly admissions: readonly Admission[];
  /** Of each window that something was wanted of. */
  readonly shares: readonly GrantedPermits[];
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

/** Values in the reply for each request, and for each window that something is wanted of. */
const VALUES = 4;

/**
 * KEYS: the windows' sorted sets, each once, then the grants, each once, then the hash of each request that has a
 * session.
 * ARGV: suffix of the entries, time of access (ms), numbers of windows and of grants, the default issuer, 1 on a cluster,
 * of how many windows permits are wanted, length (ms) and maximum of each window, index and permits of each that they are
 * wanted of, then for each request: the index of its grant (0 for none), how many windows it has, the index of each of
 * these, then -1, or the session's time-to-live (s; 0 to read it only), its owner and the owner's issuer.
 * Answers the time, then for each request: decision, entries and oldest entry of the deciding window,
 * session; then of each grant its version, '' where it is missing; then for each window that permits are wanted of: how many were
 * taken, their end, entries and oldest entry. Permits that processes have taken count as entries do. A decision is 1 for admitted, -n for refused by the
 * n-th window, 0 without windows or without the grant. It is the error's text where a key is of a wrong type, and so is
 * the session, and in a list of one the version: that concerns no other request, but any other error concerns all. Each
 * window is cleared, read and written once, however many requests it counts, and each grant read once.
 */
const createAdmissionScript = (slideRule: string) =>
  createScript(`${NOW}${IS_OWNED_BY}${slideRule}
local suffix, accessedAt, windows, grants = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local isCluster, wanted = ARGV[6] == '1', tonumber(ARGV[7])
local counts, skipped, oldest, added, versions = {}, {}, {}, {}, {}

local function lengthOf(w) return tonumber(ARGV[6 + 2 * w]) end
local function maxOf(w) return tonumber(ARGV[7 + 2 * w]) end

local function readWrongType(failure)
  if not string.find(failure.err, 'WRONGTYPE', 1, true) then error(failure.err) end
  return failure.err
end

${SUM_PERMITS}${TAKE_PERMITS}
local function removeOld(w, size)
  local since = now - lengthOf(w)
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
    local size, permits = redis.pcall('ZCARD', KEYS[w]), sumPermits(w)
    if type(size) == 'table' then counts[w] = readWrongType(size)
    elseif type(permits) == 'string' then counts[w] = permits
    else counts[w] = removeOld(w, size) + permits end
  end
  return counts[w]
end

local function findOldest(w)
  if not oldest[w] then
    local first = skipped[w] or 0
    local entry = tonumber(redis.call('ZRANGE', KEYS[w], first, first, 'WITHSCORES')[2]) or now
    oldest[w] = firstEnds[w] and math.min(entry, firstEnds[w] - lengthOf(w)) or entry
  end
  return oldest[w]
end

local function decide(at, size, request)
  for i = 1, size do
    local w = tonumber(ARGV[at + i])
    local entries = count(w)
    if type(entries) == 'string' then return entries, 0, 0 end
    if entries >= maxOf(w) then return -i, entries, findOldest(w) end
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

local replies, request, session, at = { now }, 0, windows + grants, 8 + 2 * (windows + wanted)
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
  redis.call('PEXPIRE', KEYS[w], lengthOf(w))
end
local to = 1 + 4 * request
for g = 1, grants do replies[to + g] = versions[g] end
to = to + grants
for i = 1, wanted do
  local w = tonumber(ARGV[6 + 2 * (windows + i)])
  local permits, ends = 0, ''
  if added[w] then
    local left = maxOf(w) - counts[w]
    permits, ends = takePermits(w, ARGV[7 + 2 * (windows + i)], lengthOf(w), maxOf(w), left)
    counts[w] = counts[w] + permits
  end
  replies[to + 1], replies[to + 2], replies[to + 3], replies[to + 4] = permits, ends, counts[w] or 0, oldest[w] or now
  to = to + 4
end
return replies
`);

const slidingScript = createAdmissionScript(IS_ALWAYS_DUE);
const rarelySlidingScript = createAdmissionScript(IS_SLIDE_DUE);

/** `suffix`, which no other batch may have, and the place of a request make its entries unique. `now` is noted as the time of access. */
export async function runAdmissionScript(
  client: RedisClient,
  requests: readonly AdmissionRequest[],
  { suffix, now, defaultIssuer, slidesRarely, isCluster, wanted = [] }: AdmissionBatch,
): Promise<AnsweredBatch> {
  const { keys, args, grantIndexes } = encodeRequests(requests, {
    defaultIssuer,
    isCluster,
    wanted,
  });
  const script = slidesRarely ? rarelySlidingScript : slidingScript;
  const reply = await script.run(client, keys, [suffix, now, ...args]);
  const firstVersion = 1 + VALUES * requests.length;
  const firstShare = firstVersion + grantIndexes.size;
  if (!Array.isArray(reply) || reply.length !== firstShare + VALUES * wanted.length) {
    throw new Error('Redis answered the admission script with no list of its length');
  }
  const admissions = requests.map(({ windows, grantKey }, at) => {
    const index = grantKey === undefined ? undefined : grantIndexes.get(grantKey);
    const grant = index === undefined ? NO_GRANT : readGrant(reply[firstVersion + index - 1]);
    return readAdmission(reply, at, windows, suffix, grant);
  });
  const shares = wanted.map(({ window }, at) =>
    readPermits(reply, firstShare + VALUES * at, window),
  );
  return { admissions, shares };
}

/** A key is one window, of one length and maximum: requests that share it, or a grant, name it by its index. */
function encodeRequests(
  requests: readonly AdmissionRequest[],
  {
    defaultIssuer,
    isCluster,
    wanted,
  }: {
    readonly defaultIssuer: string | undefined;
    readonly isCluster: boolean;
    readonly wanted: readonly WantedPermits[];
  },
) {
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
    args: [
      windowKeys.length,
      grantIndexes.size,
      defaultIssuer ?? '',
      isCluster ? 1 : 0,
      wanted.length,
      ...limits,
      ...wanted.flatMap(({ window, permits }) => [indexes.get(window.key) ?? 0, permits]),
      ...args,
    ],
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

function readPermits(
  reply: readonly unknown[],
  first: number,
  { max, windowMs }: LimitWindow,
): GrantedPermits {
  const resetAt = Number(reply[first + 3]) + windowMs;
  return {
    permits: Number(reply[first]),
    end: String(reply[first + 1]),
    remaining: max - Number(reply[first + 2]),
    resetAt,
    resetInMs: resetAt - Number(reply[0]),
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
