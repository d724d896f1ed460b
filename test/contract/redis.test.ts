import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { openRedisStore } from '../../src/core/store/redis/open.ts';
import type { Store } from '../../src/core/store/store.ts';
import { collectLog } from '../support/gateway/log.ts';
import { useShared } from '../support/lifetimes.ts';
import { startRedis } from '../support/stores/redis.ts';
import { age } from './redis-age.ts';
import { describeStore, type Harness } from './store.contract.ts';
import { subscribers } from './subscribers.ts';
import { describeUserSessions } from './user-sessions.contract.ts';

const openOn = (url: string): Store =>
  openRedisStore({
    url,
    sessionKeyPrefix: 'mcp:session:',
    clock: systemClock,
    log: collectLog().log,
  });

async function open(): Promise<Harness> {
  const redis = await startRedis();
  const client = redis.client();
  const stores = [openOn(redis.url), openOn(redis.url)] as const;
  return {
    store: stores[0],
    other: stores[1],
    advance: (ms) => age(client, ms),
    async close() {
      for (const store of stores) await store.close();
      await redis.close();
    },
  };
}

describeStore('Redis', open);
describeUserSessions('Redis', open);

describeStore('password-protected Redis', async () => {
  const redis = await startRedis({ password: 'correct-horse' });
  const client = redis.client();
  const store = openOn(redis.url);
  return {
    store,
    other: store,
    advance: (ms) => age(client, ms),
    async close() {
      await store.close();
      await redis.close();
    },
  };
});

describe('the keys and values in Redis', () => {
  const redis = useShared(startRedis);
  const store = useShared(() => openOn(redis.url));

  const windows = (['ip', 'global'] as const).map((scope) => ({
    scope,
    key: `ratelimit:mcp:${scope === 'ip' ? '10.0.0.1' : 'global'}`,
    windowMs: 60_000,
    max: 5,
  }));
  const session = {
    sessionId: '6f1f4a4e-5b7f-4f0e-9d6c-0a1b2c3d4e5f',
    createdAt: 1,
    lastAccessedAt: 2,
    userId: 'ada',
    protocolVersion: '2025-11-25',
    clientInfo: '{"list":[]}',
    clientCapabilities: '{"roots":{}}',
    logLevel: 'info',
  };

  test('§2.8 windows are sorted sets of time stamps that expire with the window', async () => {
    const client = redis.client();
    await store.countRequestAndReadSession(windows, undefined);
    await store.countRequestAndReadSession(windows, undefined);
    for (const { key } of windows) {
      const [first, score] = await client.zrangebyscore(key, '-inf', '+inf', 'WITHSCORES');
      expect(first).toMatch(new RegExp(`^${score}-.+`));
      expect(await client.zcard(key)).toBe(2);
      const left = await client.pttl(key);
      expect(left).toBeGreaterThan(50_000);
      expect(left).toBeLessThanOrEqual(60_000);
    }
  });

  test('§2.1 a session is a hash under its key with the time-to-live, and stands in the index', async () => {
    const client = redis.client();
    await store.createSession(session, 3600);
    const key = `mcp:session:${session.sessionId}`;
    expect(await client.hgetall(key)).toEqual({
      version: '1',
      ...session,
      createdAt: '1',
      lastAccessedAt: '2',
    });
    expect(await client.ttl(key)).toBeGreaterThan(3590);
    expect(await client.zscore('mcp:session:index', session.sessionId)).not.toBeNull();
    await store.endSession(session.sessionId, 'ada');
    expect(await client.zscore('mcp:session:index', session.sessionId)).toBeNull();
  });

  test('§2.1 limits and session are one command, and SCRIPT FLUSH does no harm', async () => {
    await store.createSession(session, 3600);
    // Once each, so that Redis knows the scripts.
    await store.countRequestAndReadSession(windows, session.sessionId);
    await store.touchSession(session.sessionId, 'ada', { lastAccessedAt: 3 }, 3600);
    const monitor = await redis.client().monitor();
    const seen: string[] = [];
    monitor.on('monitor', (...[, args, source]: unknown[]) => {
      if (source !== 'lua' && Array.isArray(args)) seen.push(String(args[0]));
    });
    await store.countRequestAndReadSession(windows, session.sessionId);
    await store.touchSession(session.sessionId, 'ada', { lastAccessedAt: 3 }, 3600);
    await expect.poll(() => seen).toEqual(['evalsha', 'evalsha']);
    await redis.client().call('SCRIPT', 'FLUSH');
    expect(
      (await store.countRequestAndReadSession(windows, session.sessionId)).session,
    ).toBeDefined();
    expect(await store.touchSession(session.sessionId, 'ada', { lastAccessedAt: 3 }, 3600)).toBe(
      true,
    );
    monitor.disconnect();
  });

  test('§3.1 one connection more, from the first listener until the store is closed', async () => {
    const client = redis.client();
    const listening = openOn(redis.url);
    await listening.ping();
    expect(await subscribers(client)).toHaveLength(0);
    const ends = ['a', 'b', 'b'].map((channel) => listening.subscribe(channel, () => {}));
    const counts = async () => client.pubsub('NUMSUB', 'a', 'b');
    await expect.poll(counts).toEqual(['a', 1, 'b', 1]);
    const [one, ...others] = await subscribers(client);
    expect(one).toBeDefined();
    expect(others).toEqual([]);
    ends[1]?.();
    ends[0]?.();
    await expect.poll(counts).toEqual(['a', 0, 'b', 1]);
    await listening.close();
    await expect.poll(() => subscribers(client)).toHaveLength(0);
  });
});
