import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { LimitCounting } from '../../src/config/groups/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createAdmissionBatches } from '../../src/store/redis/admission-batches.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import {
  type Admission,
  type LimitWindow,
  NO_SESSION,
  type Store,
  StoreUnavailable,
} from '../../src/store/store.ts';
import { collectLog } from '../support/gateway/log.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { startRedis } from '../support/stores/redis.ts';
import { describeGrants } from './grants.contract.ts';
import type { Harness } from './harness.ts';
import { age } from './redis-age.ts';
import { describePorts, describeStore } from './store.contract.ts';
import { subscribers } from './subscribers.ts';
import { describeWindows } from './windows.contract.ts';

const openOn = (url: string, counting: LimitCounting = 'log'): Store =>
  openRedisStore({
    url,
    counting,
    sessionKeyPrefix: 'mcp:session:',
    clock: systemClock,
    log: collectLog().log,
  });

const redis = useShared(startRedis);

const openWith = (counting: LimitCounting) => async (): Promise<Harness> => {
  const client = redis.client();
  await client.flushall();
  const stores = [openOn(redis.url, counting), openOn(redis.url, counting)] as const;
  return {
    store: stores[0],
    other: stores[1],
    maxShare: counting === 'leased' ? 0.05 : 0,
    advance: (ms) => age(client, ms),
    async close() {
      for (const store of stores) await store.close();
    },
  };
};

describeStore('Redis', openWith('log'), { isShared: true });
describePorts('Redis with leased counting', openWith('leased'), [describeWindows, describeGrants]);

test('§4.3 a ping to a Redis with a password is answered, and a message arrives', async () => {
  const locked = closeAfterTest(await startRedis({ password: 'correct-horse' }));
  const store = closeAfterTest(openOn(locked.url));
  await store.ping();
  const heard: string[] = [];
  store.subscribe('test:channel', (message) => heard.push(message));
  await expect
    .poll(() => locked.client().pubsub('NUMSUB', 'test:channel'))
    .toEqual(['test:channel', 1]);
  await store.publish('test:channel', 'one');
  await expect.poll(() => heard).toEqual(['one']);
});

