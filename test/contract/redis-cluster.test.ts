import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { LimitCounting } from '../../src/config/groups/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { buildLeasedKey } from '../../src/store/keys.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { NO_SESSION, type Store, StoreUnavailable } from '../../src/store/store.ts';
import { manualClock } from '../support/gateway/clock.ts';
import { collectLog } from '../support/gateway/log.ts';
import { closeAfterTest, useFresh, useShared } from '../support/lifetimes.ts';
import type { RedisServer } from '../support/stores/redis.ts';
import { startRedisCluster } from '../support/stores/redis-cluster.ts';
import { describeGrants } from './grants.contract.ts';
import type { Harness } from './harness.ts';
import { age } from './redis-age.ts';
import { describePorts, describeStore } from './store.contract.ts';
import { subscribers } from './subscribers.ts';
import { describeWindows } from './windows.contract.ts';

const openOn = (url: string, counting: LimitCounting = 'log', clock = systemClock): Store =>
  openRedisStore({
    url,
    counting,
    sessionKeyPrefix: 'mcp:session:',
    clock,
    log: collectLog().log,
  });

const whole = useShared(() => startRedisCluster());

const openWith = (counting: LimitCounting) => async (): Promise<Harness> => {
  const clients = whole.nodes.map((node) => node.client());
  for (const client of clients) await client.flushall();
  const stores = [openOn(whole.url, counting), openOn(whole.url, counting)] as const;
  return {
    store: stores[0],
    other: stores[1],
    maxShare: counting === 'leased' ? 0.05 : 0,
    async advance(ms) {
      for (const client of clients) await age(client, ms);
    },
    async close() {
      for (const store of stores) await store.close();
    },
  };
};

describeStore('Redis Cluster', openWith('log'), { isShared: true });
describePorts('Redis Cluster with leased counting', openWith('leased'), [
  describeWindows,
  describeGrants,
]);

describe('a Redis Cluster with a node down', () => {
  const cluster = useShared(() => startRedisCluster());
  const store = useShared(() => openOn(cluster.url));
  beforeAll(() => store.ping());

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
      clientCapabilities: '{}',
    };
    await store.createSession(session, 3600);
    await lost.kill();
    const window = {
      scope: 'ip' as const,
      key: `ratelimit:mcp:${limited}`,
      windowMs: 60_000,
      max: 5,
    };
    const admission = await store.admitRequest([window], {
      sessionId,
      owner: { sub: 'ada' },
      slideSeconds: 3600,
    });
    expect(admission.verdict).toBeUndefined();
    expect(admission.limitFailure).toBeInstanceOf(Error);
    expect(admission.session).toEqual({
      record: { ...session, lastAccessedAt: expect.any(Number) },
    });
  });
});

describe('a Redis Cluster without the node of a grant', () => {
  const cluster = useFresh(() => startRedisCluster());

  test('§11 the lookup fails, the call counts all the same, and its session is left alone', async () => {
    const store = closeAfterTest(openOn(cluster.url));
    const client = cluster.nodes[1]?.client();
    /** A key of the first node, which has the slots below 5461, or of another. */
    const find = async (prefix: string, isOnFirst: boolean) => {
      for (let at = 0; ; at += 1) {
        const slot = Number(await client?.cluster('KEYSLOT', `${prefix}${at}`));
        if (slot < 5461 === isOnFirst) return `${prefix}${at}`;
      }
    };
    const [lost, kept] = [await find('oauth:grant:', true), await find('oauth:grant:', false)];
    const key = await find('ratelimit:mcp:', false);
    const window = { scope: 'ip' as const, key, windowMs: 60_000, max: 5 };
    const access = { sessionId: 'none', owner: { sub: 'ada' }, slideSeconds: 60 };
    for (const grant of [lost, kept]) await store.set(grant, 'AAAAAAAAAAAAAAAAsealed', 60);
    await cluster.nodes[0]?.kill();
    expect(await store.admitRequest([window], access, lost)).toMatchObject({
      verdict: { isAdmitted: true, remaining: 4 },
      session: NO_SESSION,
      grant: { failure: expect.any(Error) },
    });
    expect(await store.admitRequest([window], undefined, kept)).toMatchObject({
      verdict: { remaining: 3 },
      grant: { version: 'AAAAAAAAAAAAAAAA' },
    });
  });
});

describe('a Redis Cluster with a node that hangs', () => {
  const cluster = useFresh(() => startRedisCluster());

  test('§8.5 however many requests are for it, none waits for more than one time-out', async () => {
    const store = closeAfterTest(openOn(cluster.url));
    const key = 'ratelimit:mcp:global';
    const window = { scope: 'global' as const, key, windowMs: 60_000, max: 100_000 };
    await store.admitRequest([window], undefined);
    const slot = Number(await cluster.nodes[0]?.client().cluster('KEYSLOT', key));
    cluster.nodes[Math.floor((slot * 3) / 16_384)]?.freeze();

    const admissions = Array.from({ length: 2000 }, () => store.admitRequest([window], undefined));
    const answered = Promise.all(admissions).then(() => 'answered');
    async function waitForTimeOuts(count: number) {
      for (let at = 0; at < count; at += 1) await store.get(key).catch(() => {});
      return 'timed out';
    }
    expect(await Promise.race([answered, waitForTimeOuts(3)])).toBe('answered');
    for (const { limitFailure } of await Promise.all(admissions)) {
      expect(limitFailure).toBeInstanceOf(StoreUnavailable);
    }
  });
});

