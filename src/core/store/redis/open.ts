// The shared store on Redis or Valkey: one server, TLS, or a cluster.
import type { Clock } from '../../clock.ts';
import type { Log } from '../../log.ts';
import { sessionKey } from '../keys.ts';
import type { Store } from '../store.ts';
import { createClusterAdmit, createSingleAdmit } from './admit.ts';
import { type Backoff, connect, idleBackoff } from './connect.ts';
import { createLink } from './link.ts';
import { takeScript } from './scripts.ts';
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
  const { sessionKeyPrefix: prefix, clock, log, backoff = idleBackoff } = options;
  const { client, isCluster } = connect(options.url, backoff);
  const link = createLink(client, { clock, log, freezes: !isCluster });
  const subscriber = createSubscriber(client, { backoff, clock, log });
  const admit = isCluster ? createClusterAdmit(link) : createSingleAdmit(link);

  return {
    get: async (key) => (await link.run((redis) => redis.get(key))) ?? undefined,
    async set(key, value, ttlSeconds) {
      await link.run((redis) => redis.set(key, value, 'EX', ttlSeconds));
    },
    add: async (key, value, ttlSeconds) =>
      (await link.run((redis) => redis.set(key, value, 'EX', ttlSeconds, 'NX'))) === 'OK',
    async take(key) {
      const value = await link.run((redis) => takeScript(redis, [key], []));
      return typeof value === 'string' ? value : undefined;
    },
    async delete(key) {
      await link.run((redis) => redis.del(key));
    },
    admit: (windows, sessionId) =>
      admit(windows, sessionId === undefined ? undefined : sessionKey(prefix, sessionId)),
    async withdraw(key, entry) {
      await link.run((redis) => redis.zrem(key, entry));
    },
    ...createRedisSessions({ link, prefix, clock, isCluster }),
    async publish(channel, message) {
      await link.run((redis) => redis.publish(channel, message));
    },
    subscribe: subscriber.subscribe,
    async ping() {
      await link.run((redis) => redis.ping());
    },
    async close() {
      subscriber.close();
      link.close();
    },
  };
}
