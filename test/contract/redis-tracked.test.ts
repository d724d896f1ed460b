// STORE_READS=tracked: the contracts of all ports, and what a process remembers of what it has read.
import type { Redis } from 'ioredis';
import { systemClock } from '../../src/platform/clock.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import type { Store } from '../../src/store/store.ts';
import { collectLog } from '../support/gateway/log.ts';
import { useShared } from '../support/lifetimes.ts';
import { startRedis } from '../support/stores/redis.ts';
import type { Harness } from './harness.ts';
import { age } from './redis-age.ts';
import { describeStore } from './store.contract.ts';

const openTracked = (url: string): Store =>
  openRedisStore({
    url,
    sessionKeyPrefix: 'mcp:session:',
    clock: systemClock,
    log: collectLog().log,
    reads: 'tracked',
  });

/**
 * What Redis had written before it answered this command lies in the sockets of this process: after the turn of the event
 * loop in which the answer was read, it was read, too.
 */
async function hearAll(client: Redis): Promise<void> {
  await client.ping();
  await new Promise(setImmediate);
}

/** A store after each of whose operations all others have heard of what it has changed. */
const withHearing = (store: Store, client: Redis): Store =>
  new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        const result: unknown = member.apply(target, args);
        // Of a store that is closed last, the server may be, too.
        return result instanceof Promise
          ? result.finally(() => hearAll(client).catch(() => {}))
          : result;
      };
    },
  });

const redis = useShared(startRedis);

async function open(): Promise<Harness> {
  const client = redis.client();
  await client.flushall();
  const [store, other] = [openTracked(redis.url), openTracked(redis.url)] as const;
  return {
    store: withHearing(store, client),
    other: withHearing(other, client),
    async advance(ms) {
      await age(client, ms);
      await hearAll(client);
    },
    async close() {
      await store.close();
      await other.close();
    },
  };
}

describeStore('Redis with tracked reads', open, { isShared: true });
