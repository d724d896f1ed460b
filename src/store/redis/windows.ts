// The port Windows on Redis. §8, §11: requests are counted, and their sessions read and slid, on one server and on a
// cluster; and budgets of bytes.

import { buildSessionKey } from '../keys.ts';
import {
  type Admission,
  type ByteEntry,
  type GrantLookup,
  isMissingGrant,
  type LimitWindow,
  MIN_ENTRY_BYTES,
  NO_GRANT,
  NO_SESSION,
  type Windows,
} from '../store.ts';
import { type AdmitTogether, createAdmissionBatches } from './admission-batches.ts';
import type { AdmissionRequest } from './admission-request.ts';
import { createScript, NOW, type RedisAccess } from './command-runner.ts';
import { type AdmitRequest, createLocalAdmission, type TrackedRecords } from './local-admission.ts';
import type { Shares } from './shares.ts';

/** `shares` with `RATE_LIMIT_COUNTING=leased`, `records` with `STORE_READS=tracked`. */
export function createRedisWindows(
  redis: RedisAccess,
  shares: Shares | undefined,
  records: TrackedRecords | undefined,
): Windows {
  const { commands, isCluster } = redis;
  // A process that asks Redis less often does not write a session at each call either.
  const slidesRarely = shares !== undefined || records !== undefined;
  const admitTogether = createAdmissionBatches(redis, shares, slidesRarely);
  const createAdmission = isCluster ? createClusterAdmission : createServerAdmission;
  const admitInRedis = createAdmission(redis, admitTogether);

  return {
    admitRequest: createLocalAdmission(admitInRedis, shares, records),
    async uncountRequest(key, entry) {
      if (shares?.uncount(key, entry)) return;
      await commands.run((client) => client.zrem(key, entry));
    },
    async reserveBytes(budget, entry, { maxBytes, ttlSeconds }) {
      const args = [toMember(entry), countBytes(entry), maxBytes, ttlSeconds];
      return (await commands.run((client) => reserveBytesScript.run(client, [budget], args))) === 1;
    },
    async releaseBytes(budget, entry) {
      await commands.run((client) => client.zrem(budget, toMember(entry)));
    },
  };
}

/** One script over all windows, the grant and the session. */
function createServerAdmission(
  { sessionKeyPrefix }: RedisAccess,
  admitTogether: AdmitTogether,
): AdmitRequest {
  return (windows, access, grantKey) => {
    const sessionKey =
      access === undefined ? '' : buildSessionKey(sessionKeyPrefix, access.sessionId);
    return admitTogether('', { windows, access, sessionKey, grantKey });
  };
}

/**
 * The keys lie in different slots: the grant first, so that nothing has to be taken back where it is missing; then one
 * script per window, in order; a later refusal takes the earlier entries back. The session comes last, when all windows
 * have admitted, or failed: it may be on a node that answers.
 */
function createClusterAdmission(
  { commands, sessionKeyPrefix }: RedisAccess,
  admitTogether: AdmitTogether,
): AdmitRequest {
  return async function admitRequest(windows, access, grantKey) {
    const grant = grantKey === undefined ? NO_GRANT : await readGrant(grantKey);
    if (grantKey !== undefined && isMissingGrant(grant)) return NOT_COUNTED;
    const counted = { ...(await countInAll(windows).catch(toLimitFailure)), grant };
    if (access === undefined || 'failure' in grant || counted.verdict?.isAdmitted === false) {
      return counted;
    }
    const sessionKey = buildSessionKey(sessionKeyPrefix, access.sessionId);
    try {
      const request = { ...NOTHING, access, sessionKey };
      const { session } = await admitTogether(sessionKey, request);
      return { ...counted, session };
    } catch (failure) {
      if (counted.limitFailure !== undefined) throw failure;
      return { ...counted, session: { failure } };
    }
  };

  function readGrant(grantKey: string): Promise<GrantLookup> {
    return admitTogether(grantKey, { ...NOTHING, grantKey }).then(
      ({ grant }) => grant,
      (failure: unknown) => ({ failure }),
    );
  }

  /** @throws StoreUnavailable, or what else failed of a window. */
  async function countInAll(windows: readonly LimitWindow[]): Promise<Admission> {
    let first = NOT_COUNTED;
    const earlier: { readonly key: string; readonly entry: string | undefined }[] = [];
    for (const window of windows) {
      const counted = await admitTogether(window.key, { ...NOTHING, windows: [window] });
      if (counted.limitFailure !== undefined) throw counted.limitFailure;
      if (counted.verdict?.isAdmitted === false) {
        await Promise.all(earlier.map(({ key, entry }) => uncount(key, entry)));
        return counted;
      }
      if (earlier.length === 0) first = counted;
      earlier.push({ key: window.key, entry: counted.entry });
    }
    return first;
  }

  async function uncount(key: string, entry = ''): Promise<void> {
    await commands.run((client) => client.zrem(key, entry)).catch(() => 0);
  }
}

/** A step asks for one thing. */
const NOTHING: AdmissionRequest = { windows: [], access: undefined, sessionKey: '' };

const NOT_COUNTED: Admission = {
  verdict: undefined,
  entry: undefined,
  session: NO_SESSION,
  grant: NO_GRANT,
};

const toLimitFailure = (limitFailure: unknown): Admission => ({ ...NOT_COUNTED, limitFailure });

// Bytes of values that count in a budget: a sorted set of entries by the end of their time.

const countBytes = ({ bytes }: ByteEntry): number => Math.max(bytes, MIN_ENTRY_BYTES);

/** The script reads the bytes from it. */
const toMember = (entry: ByteEntry): string => `${countBytes(entry)}:${entry.name}`;

/**
 * KEYS: the sorted set of a budget. ARGV: entry, which begins with its bytes, its bytes, how many may count, ttl (s).
 * Entries whose time is over go.
 */
const reserveBytesScript = createScript(`${NOW}
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
