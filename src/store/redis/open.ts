// The shared store on Redis or Valkey: one server, Sentinel, or a cluster; TLS.

import { Redis } from 'ioredis';
import type { LimitCounting } from '../../config/groups/limits.ts';
import type { StoreReads } from '../../config/groups/store.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import { buildSessionKey } from '../keys.ts';
import {
  type Admission,
  type ByteEntry,
  type GrantLookup,
  isMissingGrant,
  type KeyValue,
  type LimitWindow,
  MIN_ENTRY_BYTES,
  NO_GRANT,
  NOT_COUNTED,
  type Store,
  type Windows,
} from '../store.ts';
import { type AdmitTogether, createAdmissionBatches } from './admission-batches.ts';
import type { AdmissionRequest } from './admission-request.ts';
import {
  type ChangeKey,
  type CommandRunner,
  createChangeKey,
  createCommandRunner,
  createScript,
  NOW,
  type RedisAccess,
  readSetPage,
  removeFromSet,
} from './command-runner.ts';
import { connectToRedis } from './connect.ts';
import { type Backoff, idleBackoff } from './connection.ts';
import { listServers, readServerFacts } from './examine.ts';
import {
  type AdmitInRedis,
  createLocalAdmission,
  createTrackedRecords,
  type TrackedRecords,
} from './local-admission.ts';
import { createRedisSessions } from './sessions.ts';
import { createShares, type Shares } from './shares.ts';
import { createSubscriber } from './subscriber.ts';

export interface RedisStoreSettings extends ClockAndLog {
  /** `REDIS_URL`. */
  readonly url: string;
  readonly sessionKeyPrefix: string;
  /** `RATE_LIMIT_COUNTING`. */
  readonly counting?: LimitCounting;
  /** `STORE_READS`. */
  readonly reads?: StoreReads;
  /** Backoff of idle reconnection attempts. */
  readonly backoff?: Backoff;
}

/** Does not wait for the connection: the service starts while Redis is down. */
export function openRedisStore(settings: RedisStoreSettings): Store {
  const { url, counting, reads, backoff = idleBackoff } = settings;
  const connection = connectToRedis(url, backoff, settings);
  const commands = createCommandRunner(connection, settings);
  const { client: commandClient, isCluster } = connection;
  const redis: RedisAccess = { ...settings, client: commandClient, isCluster, commands, backoff };
  const subscriber = createSubscriber(redis);
  const shares = counting === 'leased' ? createShares(redis) : undefined;
  const records =
    reads === 'tracked' && commandClient instanceof Redis
      ? createTrackedRecords(commandClient, redis)
      : undefined;
  const changeKey = createChangeKey(commands, records?.forget);

  return {
    isShared: true,
    databaseSystem: 'redis',
    ...createRedisKeyValue(commands, changeKey),
    ...createRedisSessions(redis, changeKey, records?.forget),
    ...createRedisWindows(redis, shares, records),
    async publish(channel, message) {
      await commands.run((client) => client.publish(channel, message));
    },
    subscribe: subscriber.subscribe,
    async ping() {
      await commands.run((client) => client.ping());
    },
    async describe() {
      const servers = await commands.run((client) =>
        Promise.all(listServers(client).map(readServerFacts)),
      );
      return { driver: 'redis', servers };
    },
    async close() {
      subscriber.close();
      records?.close();
      await shares?.close();
      commands.close();
    },
  };
}

// Implements the port KeyValue on Redis. Each atomic step is a script on a single key, as a cluster requires.

/**
 * On a cluster, a listed value and its index are in different slots, so each is a separate step. If only one of them succeeds,
 * the caller gets an error, and an entry without a value is not listed.
 */
