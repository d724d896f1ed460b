// The shared store on Redis or Valkey: one server, TLS, or a cluster.
import type { Clock } from '../../clock.ts';
import type { Log } from '../../log.ts';
import { buildSessionKey } from '../keys.ts';
import type { Store } from '../store.ts';
import { createCommandRunner } from './command-runner.ts';
import { type Backoff, connect, idleBackoff } from './connect.ts';
import { createClusterCount, createServerCount } from './count-request.ts';
import { getAndDeleteScript, getOrSetScript } from './scripts.ts';
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
  const { client: commandClient, isCluster } = connect(options.url, backoff);
  const commands = createCommandRunner(commandClient, { clock, log, isCluster });
  const subscriber = createSubscriber(commandClient, { backoff, clock, log });
  const countAndRead = isCluster ? createClusterCount(commands) : createServerCount(commands);

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
    countRequestAndReadSession: (windows, sessionId) =>
      countAndRead(
        windows,
        sessionId === undefined ? undefined : buildSessionKey(sessionKeyPrefix, sessionId),
      ),
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
    async close() {
      subscriber.close();
      commands.close();
    },
  };
}
