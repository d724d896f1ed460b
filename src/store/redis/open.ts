// The shared store on Redis or Valkey: one server, Sentinel, or a cluster; TLS.
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { buildSessionKey } from '../keys.ts';
import {
  type Admission,
  type ByteEntry,
  type LimitWindow,
  MIN_ENTRY_BYTES,
  NO_SESSION,
  type Store,
} from '../store.ts';
import { createAdmissionBatches } from './admission-batches.ts';
import { type CommandRunner, createCommandRunner } from './command-runner.ts';
import { connect } from './connect.ts';
import { type Backoff, idleBackoff } from './connection.ts';
import {
  addRecentScript,
  addToListScript,
  getAndDeleteScript,
  getOrSetScript,
  reserveBytesScript,
} from './scripts.ts';
import { listServers, readServerFacts } from './server-facts.ts';
import { removeFromSet } from './session-sweep.ts';
import { createRedisSessions } from './sessions.ts';
import { readSetPage } from './set-page.ts';
import { createSubscriber } from './subscriber.ts';

export interface RedisOptions {
  /** `REDIS_URL`. */
  readonly url: string;
  readonly sessionKeyPrefix: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Idle rhythm of reconnecting. */
  readonly backoff?: Backoff;
}

/** Does not wait for the connection: the service starts while Redis is down. */
export function openRedisStore(options: RedisOptions): Store {
  const { sessionKeyPrefix, clock, log, backoff = idleBackoff } = options;
  const connection = connect(options.url, { backoff, clock, log });
  const commands = createCommandRunner(connection, { clock, log });
  const subscriber = createSubscriber(connection.client, { backoff, clock, log });
  const { isCluster } = connection;
  const createAdmission = isCluster ? createClusterAdmission : createServerAdmission;
  const admitRequest = createAdmission({ commands, sessionKeyPrefix, clock });

  return {
    get: async (key) => (await commands.run((client) => client.get(key))) ?? undefined,
    async set(key, value, ttlSeconds) {
      await commands.run((client) => client.set(key, value, 'EX', ttlSeconds));
    },
    async getOrSet(key, value, ttlSeconds) {
      const args = [value, ttlSeconds];
      return String(await commands.run((client) => getOrSetScript.run(client, [key], args)));
    },
    async getAndDelete(key) {
      const value = await commands.run((client) => getAndDeleteScript.run(client, [key], []));
      return typeof value === 'string' ? value : undefined;
    },
    async delete(key) {
      await commands.run((client) => client.del(key));
    },
    ...createRedisLists(commands),
    ...createRedisByteBudgets(commands),
    admitRequest,
    async uncountRequest(key, entry) {
      await commands.run((client) => client.zrem(key, entry));
    },
    ...createRedisSessions({ commands, sessionKeyPrefix, clock, isCluster }),
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
      commands.close();
    },
  };
}

// Bytes of values that count in a budget: a sorted set of entries by the end of their time.

function createRedisByteBudgets(
  commands: CommandRunner,
): Pick<Store, 'reserveBytes' | 'releaseBytes'> {
  return {
    async reserveBytes(budget, entry, { maxBytes, ttlSeconds }) {
      const args = [toMember(entry), countBytes(entry), maxBytes, ttlSeconds];
      return (await commands.run((client) => reserveBytesScript.run(client, [budget], args))) === 1;
    },
    async releaseBytes(budget, entry) {
      await commands.run((client) => client.zrem(budget, toMember(entry)));
    },
  };
}

const countBytes = ({ bytes }: ByteEntry): number => Math.max(bytes, MIN_ENTRY_BYTES);

/** The script reads the bytes from it. */
const toMember = (entry: ByteEntry): string => `${countBytes(entry)}:${entry.name}`;

// Values that can also be listed, and short lists of the last values. Value and index lie in different slots of a
// cluster: each is a step of its own, sent together.

function createRedisLists(
  commands: CommandRunner,
): Pick<Store, 'setListed' | 'deleteListed' | 'readListed' | 'addRecent' | 'readRecent'> {
  return {
    /** Where only one of the two is done, the caller hears of a failure, and an entry without a value is not listed. */
    async setListed(list, key, value, ttlSeconds) {
      await commands.run((client) =>
        Promise.all([
          addToListScript.run(client, [list], [key, ttlSeconds]),
          client.set(key, value, 'EX', ttlSeconds),
        ]),
      );
    },
    async deleteListed(list, key) {
      const [removed] = await Promise.all([
        commands.run((client) => client.del(key)),
        removeFromSet(commands, list, key),
      ]);
      return removed === 1;
    },
    async readListed(list, request) {
      const { entries, next } = await readSetPage(commands, list, request);
      const items = await Promise.all(
        entries.map(async ({ id: key, time: expiresAt }) => {
          const value = await commands.run((client) => client.get(key));
          return value === null ? [] : [{ key, value, expiresAt }];
        }),
      );
      return { items: items.flat(), next };
    },
    async addRecent(key, value, { max, ttlSeconds }) {
      await commands.run((client) => addRecentScript.run(client, [key], [value, max, ttlSeconds]));
    },
    readRecent: (key) => commands.run((client) => client.lrange(key, 0, -1)),
  };
}

// §8, §11: requests are counted, and their sessions read and slid, on one server and on a cluster.

interface AdmitRequestOptions {
  readonly commands: CommandRunner;
  readonly sessionKeyPrefix: string;
  readonly clock: Clock;
}

type AdmitRequest = Store['admitRequest'];

/** One script over all windows and the session. */
function createServerAdmission(options: AdmitRequestOptions): AdmitRequest {
  const { commands, sessionKeyPrefix, clock } = options;
  const admitTogether = createAdmissionBatches(commands, clock);

  return (windows, access) => {
    const sessionKey =
      access === undefined ? '' : buildSessionKey(sessionKeyPrefix, access.sessionId);
    return admitTogether('', { windows, access, sessionKey });
  };
}

/**
 * The keys lie in different slots: one script per window, in order; a later refusal takes the
 * earlier entries back. The session comes last, when all windows have admitted, or failed: it may be
 * on a node that answers.
 */
function createClusterAdmission(options: AdmitRequestOptions): AdmitRequest {
  const { commands, sessionKeyPrefix, clock } = options;
  const admitTogether = createAdmissionBatches(commands, clock);

  return async function admitRequest(windows, access) {
    const counted = await countInAll(windows).catch(toLimitFailure);
    if (access === undefined || counted.verdict?.isAdmitted === false) return counted;
    const sessionKey = buildSessionKey(sessionKeyPrefix, access.sessionId);
    try {
      const { session } = await admitTogether(sessionKey, { windows: [], access, sessionKey });
      return { ...counted, session };
    } catch (failure) {
      if (counted.limitFailure !== undefined) throw failure;
      return { ...counted, session: { failure } };
    }
  };

  /** @throws StoreUnavailable, or what else failed of a window. */
  async function countInAll(windows: readonly LimitWindow[]): Promise<Admission> {
    let first = NOT_COUNTED;
    const earlier: { readonly key: string; readonly entry: string | undefined }[] = [];
    for (const window of windows) {
      const request = { windows: [window], access: undefined, sessionKey: '' };
      const counted = await admitTogether(window.key, request);
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

const NOT_COUNTED: Admission = { verdict: undefined, entry: undefined, session: NO_SESSION };

const toLimitFailure = (limitFailure: unknown): Admission => ({ ...NOT_COUNTED, limitFailure });
