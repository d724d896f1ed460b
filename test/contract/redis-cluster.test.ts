import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { openRedisStore } from '../../src/core/store/redis/open.ts';
import type { Store } from '../../src/core/store/store.ts';
import { collectLog } from '../support/log.ts';
import { type RedisCluster, startRedisCluster } from '../support/redis.ts';
import { age } from '../support/redis-age.ts';
import { describeStore } from './store.contract.ts';

const openOn = (url: string): Store =>
  openRedisStore({
    url,
    sessionKeyPrefix: 'mcp:session:',
    clock: systemClock,
    log: collectLog().log,
  });

describeStore('Redis Cluster', async () => {
  const cluster = await startRedisCluster();
  const clients = cluster.nodes.map((node) => node.client());
  const stores = [openOn(cluster.url), openOn(cluster.url)] as const;
  return {
    store: stores[0],
    other: stores[1],
    async advance(ms) {
      for (const client of clients) await age(client, ms);
    },
    async close() {
      for (const store of stores) await store.close();
      await cluster.close();
    },
  };
});

describe('§8 a Redis Cluster with a node down', () => {
  let cluster: RedisCluster;
  let store: Store;
  beforeAll(async () => {
    cluster = await startRedisCluster();
    store = openOn(cluster.url);
    await store.ping();
  });
  afterAll(async () => {
    await store.close();
    await cluster.close();
  });

  test('§8.4 sessions on the other nodes are read although the limits cannot be asked', async () => {
    const [lost] = cluster.nodes;
    const client = cluster.nodes[1]?.client();
    if (!lost || !client) throw new Error('no nodes');
    // Find names whose keys lie on the lost node (slots below 5461) and on another.
    const slot = async (key: string) => Number(await client.cluster('KEYSLOT', key));
    const find = async (prefix: string, onLost: boolean) => {
      for (let at = 0; ; at++) {
        const name = `0000000${(at % 10).toString()}-0000-4000-8000-${String(at).padStart(12, '0')}`;
        if ((await slot(prefix + name)) < 5461 === onLost) return name;
      }
    };
    const sessionId = await find('mcp:session:', false);
    const limited = await find('ratelimit:mcp:', true);
    const session = {
      sessionId,
      createdAt: 1,
      lastAccessedAt: 1,
      userId: 'ada',
      protocolVersion: '2025-11-25',
    };
    await store.createSession(session, 3600);
    await lost.kill();
    const window = {
      scope: 'ip' as const,
      key: `ratelimit:mcp:${limited}`,
      windowMs: 60_000,
      max: 5,
    };
    const admission = await store.admit([window], sessionId);
    expect(admission.verdict).toBeUndefined();
    expect(admission.limitFailure).toBeInstanceOf(Error);
    expect(admission.session).toEqual(session);
    expect(await store.touchSession(sessionId, 'ada', 2, 3600)).toBe(true);
  });
});
