// The shared store on Redis or Valkey: one server, Sentinel, or a cluster; TLS.
import type { Clock } from '../../clock.ts';
import type { Log } from '../../log.ts';
import type { Store } from '../store.ts';
import { createClusterAdmission, createServerAdmission } from './admit-request.ts';
import { createRedisByteBudgets } from './byte-budgets.ts';
import { createCommandRunner } from './command-runner.ts';
import { connect } from './connect.ts';
import { type Backoff, idleBackoff } from './connection.ts';
import { createRedisLists } from './lists.ts';
import { getAndDeleteScript, getOrSetScript } from './scripts.ts';
import { listServers, readServerFacts } from './server-facts.ts';
import { createRedisSessions } from './sessions.ts';
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
