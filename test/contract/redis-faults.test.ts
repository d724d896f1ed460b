// §17: Redis down, frozen, back.
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/platform/clock.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import { collectLog, type LogLine } from '../support/gateway/log.ts';
import { closeAfterTest, useFresh } from '../support/lifetimes.ts';
import { startRedis } from '../support/stores/redis.ts';
import { readSession, slideSession } from '../support/stores/session-steps.ts';
import { subscribers } from './subscribers.ts';

const redis = useFresh(startRedis);
let store: Store;
let lines: readonly LogLine[];

const open = (url: string, backoff?: () => number, clock: Clock = systemClock): Store => {
  const collected = collectLog();
  lines = collected.lines;
  return closeAfterTest(
    openRedisStore({
      url,
      sessionKeyPrefix: 'mcp:session:',
      clock,
      log: collected.log,
      ...(backoff && { backoff }),
    }),
  );
};

/** How an operation ended, and after how many milliseconds. */
async function outcome(operation: Promise<unknown>) {
  const started = performance.now();
  const error: unknown = await operation.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return { error, ms: performance.now() - started };
}

/** Keeps this process busy, as a slow tool would. */
function stall(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

const isUp = async () => (await outcome(store.ping())).error === undefined;

describe('Redis that goes away', () => {
  test('§8.5 a killed Redis: every operation fails as unavailable, none hangs', async () => {
    store = open(redis.url);
    await store.ping();
    const pending = outcome(store.ping());
    await redis.kill();
    await pending;
    const outcomes = await Promise.all(
      [
        store.get('key'),
        store.set('key', 'value', 60),
        readSession(store, '6f1f4a4e-5b7f-4f0e-9d6c-0a1b2c3d4e5f'),
        slideSession(store, 'x', 'ada', 60),
        store.endSession('x', { sub: 'ada' }),
        store.sweepSessions(),
        store.publish('channel', 'message'),
        store.ping(),
      ].map(outcome),
    );
    for (const { error, ms } of outcomes) {
      expect(error).toBeInstanceOf(StoreUnavailable);
      expect(ms).toBeLessThan(2000);
    }
  });

  test('§8.5 stalls of this process are no outage: what Redis answers meanwhile counts', async () => {
    store = open(redis.url);
    await store.set('key', 'value', 60);
    for (let round = 0; round < 5; round++) {
      // From a timer: the commands leave after the stall, when their time would be over.
      const read = await new Promise((resolve) =>
        setTimeout(() => {
          resolve(Promise.all([store.get('key'), store.get('key')]));
          stall(300);
        }, 0),
      );
      expect(read).toEqual(['value', 'value']);
    }
    expect(lines).toEqual([]);
  });

  test('§8.5 one line says that the store is gone and one that it is back', async () => {
    store = open(redis.url);
    await store.ping();
    await redis.kill();
    const of = (level: string) => lines.filter((line) => line.level === level);
    await expect.poll(() => of('error').length).toBe(1);
    for (let turn = 0; turn < 20; turn++) await outcome(store.ping());
    expect(of('error')).toHaveLength(1);
    expect(of('error')[0]?.msg).toContain('REDIS_URL');
    await redis.restart();
    await expect.poll(isUp, { timeout: 5000 }).toBe(true);
    expect(of('error')).toHaveLength(1);
    expect(of('info')).toHaveLength(1);
  });

  test('§8.5 the first good answer comes at once, although the back-off is at 30 s', async () => {
    store = open(redis.url, () => 30_000);
    await store.ping();
    await redis.kill();
    // Two attempts at least, so that the client sits in its 30 s pause.
    await expect.poll(async () => (await outcome(store.ping())).ms).toBeLessThan(50);
    await redis.restart();
    const back = performance.now();
    await expect.poll(isUp, { timeout: 10_000, interval: 50 }).toBe(true);
    // Far below the back-off, far above a slow machine's noise.
    expect(performance.now() - back).toBeLessThan(10_000);
  });

  test('§8.5 a store that opens while Redis is down works once Redis is there', async () => {
    await redis.kill();
    store = open(redis.url, () => 30_000);
    expect((await outcome(store.ping())).error).toBeInstanceOf(StoreUnavailable);
    await redis.restart();
    await expect.poll(isUp, { timeout: 10_000 }).toBe(true);
  });
});

describe('Redis that freezes', () => {
  test('§8.5 operations time out once, then fail at once, and work when it thaws', async () => {
    store = open(redis.url);
    await store.ping();
    redis.freeze();
    const burst = await Promise.all(Array.from({ length: 50 }, () => outcome(store.get('key'))));
    for (const { error } of burst) expect(error).toBeInstanceOf(StoreUnavailable);
    const after = await Promise.all(Array.from({ length: 200 }, () => outcome(store.get('key'))));
    for (const { error } of after) expect(error).toBeInstanceOf(StoreUnavailable);
    // Known to be frozen: no operation waits for the deadline of its own.
    const waited = after.filter(({ ms }) => ms > 200);
    expect(waited.length).toBeLessThanOrEqual(2);
    redis.thaw();
    await expect.poll(isUp, { timeout: 10_000 }).toBe(true);
  });

  test('§8.5 it recovers although the connection was given up meanwhile', async () => {
    store = open(redis.url);
    await store.ping();
    redis.freeze();
    const frozenAt = performance.now();
    // Readiness probes go on; after 2 s the silent connection is replaced.
    await expect
      .poll(
        async () => {
          await outcome(store.ping());
          return performance.now() - frozenAt > 4500;
        },
        { timeout: 15_000 },
      )
      .toBe(true);
    redis.thaw();
    await expect.poll(isUp, { timeout: 10_000 }).toBe(true);
  });
});

describe('Redis that refuses', () => {
  test('§8.5 a wrong password is said in the log, without the password', async () => {
    const locked = closeAfterTest(await startRedis({ password: 'right' }));
    store = open(locked.url.replace('right', 'wr0ng-secret'));
    await expect.poll(() => lines.filter(({ level }) => level === 'error').length).toBe(1);
    expect(String(lines[0]?.cause)).toMatch(/WRONGPASS|NOAUTH|password/i);
    expect(JSON.stringify(lines)).not.toContain('wr0ng-secret');
    expect((await outcome(store.ping())).error).toBeInstanceOf(StoreUnavailable);
  });

  test('§8.5 an error that Redis answers is unavailability, not absence', async () => {
    store = open(redis.url);
    await redis.client().set('ratelimit:mcp:x', 'not a sorted set');
    const window = { scope: 'ip', key: 'ratelimit:mcp:x', windowMs: 1000, max: 1 } as const;
    const { verdict, limitFailure } = await store.admitRequest([window], undefined);
    expect(verdict).toBeUndefined();
    expect(limitFailure).toBeInstanceOf(StoreUnavailable);
    await expect(store.ping()).resolves.toBeUndefined();
  });

  test('§8.5 a primary that became a replica can do nothing: the store is asked elsewhere', async () => {
    store = open(redis.url);
    const client = redis.client();
    const window = { scope: 'ip', key: 'ratelimit:mcp:y', windowMs: 60_000, max: 9 } as const;
    await store.admitRequest([window], undefined);
    const countConnections = async () =>
      Number(/total_connections_received:(\d+)/.exec(await client.info('stats'))?.[1]);
    await client.call('REPLICAOF', '127.0.0.1', '1');
    const before = await countConnections();
    const { error } = await outcome(Promise.resolve(store.admitRequest([window], undefined)));
    expect(error).toBeInstanceOf(StoreUnavailable);
    await expect.poll(countConnections).toBeGreaterThan(before);
    await client.call('REPLICAOF', 'NO', 'ONE');
    await expect.poll(isUp, { timeout: 10_000 }).toBe(true);
    expect((await store.admitRequest([window], undefined)).verdict).toMatchObject({
      remaining: 7,
    });
  });
});

describe('messages over a broken connection', () => {
  const CHANNEL = 'mcp:session:bus';
  const SOON = { timeout: 10_000 };

  /** Listens, and tells whether a message of now arrives. */
  function listen() {
    let heard = '';
    let serial = 0;
    store.subscribe(CHANNEL, (message) => {
      heard = message;
    });
    return async function arrives(): Promise<boolean> {
      serial += 1;
      const message = String(serial);
      await outcome(store.publish(CHANNEL, message));
      return expect
        .poll(() => heard, { timeout: 100, interval: 5 })
        .toBe(message)
        .then(
          () => true,
          () => false,
        );
    };
  }

  const subscriberIds = async () => (await subscribers(redis.client())).map(({ id }) => id);

  test('§8.5 messages arrive again when Redis is back, although the back-off is at 30 s', async () => {
    store = open(redis.url, () => 30_000);
    const arrives = listen();
    await expect.poll(arrives, SOON).toBe(true);
    await redis.kill();
    expect(await arrives()).toBe(false);
    await redis.restart();
    const back = performance.now();
    await expect.poll(arrives, SOON).toBe(true);
    expect(performance.now() - back).toBeLessThan(10_000);
  });

  test('§8.5 messages arrive again by themselves, when nothing else is asked of the store', async () => {
    store = open(redis.url);
    const heard: string[] = [];
    store.subscribe(CHANNEL, (message) => heard.push(message));
    const client = redis.client();
    await expect.poll(() => client.publish(CHANNEL, 'before'), SOON).toBe(1);
    await redis.kill();
    await redis.restart();
    await expect.poll(() => client.publish(CHANNEL, 'after'), SOON).toBe(1);
    await expect.poll(() => heard.at(-1)).toBe('after');
    expect(lines.filter(({ level }) => level === 'error').length).toBeLessThanOrEqual(1);
  });

  test('§8.5 a listener that begins while Redis is down hears once it is there', async () => {
    await redis.kill();
    store = open(redis.url);
    const arrives = listen();
    expect(await arrives()).toBe(false);
    await redis.restart();
    await expect.poll(arrives, SOON).toBe(true);
  });

  test('§8.5 a connection that breaks as often as it is made is made again', async () => {
    store = open(redis.url, () => 1);
    const arrives = listen();
    const client = redis.client();
    let kills = 0;
    const kill = async () => {
      kills += Number(await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub'));
      return kills;
    };
    await expect.poll(kill, { ...SOON, interval: 1 }).toBeGreaterThan(20);
    await expect.poll(arrives, SOON).toBe(true);
    expect(await subscriberIds()).toHaveLength(1);
  });

  test('§8.5 a silent connection is kept, longer than one that owes an answer', async () => {
    store = open(redis.url);
    const arrives = listen();
    await expect.poll(arrives, SOON).toBe(true);
    const before = await subscriberIds();
    // Redis counts the seconds: more than the two of a command, less than the ten until a PING.
    const idle = async () => (await subscribers(redis.client()))[0]?.idle;
    await expect.poll(idle, SOON).toBeGreaterThan(2);
    expect(await arrives()).toBe(true);
    expect(await subscriberIds()).toEqual(before);
  });

  test('§8.5 a dead connection is noticed by its silence, and replaced', async () => {
    // A hundred PINGs in the time of one.
    const quick: Clock = {
      ...systemClock,
      after: (delay, task) => systemClock.after(delay / 100, task),
    };
    store = open(redis.url, undefined, quick);
    const arrives = listen();
    await expect.poll(arrives, SOON).toBe(true);
    const before = await subscriberIds();
    redis.freeze();
    const broken = () => lines.filter(({ level, cause }) => level === 'debug' && cause).length;
    await expect.poll(broken, SOON).toBeGreaterThan(0);
    redis.thaw();
    await expect.poll(arrives, SOON).toBe(true);
    expect(await subscriberIds()).not.toEqual(before);
  });

  test('§8.5 a user without the channel: one line says so, and it works once allowed', async () => {
    const client = redis.client();
    await client.call('ACL', 'SETUSER', 'default', 'resetchannels');
    store = open(redis.url, () => 10);
    const arrives = listen();
    expect((await outcome(store.publish(CHANNEL, 'x'))).error).toBeInstanceOf(StoreUnavailable);
    const warnings = () => lines.filter(({ level }) => level === 'warn');
    await expect.poll(() => warnings().length, SOON).toBe(1);
    expect(warnings()[0]?.msg).toContain('MCP_SESSION_KEY_PREFIX');
    expect(String(warnings()[0]?.cause)).toContain('NOPERM');
    // Some attempts later.
    const { total_connections_received: first } = await stats(client);
    await expect
      .poll(async () => (await stats(client)).total_connections_received, SOON)
      .toBeGreaterThan((first ?? 0) + 5);
    expect(warnings()).toHaveLength(1);
    await client.call('ACL', 'SETUSER', 'default', 'allchannels');
    await expect.poll(arrives, SOON).toBe(true);
  });
});

/** The figures of INFO. */
async function stats(client: Redis): Promise<Readonly<Record<string, number>>> {
  const info = await client.info('stats');
  return Object.fromEntries(
    info.split('\r\n').map((line) => [line.split(':')[0], Number(line.split(':')[1])]),
  );
}
