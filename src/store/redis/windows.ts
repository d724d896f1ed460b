// The port Windows on Redis. §8, §11: requests are counted, and their sessions read and slid, on one server and on a
// cluster; and budgets of bytes.

import { randomBytes } from 'node:crypto';
import type { Clock } from '../../platform/clock.ts';
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
import { type AdmissionRequest, runAdmissionScript } from './admission-script.ts';
import { type CommandRunner, DEADLINE_MS } from './command-runner.ts';
import { createLocalAdmission, type Shares, type TrackedRecords } from './local-admission.ts';
import { createScript, NOW } from './lua-script.ts';

interface RedisWindowsOptions {
  readonly commands: CommandRunner;
  readonly sessionKeyPrefix: string;
  /** `OIDC_ISSUER`. */
  readonly defaultIssuer?: string | undefined;
  readonly clock: Clock;
  /** A cluster keeps windows and sessions in different slots: several steps in place of one script. */
  readonly isCluster: boolean;
  /** `RATE_LIMIT_COUNTING=leased`. */
  readonly shares?: Shares | undefined;
  /** `STORE_READS=tracked`. */
  readonly records?: TrackedRecords | undefined;
  /** With either of them. */
  readonly slidesRarely?: boolean;
}

export function createRedisWindows(options: RedisWindowsOptions): Windows {
  const { commands, isCluster, shares, records } = options;
  const createAdmission = isCluster ? createClusterAdmission : createServerAdmission;

  return {
    admitRequest: createLocalAdmission({ admitInRedis: createAdmission(options), shares, records }),
    async uncountRequest(key, entry) {
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

type AdmitRequest = Windows['admitRequest'];

/** One script over all windows, the grant and the session. */
function createServerAdmission(options: RedisWindowsOptions): AdmitRequest {
  const { sessionKeyPrefix } = options;
  const admitTogether = createAdmissionBatches(options);

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
function createClusterAdmission(options: RedisWindowsOptions): AdmitRequest {
  const { commands, sessionKeyPrefix } = options;
  const admitTogether = createAdmissionBatches(options);

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

/** Requests with the same `slot` may go together: on a cluster, all of their keys lie in it. */
type AdmitTogether = (slot: string, request: AdmissionRequest) => Promise<Admission>;

interface PendingAdmission {
  readonly request: AdmissionRequest;
  readonly resolve: (admission: Admission) => void;
  readonly reject: (error: unknown) => void;
}

/** Larger ones save nothing more, and while Redis works on one, the next is collected. */
const MAX_BATCH = 64;

/**
 * Scripts that Redis has not answered. While it is that far behind, requests share the next one: the
 * busier Redis is, the less each of them costs it.
 */
const MAX_SCRIPTS = 4;

/** A script that fails after this time got no answer: what waits behind it would wait as long again. */
const NO_ANSWER_MS = DEADLINE_MS / 2;

/** The requests of one slot. */
interface Queue {
  pending: PendingAdmission[];
  scripts: number;
  isScheduled: boolean;
}

interface AdmissionBatchesOptions
  extends Pick<RedisWindowsOptions, 'clock' | 'defaultIssuer' | 'slidesRarely'> {
  readonly commands: Pick<CommandRunner, 'run'>;
}

/**
 * All requests that one turn of the event loop brings are admitted by one script: what a command costs,
 * here, on the way and in Redis, is paid once for all of them.
 */
export function createAdmissionBatches({
  commands,
  clock,
  defaultIssuer,
  slidesRarely = false,
}: AdmissionBatchesOptions): AdmitTogether {
  // Unique over processes and within one: two requests of a millisecond count twice.
  const instance = randomBytes(6).toString('base64url');
  let serial = 0;
  const queues = new Map<string, Queue>();

  function getQueue(slot: string): Queue {
    const known = queues.get(slot);
    if (known !== undefined) return known;
    const queue: Queue = { pending: [], scripts: 0, isScheduled: false };
    queues.set(slot, queue);
    return queue;
  }

  function sendBatches(slot: string, queue: Queue): void {
    queue.isScheduled = false;
    while (queue.pending.length > 0 && queue.scripts < MAX_SCRIPTS) {
      const batch = queue.pending;
      queue.pending = batch.splice(MAX_BATCH);
      queue.scripts += 1;
      void runScript(slot, queue, batch);
    }
  }

  async function runScript(
    slot: string,
    queue: Queue,
    batch: readonly PendingAdmission[],
  ): Promise<void> {
    const sentAt = clock.monotonic();
    try {
      await admit(batch);
    } catch (error) {
      const isUnanswered = clock.monotonic() - sentAt >= NO_ANSWER_MS;
      const behind = isUnanswered ? queue.pending.splice(0) : [];
      for (const { reject } of [...batch, ...behind]) reject(error);
    }
    queue.scripts -= 1;
    if (queue.pending.length > 0) sendBatches(slot, queue);
    else if (queue.scripts === 0 && !queue.isScheduled) queues.delete(slot);
  }

  async function admit(batch: readonly PendingAdmission[]): Promise<void> {
    const suffix = `${instance}${(serial++).toString(36)}`;
    const requests = batch.map(({ request }) => request);
    const admissions = await commands.run((client) =>
      runAdmissionScript(client, requests, {
        suffix,
        now: clock.now(),
        defaultIssuer,
        slidesRarely,
      }),
    );
    for (const [at, admission] of admissions.entries()) batch[at]?.resolve(admission);
  }

  return function admitTogether(slot, request) {
    return new Promise((resolve, reject) => {
      const queue = getQueue(slot);
      queue.pending.push({ request, resolve, reject });
      // When all are under way, the first that is answered makes room for it.
      if (queue.scripts >= MAX_SCRIPTS) return;
      if (queue.pending.length === MAX_BATCH) sendBatches(slot, queue);
      else if (!queue.isScheduled) {
        queue.isScheduled = true;
        // Once all sockets that are ready were read: a request that comes alone does not wait for others.
        setImmediate(sendBatches, slot, queue);
      }
    });
  };
}
