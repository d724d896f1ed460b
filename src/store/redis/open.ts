// The shared store on Redis or Valkey: one server, Sentinel, or a cluster; TLS.
import { Redis } from 'ioredis';
import type { LimitCounting } from '../../config/groups/limits.ts';
import type { StoreReads } from '../../config/groups/store.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { Store } from '../store.ts';
import { createCommandRunner } from './command-runner.ts';
import { connectToRedis } from './connect.ts';
import { type Backoff, idleBackoff } from './connection.ts';
import { listServers, readServerFacts } from './examine.ts';
import { createRedisKeyValue } from './key-value.ts';
import { createRedisSessions } from './sessions.ts';
import { createShares } from './shares.ts';
import { createSubscriber } from './subscriber.ts';
import { createTrackedRecords, forgetOwnChanges } from './tracked-records.ts';
import { createRedisWindows } from './windows.ts';

export interface RedisOptions {
  /** `REDIS_URL`. */
  readonly url: string;
  readonly sessionKeyPrefix: string;
  readonly clock: Clock;
  readonly log: Log;
  /** `RATE_LIMIT_COUNTING`. */
  readonly counting?: LimitCounting;
  /** `STORE_READS`. */
  readonly reads?: StoreReads;
  /** Idle rhythm of reconnecting. */
  readonly backoff?: Backoff;
}

/** Does not wait for the connection: the service starts while Redis is down. */
export function openRedisStore(options: RedisOptions): Store {
  const { sessionKeyPrefix, clock, log, counting, backoff = idleBackoff } = options;
  const connection = connectToRedis(options.url, { backoff, clock, log });
  const commands = createCommandRunner(connection, { clock, log });
  const subscriber = createSubscriber(connection.client, { backoff, clock, log });
  const shares =
    counting === 'leased'
      ? createShares({ commands, clock, isCluster: connection.isCluster })
      : undefined;
  const records =
    options.reads === 'tracked' && connection.client instanceof Redis
      ? createTrackedRecords(connection.client, { sessionKeyPrefix, backoff, clock, log })
      : undefined;
  const shared = { commands, sessionKeyPrefix, clock, isCluster: connection.isCluster };

  return {
    isShared: true,
    databaseSystem: 'redis',
    ...forgetOwnChanges(
      { ...createRedisKeyValue(commands), ...createRedisSessions(shared) },
      { records, sessionKeyPrefix },
    ),
    ...createRedisWindows({ ...shared, shares, records }),
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
