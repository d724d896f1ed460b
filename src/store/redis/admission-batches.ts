// §11: batches requests to admit, and sends them to Redis together: the busier Redis is, the larger the batches.
import { randomBytes } from 'node:crypto';
import { type Admission, GRANT_VERSION_LENGTH } from '../store.ts';
import { type AdmissionRequest, encodeRequests, readReply } from './admission-request.ts';
import { createScript, DEADLINE_MS, NOW, type RedisAccess } from './command-runner.ts';
import { SUM_PERMITS, TAKE_PERMITS } from './leased-permits.ts';
import { IS_ALWAYS_DUE, IS_OWNED_BY, IS_SLIDE_DUE, SESSION_FIELDS } from './sessions.ts';
import type { Shares } from './shares.ts';

/** Requests with the same `slot` may go together: on a cluster, all of their keys lie in it. */
export type AdmitTogether = (slot: string, request: AdmissionRequest) => Promise<Admission>;

interface PendingAdmission {
  readonly request: AdmissionRequest;
  readonly resolve: (admission: Admission) => void;
  readonly reject: (error: unknown) => void;
}

/** Larger batches save nothing more, and while Redis works on one, the next is collected. */
const MAX_BATCH = 64;

/**
 * Maximum number of scripts in flight. While Redis is that far behind, requests share the next one: the busier Redis is, the less
 * each of them costs.
 */
const MAX_SCRIPTS = 4;

/** A script that fails after this time got no answer: requests queued behind it would wait as long again. */
const NO_ANSWER_MS = DEADLINE_MS / 2;

/** The requests of one slot. */
interface Queue {
  pending: PendingAdmission[];
  scripts: number;
  isScheduled: boolean;
}

/**
 * Admits all requests of one turn of the event loop by one script: they share the cost of one command, here, on the network and
 * in Redis. With `slidesRarely` a session slides only after a part of its time to live.
 */
export function createAdmissionBatches(
  redis: Pick<RedisAccess, 'commands' | 'clock' | 'isCluster' | 'sessionKeyPrefix'>,
  shares: Shares | undefined,
  slidesRarely: boolean,
): AdmitTogether {
  const { commands, clock, isCluster } = redis;
  const admit = slidesRarely ? admitSparingly : admitPlainly;
  // Makes entries unique among processes, together with a serial number and a place: two requests in one millisecond count twice.
  const instance = randomBytes(6).toString('base64url');
  let serial = 0;
  const queues = new Map<string, Queue>();

  function sendBatches(slot: string, queue: Queue) {
    queue.isScheduled = false;
    while (queue.pending.length > 0 && queue.scripts < MAX_SCRIPTS) {
      const batch = queue.pending;
      queue.pending = batch.splice(MAX_BATCH);
      queue.scripts += 1;
      void runScript(slot, queue, batch);
    }
    forgetUnused(slot, queue);
  }

  /**
   * Forgets an empty queue on a cluster, which has as many slots as keys. The queue of a single server stays: a Map that is
   * emptied with each script leaves a table behind each time (platform/bounded-map.ts).
   */
  function forgetUnused(slot: string, { pending, scripts, isScheduled }: Queue) {
    if (isCluster && pending.length === 0 && scripts === 0 && !isScheduled) queues.delete(slot);
  }

  async function runScript(slot: string, queue: Queue, batch: readonly PendingAdmission[]) {
    const sentAt = clock.monotonic();
    let asked: ReturnType<Shares['ask']> | undefined;
    let isSent = false;
    try {
      const suffix = `${instance}${(serial++).toString(36)}`;
      const requests = batch.map(({ request }) => request);
      asked = shares?.ask(requests.flatMap(({ windows }) => windows));
      const wanted = asked?.permits ?? [];
      const { keys, args, batch: encoded } = encodeRequests(requests, wanted, redis);
      const sent = [suffix, clock.now(), ...args];
      const { admissions, granted } = await commands.run(async (client) => {
        isSent = true;
        const reply = await admit(client, keys, sent);
        return readReply(reply, encoded, suffix);
      });
      asked?.settle(granted);
      for (const [at, admission] of admissions.entries()) batch[at]?.resolve(admission);
    } catch (error) {
      asked?.fail(isSent);
      const isUnanswered = clock.monotonic() - sentAt >= NO_ANSWER_MS;
      const behind = isUnanswered ? queue.pending.splice(0) : [];
      for (const { reject } of [...batch, ...behind]) reject(error);
    }
    queue.scripts -= 1;
    if (queue.pending.length > 0) sendBatches(slot, queue);
    else forgetUnused(slot, queue);
  }

  return function admitTogether(slot, request) {
    return new Promise((resolve, reject) => {
      let queue = queues.get(slot);
      if (queue === undefined) {
        queue = { pending: [], scripts: 0, isScheduled: false };
        queues.set(slot, queue);
      }
      queue.pending.push({ request, resolve, reject });
      // If all scripts are in flight, the first answer makes room for the next one.
      if (queue.scripts >= MAX_SCRIPTS) return;
      if (queue.pending.length === MAX_BATCH) sendBatches(slot, queue);
      else if (!queue.isScheduled) {
        queue.isScheduled = true;
        // Runs after all ready sockets have been read: a single request does not wait for others.
        setImmediate(sendBatches, slot, queue);
      }
    });
  };
}

// §8, §11: the script that admits a batch of requests in their order; none fails because of another one. Arguments and
// replies are numbers in a fixed order, since each of them costs both sides time.

/**
 * Entries that are removed from a window at once. After a pause of busy callers a million may be too old, and removing them would
 * block Redis for half a second: the next scripts continue.
 */
const MAX_REMOVED = 5000;