function createRedisKeyValue(commands: CommandRunner, changeKey: ChangeKey): KeyValue {
  /**
   * Returns the stored bytes if the value reads as `expected`. A value that is not UTF-8, from another program or due to a fault,
   * is read with U+FFFD in place of invalid bytes: that text would never match, and the value could never be replaced.
   */
  async function toStored(key: string, expected: string) {
    if (!expected.includes(REPLACEMENT_CHARACTER)) return expected;
    const bytes = await commands.run((client) => client.getBuffer(key));
    return bytes?.toString() === expected ? bytes : expected;
  }

  return {
    get: async (key) => (await commands.run((client) => client.get(key))) ?? undefined,
    async set(key, value, ttlSeconds) {
      await changeKey(key, (client) => client.set(key, value, 'EX', ttlSeconds));
    },
    async getOrSet(key, value, ttlSeconds) {
      const args = [value, ttlSeconds];
      return String(await changeKey(key, (client) => runGetOrSet(client, [key], args)));
    },
    async compareAndSet(key, expected, value, ttlSeconds) {
      const stored = expected === undefined ? undefined : await toStored(key, expected);
      const written = await changeKey<unknown>(key, (client) =>
        stored === undefined
          ? client.set(key, value, 'EX', ttlSeconds, 'NX')
          : runCompareAndSet(client, [key], [stored, value, ttlSeconds]),
      );
      return written === 'OK' || written === 1;
    },
    async compareAndDelete(key, expected) {
      const args = [await toStored(key, expected)];
      const deleted = await changeKey(key, (client) => runCompareAndDelete(client, [key], args));
      return deleted === 1;
    },
    async getAndDelete(key) {
      const value = await changeKey(key, (client) => runGetAndDelete(client, [key], []));
      return typeof value === 'string' ? value : undefined;
    },
    async delete(key) {
      await changeKey(key, (client) => client.del(key));
    },

    async setListed(list, key, value, ttlSeconds) {
      await changeKey(key, (client) =>
        Promise.all([
          runAddToList(client, [list], [key, ttlSeconds]),
          client.set(key, value, 'EX', ttlSeconds),
        ]),
      );
    },
    /** The value first: its presence determines whether it is listed. */
    async replaceListed(list, key, value, ttlSeconds) {
      const set = await changeKey(key, (client) => client.set(key, value, 'EX', ttlSeconds, 'XX'));
      if (set !== 'OK') return false;
      await commands.run((client) => runAddToList(client, [list], [key, ttlSeconds]));
      return true;
    },
    async deleteListed(list, key) {
      const [removed] = await Promise.all([
        changeKey(key, (client) => client.del(key)),
        removeFromSet(commands, list, key),
      ]);
      return removed === 1;
    },
    async readListed(list, request) {
      const page = await readSetPage(commands, list, request);
      const items = await Promise.all(
        page.items.map(async ({ id: key, time: expiresAt }) => {
          const value = await commands.run((client) => client.get(key));
          return value === null ? [] : [{ key, value, expiresAt }];
        }),
      );
      return { items: items.flat(), next: page.next };
    },
    async countListed(list) {
      return Number(await commands.run((client) => runCountList(client, [list], [])));
    },
    async addRecent(key, value, { max, ttlSeconds }) {
      await commands.run((client) => runAddRecent(client, [key], [value, max, ttlSeconds]));
    },
    readRecent: (key) => commands.run((client) => client.lrange(key, 0, -1)),
  };
}

const REPLACEMENT_CHARACTER = '\uFFFD';

/** KEYS: one. ARGV: value, ttl (s). Equivalent to SET with NX and GET, which servers before 7.0 do not support. */
const runGetOrSet = createScript(`
local stored = redis.call('GET', KEYS[1])
if stored then return stored end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return ARGV[1]
`);

/** KEYS: one. ARGV: the expected value, value, ttl (s). */
const runCompareAndSet = createScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
`);

/** KEYS: one. ARGV: the expected value. */
const runCompareAndDelete = createScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`);

/** KEYS: one. Equivalent to GETDEL, which servers before 6.2 do not support. */
const runGetAndDelete = createScript(`
local value = redis.call('GET', KEYS[1])
redis.call('DEL', KEYS[1])
return value
`);

/**
 * KEYS: the sorted set of a list. ARGV: key, ttl (s). Removes entries of expired values; the set expires with the last of its
 * values.
 */
const runAddToList = createScript(`${NOW}
local lifetime = ARGV[2] * 1000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + lifetime, ARGV[1])
if redis.call('PTTL', KEYS[1]) < lifetime then redis.call('PEXPIRE', KEYS[1], lifetime) end
return 1
`);

/** KEYS: the sorted set of a list. */
const runCountList = createScript(`${NOW}
return redis.call('ZCOUNT', KEYS[1], '(' .. now, '+inf')
`);

/** KEYS: a list. ARGV: value, maximum length, ttl (s). */
const runAddRecent = createScript(`
redis.call('LPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], 0, ARGV[2] - 1)
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
`);

// Implements the port Windows on Redis, for a single server and a cluster. §8, §11: counts requests, and reads and slides their
// sessions; and budgets of bytes.

