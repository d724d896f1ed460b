// The shared store on Redis or Valkey: one server, Sentinel, or a cluster; TLS.
import { Redis } from 'ioredis';
import type { LimitCounting } from '../../config/groups/limits.ts';
import type { StoreReads } from '../../config/groups/store.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import type { Store } from '../store.ts';
import { createCommandRunner, type RedisAccess } from './command-runner.ts';
import { connectToRedis } from './connect.ts';
import { type Backoff, idleBackoff } from './connection.ts';
import { listServers, readServerFacts } from './examine.ts';
import { createRedisKeyValue } from './key-value.ts';
import { createRedisSessions } from './sessions.ts';
import { createShares } from './shares.ts';
import { createSubscriber } from './subscriber.ts';
import { createTrackedRecords, forgetOwnChanges } from './tracked-records.ts';
import { createRedisWindows } from './windows.ts';

export interface RedisStoreSettings extends ClockAndLog {
  /** `REDIS_URL`. */
  readonly url: string;
  readonly sessionKeyPrefix: string;
  /** `RATE_LIMIT_COUNTING`. */
  readonly counting?: LimitCounting;
  /** `STORE_READS`. */
  readonly reads?: StoreReads;
  /** Idle rhythm of reconnecting. */
  readonly backoff?: Backoff;
}

/** Does not wait for the connection: the service starts while Redis is down. */
export function openRedisStore(settings: RedisStoreSettings): Store {
  const { url, sessionKeyPrefix, clock, log, counting, reads, backoff = idleBackoff } = settings;
  const connection = connectToRedis(url, backoff, settings);
  const commands = createCommandRunner(connection, settings);
  const { client: commandClient, isCluster } = connection;
  const redis: RedisAccess = {
    client: commandClient,
    isCluster,
    commands,
    sessionKeyPrefix,
    backoff,
    clock,
    log,
  };
  const subscriber = createSubscriber(redis);
  const shares = counting === 'leased' ? createShares(redis) : undefined;
  const records =
    reads === 'tracked' && commandClient instanceof Redis
      ? createTrackedRecords(commandClient, redis)
      : undefined;

  return {
    isShared: true,
    databaseSystem: 'redis',
    ...forgetOwnChanges(
      { ...createRedisKeyValue(commands), ...createRedisSessions(redis) },
      records,
      sessionKeyPrefix,
    ),
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