/**
 * KEYS: the windows' sorted sets, then the grants, both without duplicates, then the session hash of each request that has one.
 * ARGV: suffix of the entries, time of access (ms), numbers as a JSON array, owner and owner's issuer of each session. The
 * numbers: number of windows, number of grants, 1 on a cluster, number of windows from which permits are wanted, length (ms) and
 * maximum of each window, index and permits of each window of which they are wanted, then for each request: the index of its
 * grant (0 for none), the number of its windows, the index of each of these, then the session's time to live (s; 0 to read it
 * only, -1 without a session). Returns a JSON array: the time, then for each request: decision, entries and oldest entry of the
 * deciding window, session; then the version of each grant, '' if it is missing; then for each window from which permits are
 * wanted: the number taken, their end, entries and oldest entry. Permits that processes
 * have taken count as entries. A decision is 1 for admitted, -n for refused by the n-th window, 0 without windows or without the
 * grant. If a key is of a wrong type, the decision is the error's text, and so are the session and, in a list of one, the
 * version: that concerns no other request, but any other error concerns all. Each window is cleared, read and written once for
 * all requests, and each grant is read once.
 */
const ADMISSION_VARIABLES = `local suffix, accessedAt, numbers = ARGV[1], ARGV[2], cjson.decode(ARGV[3])
local windows, grants, isCluster, wanted = numbers[1], numbers[2], numbers[3] == 1, numbers[4]
local counts, skipped, oldest, added, versions = {}, {}, {}, {}, {}

local function readWrongType(failure)
  if not string.find(failure.err, 'WRONGTYPE', 1, true) then error(failure.err) end
  return failure.err
end

`;

const ADMISSION = `local function removeOld(w, size)
  local since = now - numbers[3 + 2 * w]
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
    if isMarked and type(counts[w]) == 'number' then
      local permits = sumPermits(w)
      counts[w] = type(permits) == 'string' and permits or counts[w] + permits
    end
  end
  return counts[w]
end

local function findOldest(w)
  if not oldest[w] then
    local first = skipped[w] or 0
    local entry = tonumber(redis.call('ZRANGE', KEYS[w], first, first, 'WITHSCORES')[2]) or now
    oldest[w] = firstEnds[w] and math.min(entry, firstEnds[w] - numbers[3 + 2 * w]) or entry
  end
  return oldest[w]
end

local function decide(at, size, request)
  for i = 1, size do
    local w = numbers[at + i]
    local entries = count(w)
    if type(entries) == 'string' then return entries, 0, 0 end
    if entries >= numbers[4 + 2 * w] then return -i, entries, findOldest(w) end
  end
  if size == 0 then return 0, 0, 0 end
  local member = now .. '-' .. suffix .. '.' .. request
  for i = 1, size do
    local w = numbers[at + i]
    counts[w] = counts[w] + 1
    local members = added[w] or {}
    members[#members + 1] = now
    members[#members + 1] = member
    added[w] = members
  end
  local first = numbers[at + 1]
  return 1, counts[first], findOldest(first)
end

local function access(key, ttl, owner, issuer)
  local found = redis.pcall('HMGET', key, '${SESSION_FIELDS.join("', '")}')
  if found.err then return readWrongType(found) end
  if ttl > 0 and found[1] and isOwnedBy(found[2], found[3], owner, issuer) and isSlideDue(key, ttl) then
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

local replies, request, session, at = { now }, 0, 0, 5 + 2 * (windows + wanted)
local last = #numbers
while at <= last do
  local version, size = versions[numbers[at]], numbers[at + 1]
  at = at + 1
  local decision, entries, since = 0, 0, 0
  if version ~= '' then decision, entries, since = decide(at, size, request) end
  at = at + size + 1
  local ttl, found = numbers[at], 0
  if ttl >= 0 then
    session = session + 1
    local isRefused = type(decision) == 'number' and decision < 0
    local hasNoGrant = version == '' or type(version) == 'table'
    if not isRefused and not hasNoGrant then
      found = access(KEYS[windows + grants + session], ttl, ARGV[2 + 2 * session], ARGV[3 + 2 * session])
    end
  end
  at = at + 1
  local to = 4 * request
  replies[to + 2], replies[to + 3], replies[to + 4], replies[to + 5] = decision, entries, since, found
  request = request + 1
end
for w, members in pairs(added) do
  redis.call('ZADD', KEYS[w], unpack(members))
  redis.call('PEXPIRE', KEYS[w], numbers[3 + 2 * w])
end
local to = 1 + 4 * request
for g = 1, grants do replies[to + g] = versions[g] end
to = to + grants
`;

const createAdmissionScript = (slideRule: string, takePermits: string, addShares: string) =>
  createScript(
    `${NOW}${IS_OWNED_BY}${slideRule}
${ADMISSION_VARIABLES}${SUM_PERMITS}${takePermits}
${ADMISSION}${addShares}return cjson.encode(replies)
`,
  );

const admitPlainly = createAdmissionScript(IS_ALWAYS_DUE, '', '');

/** For a process that queries Redis less often; others use the plain script, since each function costs every run. */
const admitSparingly = createAdmissionScript(
  IS_SLIDE_DUE,
  TAKE_PERMITS,
  `
for i = 1, wanted do
  local w, permits = numbers[3 + 2 * (windows + i)], numbers[4 + 2 * (windows + i)]
  local taken, ends, entries, since = 0, '', 0, 0
  if added[w] then
    local length, max = numbers[3 + 2 * w], numbers[4 + 2 * w]
    taken, ends = takePermits(w, permits, length, max, max - counts[w])
    entries, since = counts[w] + taken, findOldest(w)
  end
  replies[to + 1], replies[to + 2], replies[to + 3], replies[to + 4] = taken, ends, entries, since
  to = to + 4
end
`,
);