/** `shares` is set with `RATE_LIMIT_COUNTING=leased`, `records` with `STORE_READS=tracked`. */
function createRedisWindows(
  redis: RedisAccess,
  shares: Shares | undefined,
  records: TrackedRecords | undefined,
): Windows {
  const { commands, isCluster } = redis;
  // A process that queries Redis less often does not write a session on every call, either.
  const slidesRarely = shares !== undefined || records !== undefined;
  const admitTogether = createAdmissionBatches(redis, shares, slidesRarely);
  /** On a single server, one script handles all windows, the grant and the session. */
  const admitInRedis: AdmitInRedis = isCluster
    ? createClusterAdmission(redis, admitTogether)
    : (request) => admitTogether('', request);

  return {
    admitRequest: createLocalAdmission(admitInRedis, shares, records),
    async uncountRequest(key, entry) {
      if (shares?.uncount(key, entry)) return;
      await commands.run((client) => client.zrem(key, entry));
    },
    async reserveBytes(budget, entry, { maxBytes, ttlSeconds }) {
      const args = [toMember(entry), countBytes(entry), maxBytes, ttlSeconds];
      return (await commands.run((client) => runReserveBytes(client, [budget], args))) === 1;
    },
    async releaseBytes(budget, entry) {
      await commands.run((client) => client.zrem(budget, toMember(entry)));
    },
  };
}

/**
 * On a cluster, the keys are in different slots. The grant comes first, so that nothing has to be taken back if it is missing;
 * then one script per window, in order; a refusal takes the earlier entries back. The session comes last, after all windows have
 * admitted the request, or failed: its node may still respond.
 */
function createClusterAdmission(
  { commands, sessionKeyPrefix }: RedisAccess,
  admitTogether: AdmitTogether,
): AdmitInRedis {
  return async function admitRequest({ windows, access, grantKey }) {
    const grant: GrantLookup =
      grantKey === undefined
        ? NO_GRANT
        : await admitTogether(grantKey, { ...NOTHING, grantKey }).then(
            (admission) => admission.grant,
            (failure: unknown) => ({ failure }),
          );
    if (grantKey !== undefined && isMissingGrant(grant)) return NOT_COUNTED;
    const counting = countInAll(windows).catch((limitFailure: unknown) => ({
      ...NOT_COUNTED,
      limitFailure,
    }));
    const counted: Admission = { ...(await counting), grant };
    if (access === undefined || 'failure' in grant || counted.verdict?.isAdmitted === false)
      return counted;
    const sessionKey = buildSessionKey(sessionKeyPrefix, access.sessionId);
    try {
      const { session } = await admitTogether(sessionKey, { ...NOTHING, access });
      return { ...counted, session };
    } catch (failure) {
      if (counted.limitFailure !== undefined) throw failure;
      return { ...counted, session: { failure } };
    }
  };

  /** @throws StoreUnavailable, or another failure of a window. */
  async function countInAll(windows: readonly LimitWindow[]): Promise<Admission> {
    let first = NOT_COUNTED;
    const earlier: { readonly key: string; readonly entry: string | undefined }[] = [];
    for (const window of windows) {
      const counted = await admitTogether(window.key, { ...NOTHING, windows: [window] });
      if (counted.limitFailure !== undefined) throw counted.limitFailure;
      if (counted.verdict?.isAdmitted === false) {
        const uncounting = earlier.map(({ key, entry = '' }) =>
          commands.run((client) => client.zrem(key, entry)),
        );
        await Promise.allSettled(uncounting);
        return counted;
      }
      if (earlier.length === 0) first = counted;
      earlier.push({ key: window.key, entry: counted.entry });
    }
    return first;
  }
}

/** For a step that needs only one key. */
const NOTHING: AdmissionRequest = { windows: [], access: undefined };

// Bytes of values that count in a budget: a sorted set of entries by expiry.

const countBytes = ({ bytes }: ByteEntry) => Math.max(bytes, MIN_ENTRY_BYTES);

/** The script parses the number of bytes from the member. */
const toMember = (entry: ByteEntry) => `${countBytes(entry)}:${entry.name}`;

/**
 * KEYS: the sorted set of a budget. ARGV: entry (beginning with its bytes), its bytes, maximum, ttl (s). Removes expired entries.
 */
const runReserveBytes = createScript(`${NOW}
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