describe('messages over a Redis Cluster whose nodes go', () => {
  const cluster = useFresh(() => startRedisCluster());
  let store: Store;
  beforeEach(() => {
    store = openOn(cluster.url);
  });
  afterEach(() => store.close());

  const SOON = { timeout: 20_000 };
  const CHANNEL = 'mcp:session:bus';

  /** The node that the store listens to. */
  async function listenedNode(): Promise<RedisServer> {
    for (const node of cluster.nodes) {
      if ((await subscribers(node.client())).length > 0) return node;
    }
    throw new Error('no node is listened to');
  }

  /** Whether a message sent now arrives, by whatever node answers. */
  function arrivals() {
    const heard: string[] = [];
    let serial = 0;
    store.subscribe(CHANNEL, (message) => heard.push(message));
    return async function arrives() {
      serial += 1;
      await store.publish(CHANNEL, String(serial)).catch(() => {});
      return heard.includes(String(serial - 1));
    };
  }

  test('§8.5 another node is listened to when the one is down', async () => {
    const arrives = arrivals();
    await expect.poll(arrives, SOON).toBe(true);
    const lost = await listenedNode();
    await lost.kill();
    await expect.poll(arrives, SOON).toBe(true);
  });

  test('§8.5 another node is listened to when the one leaves the cluster, alive', async () => {
    let arrives = arrivals();
    await expect.poll(arrives, SOON).toBe(true);
    // Not the node of the URL: whenever the client has lost all nodes, it asks that one for the others.
    while ((await listenedNode()) === cluster.nodes[0]) {
      await store.close();
      store = openOn(cluster.url);
      arrives = arrivals();
      await expect.poll(arrives, SOON).toBe(true);
    }
    const left = await listenedNode();
    const id = String(await left.client().cluster('MYID'));
    const others = cluster.nodes.filter((node) => node !== left);
    await left.client().call('CLUSTER', 'RESET', 'HARD');
    for (const other of others) await other.client().call('CLUSTER', 'FORGET', id);
    const at = cluster.nodes.indexOf(left);
    const range = [Math.floor((16_384 * at) / 3), Math.floor((16_384 * (at + 1)) / 3) - 1] as const;
    await others[0]?.client().call('CLUSTER', 'ADDSLOTSRANGE', ...range);
    // What is asked of the lost slots leads to their new owner.
    const hasMoved = async () => {
      const keys = Array.from({ length: 20 }, (_, key) => `key ${key}`);
      await Promise.allSettled(keys.map((key) => store.get(key)));
      return (await arrives()) && (await subscribers(left.client())).length === 0;
    };
    await expect.poll(hasMoved, SOON).toBe(true);
  });
});

describe('a Redis Cluster with a node that hangs until its connections are given up', () => {
  const cluster = useFresh(() => startRedisCluster());

  test('§8.7 what is returned while the node hangs is returned once', async () => {
    const clock = manualClock();
    const [returning, holding] = [
      openOn(cluster.url, 'leased', clock),
      openOn(cluster.url, 'leased'),
    ];
    for (const store of [returning, holding]) closeAfterTest(store);
    const window = { scope: 'ip' as const, key: 'ratelimit:mcp:a', windowMs: 3_600_000, max: 1000 };
    const admit = (store: Store) => store.admitRequest([window], undefined);
    // Permits of both end at the same time.
    for (const store of [returning, holding]) for (let at = 0; at < 5; at += 1) await admit(store);
    const client = cluster.nodes[0]?.client();
    const slot = Number(await client?.cluster('KEYSLOT', window.key));
    const node = cluster.nodes[Math.floor((slot * 3) / 16_384)];
    const countHeld = async () => {
      const permits = (await node?.client().hvals(buildLeasedKey(window.key))) ?? [];
      return permits.reduce((sum, held) => sum + Number(held), 0);
    };
    const countReturns = async () => {
      const stats = await node?.client().info('commandstats');
      return Number(/^cmdstat_eval:calls=(\d+)/m.exec(stats ?? '')?.[1] ?? 0);
    };
    expect(await countHeld()).toBe(8);
    const evals = await countReturns();
    node?.freeze();
    clock.advance(5000);
    // The store gives a connection up after two seconds of silence, and sends again what was not answered there.
    await pause(2600);
    node?.thaw();
    await expect.poll(countReturns, { timeout: 5000 }).toBe(evals + 2);
    // Of its four it had used one.
    expect(await countHeld()).toBe(8 - 3);
  });
});
