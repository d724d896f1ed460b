// Decisions 9 and 0.6: Redis down, frozen, back.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { openRedisStore } from '../../src/core/store/redis/open.ts';
import { type Store, StoreUnavailable } from '../../src/core/store/store.ts';
import { collectLog, type LogLine } from '../support/log.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

let redis: RedisServer;
let store: Store;
let lines: readonly LogLine[];

const open = (url: string, backoff?: () => number): Store => {
  const collected = collectLog();
  lines = collected.lines;
  return openRedisStore({
    url,
    sessionKeyPrefix: 'mcp:session:',
    clock: systemClock,
    log: collected.log,
    ...(backoff && { backoff }),
  });
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

const isUp = async () => (await outcome(store.ping())).error === undefined;

beforeEach(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  await store.close();
  await redis.close();
});

describe('§8.5 Redis that goes away', () => {
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
        store.admit([], '6f1f4a4e-5b7f-4f0e-9d6c-0a1b2c3d4e5f'),
        store.touchSession('x', 'ada', 1, 60),
        store.endSession('x', 'ada'),
        store.sweepSessions(),
        store.ping(),
      ].map(outcome),
    );
    for (const { error, ms } of outcomes) {
      expect(error).toBeInstanceOf(StoreUnavailable);
      expect(ms).toBeLessThan(2000);
    }
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

describe('§8.5 Redis that freezes', () => {
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

describe('§8.5 Redis that refuses', () => {
  test('§8.5 a wrong password is said in the log, without the password', async () => {
    await redis.close();
    redis = await startRedis({ password: 'right' });
    store = open(redis.url.replace('right', 'wr0ng-secret'));
    await expect.poll(() => lines.filter(({ level }) => level === 'error').length).toBe(1);
    expect(String(lines[0]?.cause)).toMatch(/WRONGPASS|NOAUTH|password/i);
    expect(JSON.stringify(lines)).not.toContain('wr0ng-secret');
    expect((await outcome(store.ping())).error).toBeInstanceOf(StoreUnavailable);
  });

  test('§8.5 an error that Redis answers is unavailability, not absence', async () => {
    store = open(redis.url);
    await redis.client().set('ratelimit:mcp:x', 'not a sorted set');
    const window = { scope: 'ip', key: 'ratelimit:mcp:x', windowMs: 1000, max: 1 } as const;
    const { error } = await outcome(store.admit([window], undefined));
    expect(error).toBeInstanceOf(StoreUnavailable);
    await expect(store.ping()).resolves.toBeUndefined();
  });
});