describe('the keys and values in Redis', () => {
  const store = useShared(() => openOn(redis.url));

  test('§16 a value that is not UTF-8 is replaced, or deleted, where it stands as it was read', async () => {
    const client = redis.client();
    const broken = Buffer.from([0x61, 0xff, 0xfe, 0x62]);
    const other = Buffer.from([0x61, 0xfc, 0xfe, 0x62]);
    await client.set('test:bytes', broken);
    expect(await store.compareAndSet('test:bytes', 'a', 'wrong', 60)).toBe(false);
    const read = await store.get('test:bytes');
    expect(await store.compareAndSet('test:bytes', read, 'next', 60)).toBe(true);
    expect(await store.get('test:bytes')).toBe('next');
    expect(await store.compareAndSet('test:bytes', read, 'late', 60)).toBe(false);
    await client.set('test:bytes', other);
    expect(await store.compareAndDelete('test:bytes', read ?? '')).toBe(true);
    expect(await store.get('test:bytes')).toBeUndefined();
    const written = 'a\uFFFDb';
    await store.set('test:bytes', written, 60);
    expect(await store.compareAndSet('test:bytes', written, 'next', 60)).toBe(true);
  });

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
    await store.admitRequest(windows, undefined);
    await store.admitRequest(windows, undefined);
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
    await store.endSession(session.sessionId, { sub: 'ada' });
    expect(await client.zscore('mcp:session:index', session.sessionId)).toBeNull();
  });

  test.each([
    { what: 'no issuer', userIssuer: undefined, name: 'ada' },
    { what: 'an issuer', userIssuer: 'https://b.example', name: '["https://b.example","ada"]' },
  ])('§2.1 the sessions of a user of $what lie under one hash', async ({ userIssuer, name }) => {
    const client = redis.client();
    await client.flushall();
    await store.createSession({ ...session, userIssuer }, 3600, 2);
    const set = `mcp:session:user:${createHash('sha256').update(name).digest('base64url')}`;
    expect(await client.zscore(set, session.sessionId)).not.toBeNull();
    expect(await client.keys('mcp:session:user:*')).toEqual([set]);
    const named = await client.hget(`mcp:session:${session.sessionId}`, 'userIssuer');
    expect(named).toBe(userIssuer ?? null);
  });

  const access = { sessionId: session.sessionId, owner: { sub: 'ada' }, slideSeconds: 3600 };

  /** The commands that `work` sends, without what scripts call. */
  async function watchCommands(work: () => Promise<unknown>): Promise<readonly string[]> {
    const client = redis.client();
    await client.ping();
    const monitor = await redis.client().monitor();
    const seen: string[] = [];
    monitor.on('monitor', (...[, args, source]: unknown[]) => {
      if (source !== 'lua' && Array.isArray(args)) seen.push(args.join(' '));
    });
    await work();
    await client.echo('seen all');
    await expect.poll(() => seen.at(-1)).toBe('echo seen all');
    monitor.disconnect();
    return seen.slice(0, -1).map((line) => line.split(' ')[0] ?? '');
  }

  test('§11 limits and session are one command, and SCRIPT FLUSH does no harm', async () => {
    await store.createSession(session, 3600);
    // Once, so that Redis knows the script.
    await store.admitRequest(windows, access);
    const admit = async () => store.admitRequest(windows, access);
    expect(await watchCommands(admit)).toEqual(['evalsha']);
    await redis.client().call('SCRIPT', 'FLUSH');
    expect((await admit()).session).toMatchObject({ record: { userId: 'ada' } });
  });

  test('§11 what one turn of the event loop admits is one command, up to 64 requests', async () => {
    const admitMany = (count: number) =>
      Promise.all(Array.from({ length: count }, () => store.admitRequest(windows, access)));
    expect(await watchCommands(() => admitMany(64))).toEqual(['evalsha']);
    expect(await watchCommands(() => admitMany(150))).toEqual(['evalsha', 'evalsha', 'evalsha']);
  });

  test('§11 while Redis is behind, requests share the scripts that follow', async () => {
    const client = redis.client();
    await client.flushall();
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let scripts = 0;
    const admitTogether = createAdmissionBatches(
      {
        commands: {
          async run(task) {
            scripts += 1;
            await released;
            return task(client);
          },
          close() {},
        },
        clock: systemClock,
        isCluster: false,
        sessionKeyPrefix: 'mcp:session:',
      },
      undefined,
      false,
    );
    const window = { ...(windows[0] as LimitWindow), max: 100 };
    const admissions: Promise<Admission>[] = [];
    for (let turn = 0; turn < 50; turn += 1) {
      admissions.push(admitTogether('', { windows: [window], access: undefined }));
      await new Promise(setImmediate);
    }
    expect(scripts).toBe(4);
    release();
    const remaining = (await Promise.all(admissions)).map(({ verdict }) => verdict?.remaining);
    expect(remaining).toEqual(Array.from({ length: 50 }, (_, at) => 99 - at));
    expect(scripts).toBe(5);
  });

  test('§8.1 of a window of which very many entries are too old, the young ones count', async () => {
    const client = redis.client();
    const window = { ...(windows[0] as LimitWindow), key: 'ratelimit:mcp:paused' };
    const now = Date.now();
    const old = Array.from({ length: 12_000 }, (_, at) => [now - 120_000 + at, `old-${at}`]);
    await client.zadd(window.key, ...old.flat());
    const young = now - 10_000;
    await client.zadd(window.key, young, 'young-1', young + 1, 'young-2', young + 2, 'young-3');
    const admit = async () => {
      const { verdict } = await store.admitRequest([window], undefined);
      return {
        isAdmitted: verdict?.isAdmitted,
        remaining: verdict?.remaining,
        resetAt: verdict?.resetAt,
        entries: await client.zcard(window.key),
      };
    };
    const resetAt = young + 60_000;
    expect(await admit()).toEqual({ isAdmitted: true, remaining: 1, resetAt, entries: 7004 });
    expect(await admit()).toEqual({ isAdmitted: true, remaining: 0, resetAt, entries: 2005 });
    expect(await admit()).toEqual({ isAdmitted: false, remaining: 0, resetAt, entries: 5 });
  });

  test('§11 of requests that go together, what fails or is refused concerns no other', async () => {
    const client = redis.client();
    await client.flushall();
    await client.set('ratelimit:mcp:broken', 'no sorted set');
    await client.set('mcp:session:broken', 'no hash');
    await client.hset('mcp:session:damaged', { sessionId: 'damaged', userId: 'ada' });
    await client.hset('mcp:session:later', { ...session, sessionId: 'later', version: '2' });
    await store.createSession(session, 3600);
    const [ip, global] = windows as [LimitWindow, LimitWindow];
    const broken = { ...ip, key: 'ratelimit:mcp:broken' };
    const full = { ...ip, key: 'ratelimit:mcp:full', max: 0 };
    const of = (sessionId: string) => ({ ...access, sessionId });
    const good = {
      verdict: { isAdmitted: true, scope: 'ip' },
      session: { record: { userId: 'ada' } },
    };
    const failed = { failure: expect.any(StoreUnavailable) };
    const admissions = await Promise.all([
      store.admitRequest(windows, access),
      store.admitRequest([broken, global], access),
      store.admitRequest([ip, broken], undefined),
      store.admitRequest([full, global], access),
      store.admitRequest(windows, of('broken')),
      store.admitRequest(windows, of('damaged')),
      store.admitRequest(windows, of('later')),
      store.admitRequest(windows, of('absent')),
      store.admitRequest([], access),
      store.admitRequest(windows, { ...access, owner: { sub: 'eve' } }),
    ]);
    expect(admissions).toMatchObject([
      { ...good, verdict: { remaining: 4 } },
      { verdict: undefined, limitFailure: expect.any(StoreUnavailable), session: good.session },
      { verdict: undefined, limitFailure: expect.any(StoreUnavailable), session: NO_SESSION },
      { verdict: { isAdmitted: false, scope: 'ip', remaining: 0 }, session: NO_SESSION },
      { ...good, session: failed },
      { ...good, session: failed },
      { ...good, session: failed },
      { ...good, verdict: { remaining: 0 }, session: NO_SESSION },
      { verdict: undefined, session: good.session },
      { verdict: { isAdmitted: false, scope: 'ip' }, session: NO_SESSION },
    ]);
    expect(await client.zcard(ip.key)).toBe(5);
    expect(await client.zcard(global.key)).toBe(5);
    expect(await client.exists(full.key)).toBe(0);
  });

  test('§11 a key of a wrong type in place of a grant fails its own calls, which count, and read no session', async () => {
    const client = redis.client();
    await client.flushall();
    await client.hset('oauth:grant:broken', 'a', 'hash');
    await client.set('oauth:grant:good', 'AAAAAAAAAAAAAAAAsealed', 'EX', 60);
    await client.set('oauth:grant:short', 'AAAA', 'EX', 60);
    await store.createSession(session, 3600);
    const admitBy = (key?: string) =>
      store.admitRequest(windows, access, key && `oauth:grant:${key}`);
    const isAdmitted = { isAdmitted: true };
    const found = { record: { userId: 'ada' } };
    expect(
      await Promise.all(['broken', 'good', 'none', undefined, 'short'].map(admitBy)),
    ).toMatchObject([
      {
        verdict: isAdmitted,
        session: NO_SESSION,
        grant: { failure: expect.any(StoreUnavailable) },
      },
      { verdict: isAdmitted, session: found, grant: { version: 'AAAAAAAAAAAAAAAA' } },
      { verdict: undefined, entry: undefined, session: NO_SESSION, grant: { version: undefined } },
      { verdict: isAdmitted, session: found, grant: { version: undefined } },
      { verdict: isAdmitted, session: found, grant: { version: 'AAAA' } },
    ]);
    for (const { key } of windows) expect(await client.zcard(key)).toBe(4);
  });

  test('§11 a grant is one command more in the script, and one for all calls of a grant that go together', async () => {
    const client = redis.client();
    await client.flushall();
    const countReads = async (keys: readonly (string | undefined)[]) => {
      const before = await countCalls();
      await Promise.all(keys.map((key) => store.admitRequest([], access, key)));
      return (await countCalls()) - before;
    };
    const countCalls = async () => {
      const stats = await client.info('commandstats');
      return Number(/^cmdstat_getrange:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
    };
    expect(await countReads([undefined, undefined])).toBe(0);
    expect(await countReads(['oauth:grant:a'])).toBe(1);
    const many = Array.from({ length: 60 }, (_, at) => `oauth:grant:${at % 3}`);
    expect(await countReads([...many, undefined])).toBe(3);
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
