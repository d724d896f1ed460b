// §8.7: RATE_LIMIT_COUNTING=leased. Redis is asked for shares, and no limit is ever exceeded.
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { LimitCounting } from '../../src/config/groups/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import type { LimitWindow, Store } from '../../src/store/store.ts';
import { manualClock } from '../support/gateway/clock.ts';
import { collectLog } from '../support/gateway/log.ts';
import { closeAfterTest, useFresh } from '../support/lifetimes.ts';
import { startRedis } from '../support/stores/redis.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { chooseCount } from '../support/tools/long-run.ts';

const redis = useFresh(startRedis);

const openStore = (counting: LimitCounting, clock = systemClock): Store =>
  closeAfterTest(
    openRedisStore({
      url: redis.url,
      sessionKeyPrefix: 'mcp:session:',
      counting,
      clock,
      log: collectLog().log,
    }),
  );

const newWindow = (max: number, windowMs = 60_000): LimitWindow => ({
  scope: 'ip',
  key: `ratelimit:mcp:${randomUUID()}`,
  windowMs,
  max,
});

async function admit(store: Store, ...windows: readonly LimitWindow[]) {
  const { verdict } = await store.admitRequest(windows, undefined);
  if (verdict === undefined) throw new Error('no verdict');
  return verdict;
}

/** Of so many requests, one after the other. */
async function countAdmitted(store: Store, requests: number, ...windows: readonly LimitWindow[]) {
  let admitted = 0;
  for (let at = 0; at < requests; at += 1) {
    if ((await admit(store, ...windows)).isAdmitted) admitted += 1;
  }
  return admitted;
}

/** Of a window of a minute. */
const SHARE_LIFE_MS = 5000;

/** So that a process takes a share of it. */
const warmUp = (store: Store, window: LimitWindow) => countAdmitted(store, 5, window);

async function countScripts(): Promise<number> {
  const stats = await redis.client().info('commandstats');
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
}

describe('one process', () => {
  test('§8.7 of a busy window Redis is asked for shares only', async () => {
    const store = openStore('leased');
    const window = newWindow(1_000_000);
    await warmUp(store, window);
    const before = await countScripts();
    for (let requests = 6; requests <= 2000; requests += 1) {
      expect(await admit(store, window)).toMatchObject({
        isAdmitted: true,
        remaining: 1_000_000 - requests,
      });
    }
    expect((await countScripts()) - before).toBeLessThan(20);
  });

  test('§8.7 a process that is alone admits exactly as many as the limit', async () => {
    const store = openStore('leased');
    const rows = [
      { max: 100, windows: [newWindow(100)] },
      { max: 100, windows: [newWindow(100), newWindow(2000)] },
      { max: 333, windows: [newWindow(2000), { ...newWindow(333), scope: 'global' as const }] },
    ];
    for (const { max, windows } of rows) {
      expect(await countAdmitted(store, max + 50, ...windows)).toBe(max);
    }
    const together = newWindow(1000);
    const verdicts = await Promise.all(Array.from({ length: 1500 }, () => admit(store, together)));
    expect(verdicts.filter(({ isAdmitted }) => isAdmitted)).toHaveLength(1000);
  });

  test('§8.7 so it is where shares end unused before the limit is reached', async () => {
    const clock = manualClock();
    const store = openStore('leased', clock);
    const window = newWindow(1000);
    let admitted = 0;
    for (let pauses = 0; pauses < 10; pauses += 1) {
      admitted += await countAdmitted(store, 70, window);
      clock.advance(SHARE_LIFE_MS);
    }
    expect(admitted).toBe(700);
    expect(await countAdmitted(store, 1000, window)).toBe(300);
  });

  test('§8.7 a share ends by either clock, also where the computer slept, or its time was set', async () => {
    const clock = manualClock();
    const passed = { wall: 0, monotonic: 0 };
    const store = openStore('leased', {
      ...clock,
      now: () => clock.now() + passed.wall,
      monotonic: () => clock.monotonic() + passed.monotonic,
    });
    const rows = [
      { wall: SHARE_LIFE_MS, monotonic: 0 },
      { wall: -SHARE_LIFE_MS, monotonic: 0 },
      { wall: 0, monotonic: SHARE_LIFE_MS },
    ];
    for (const { wall, monotonic } of rows) {
      const window = newWindow(1000);
      await warmUp(store, window);
      passed.wall += wall;
      passed.monotonic += monotonic;
      const before = await countScripts();
      await admit(store, window);
      expect((await countScripts()) - before).toBe(1);
    }
  });

  test('§8.7 a request of few callers, or of a small limit, is counted by itself', async () => {
    const client = redis.client();
    const store = openStore('leased');
    for (let user = 0; user < 10; user += 1) await countAdmitted(store, 2, newWindow(1000));
    await countAdmitted(store, 79, newWindow(79));
    expect(await client.keys('ratelimit:leased*')).toEqual([]);
  });

  test('§8.7 a request that another window refuses uses nothing up', async () => {
    const store = openStore('leased');
    const user: LimitWindow = { ...newWindow(3), scope: 'user' };
    const all = { ...newWindow(1000), scope: 'global' as const };
    await warmUp(store, all);
    expect(await countAdmitted(store, 30, user, all)).toBe(3);
    expect((await admit(store, all)).remaining).toBe(1000 - 5 - 3 - 1);
  });

  test('§8.7 what a share let in is taken back from it, or is counted if that is over', async () => {
    const store = openStore('leased');
    const window = newWindow(1000);
    await warmUp(store, window);
    const { entry, verdict } = await store.admitRequest([window], undefined);
    if (entry === undefined || verdict === undefined) throw new Error('not counted');
    await store.uncountRequest(window.key, entry);
    expect((await admit(store, window)).remaining).toBe(verdict.remaining);
    await store.uncountRequest(window.key, 'shared:none');
    expect((await admit(store, window)).remaining).toBe(verdict.remaining - 1);
  });
});

describe('several processes', () => {
  test('§8.7 a share counts for all, whatever their way of counting, and comes back when its process stops', async () => {
    const [leased, log] = [openStore('leased'), openStore('log')];
    const window = newWindow(1000);
    await warmUp(leased, window);
    const held = 995 - (await admit(log, window)).remaining - 1;
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThanOrEqual(50);
    await leased.close();
    expect((await admit(log, window)).remaining).toBe(1000 - 5 - 2);
  });

  test('§8.7 what is unused at the end of its life comes back', async () => {
    const clock = manualClock();
    const [leased, log] = [openStore('leased', clock), openStore('log')];
    const window = newWindow(1000);
    await warmUp(leased, window);
    expect((await admit(log, window)).remaining).toBeLessThan(994);
    clock.advance(SHARE_LIFE_MS);
    let asked = 1;
    const hasComeBack = async () => {
      asked += 1;
      return (await admit(log, window)).remaining === 1000 - 5 - asked;
    };
    await expect.poll(hasComeBack).toBe(true);
  });

  test('§8.7 an answer that is lost costs a share, and nothing is admitted by it', async () => {
    const [leased, log] = [openStore('leased'), openStore('log')];
    const window = newWindow(1000);
    await countAdmitted(leased, 3, window);
    redis.freeze();
    await expect(leased.admitRequest([window], undefined)).rejects.toThrow();
    redis.thaw();
    const isBack = () =>
      leased.ping().then(
        () => true,
        () => false,
      );
    await expect.poll(isBack).toBe(true);
    const rest = await countAdmitted(leased, 1100, window);
    expect(await countAdmitted(log, 10, window)).toBe(0);
    // Three before, one whose answer was lost, and with it a share of 4 at least.
    expect(3 + rest).toBeLessThan(1000);
    expect(3 + rest).toBeGreaterThanOrEqual(1000 - 1 - 50);
  });
});

describe('what does not stay taken', () => {
  test('§8.7 the share of a window that is forgotten for others comes back at once', async () => {
    const [leased, log] = [openStore('leased', manualClock()), openStore('log')];
    const window = newWindow(1000);
    await warmUp(leased, window);
    for (let batches = 0; batches < 21; batches += 1) {
      await admit(leased, ...Array.from({ length: 500 }, () => newWindow(10)));
    }
    expect((await admit(log, window)).remaining).toBe(1000 - 5 - 1);
  });

  test('§8.7 however often answers are lost, it costs less than two shares', async () => {
    const [leased, log] = [openStore('leased', manualClock()), openStore('log')];
    const window = newWindow(2000);
    const ping = () =>
      leased.ping().then(
        () => true,
        () => false,
      );
    let requests = await countAdmitted(leased, 200, window);
    for (let losses = 0; losses < 6; losses += 1) {
      redis.freeze();
      let isAnswered = true;
      while (isAnswered) {
        requests += 1;
        isAnswered = await Promise.resolve(leased.admitRequest([window], undefined)).then(
          () => true,
          () => false,
        );
      }
      redis.thaw();
      await expect.poll(ping).toBe(true);
    }
    await leased.close();
    const { remaining } = await admit(log, window);
    const lost = 2000 - requests - 1 - remaining;
    expect(lost).toBeGreaterThan(50);
    expect(lost).toBeLessThan(200);
  });
});

interface Counted {
  readonly key: string;
  readonly asked: number;
  readonly answered: number;
  readonly result: string;
}

const SCRIPT = fileURLToPath(new URL('./counting-process.ts', import.meta.url));

/**
 * The most requests that were certainly let in within a window's length: what was asked for and answered in it. Redis's clock
 * has whole milliseconds.
 */
function findMost(requests: readonly Counted[], windowMs: number): number {
  const admitted = requests.filter(({ result }) => result === 'admitted');
  admitted.sort((a, b) => a.asked - b.asked);
  let most = 0;
  for (const [at, { asked: since }] of admitted.entries()) {
    const until = since + windowMs - 2;
    let count = 0;
    for (let next = at; next < admitted.length; next += 1) {
      const other = admitted[next];
      if (other === undefined || other.asked > until) break;
      if (other.answered <= until) count += 1;
    }
    most = Math.max(most, count);
  }
  return most;
}

describe('four processes, two of which are killed, on a Redis that freezes', () => {
  const folder = useFresh(createTemporaryFolder);

  function start(name: string, counting: LimitCounting, windows: readonly LimitWindow[]) {
    const file = join(folder.path, name);
    const child = fork(SCRIPT, [file, redis.url, counting, JSON.stringify(windows)], {
      execArgv: ['--import', 'tsx'],
    });
    closeAfterTest({ close: () => end(child, 'SIGKILL') });
    const read = () =>
      readFileSync(file, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line): Counted => {
          const [key = '', asked, answered, result = ''] = line.split(' ');
          return { key, asked: Number(asked), answered: Number(answered), result };
        });
    const hasWritten = async (lines: number) => {
      try {
        return read().length >= lines;
      } catch {
        return false;
      }
    };
    return { child, read, hasWritten };
  }

  async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, 'exit');
  }

  const WAYS: readonly { what: string; countings: readonly LimitCounting[] }[] = [
    { what: 'leased and log mixed', countings: ['leased', 'log', 'leased', 'log'] },
    { what: 'leased', countings: ['leased', 'leased', 'leased', 'leased'] },
  ];

  test.each(WAYS.slice(0, chooseCount(1, 2)))(
    '§8.7 no window ever has more than its limit ($what)',
    async ({ countings }) => {
      const windowMs = 3000;
      const [busy, rare] = [newWindow(3000, windowMs), newWindow(50_000, windowMs)];
      const processes = countings.map((counting, at) =>
        start(`process-${at}`, counting, [busy, busy, busy, rare]),
      );
      const readAll = () => processes.flatMap(({ read }) => read());
      const waitForMore = async (lines: number) => {
        const before = readAll().length;
        await expect
          .poll(() => readAll().length - before, { timeout: 30_000, interval: 200 })
          .toBeGreaterThan(lines);
      };
      for (const { hasWritten } of processes) {
        await expect.poll(() => hasWritten(1), { timeout: 30_000 }).toBe(true);
      }
      await waitForMore(1500);
      redis.freeze();
      await pause(150);
      redis.thaw();
      await waitForMore(2000);
      for (const { child } of processes.slice(0, 2)) await end(child, 'SIGKILL');
      await waitForMore(2000);
      redis.freeze();
      await pause(700);
      redis.thaw();
      await waitForMore(6000);
      for (const { child } of processes) await end(child, 'SIGKILL');

      const requests = readAll();
      const of = (key: string) => requests.filter((request) => request.key === key);
      const most = findMost(of(busy.key), windowMs);
      expect(most).toBeLessThanOrEqual(3000);
      // Were it never reached, nothing would be shown.
      expect(of(busy.key).filter(({ result }) => result === 'refused').length).toBeGreaterThan(100);
      expect(most).toBeGreaterThan(2500);
      // One that is far from its limit hears nothing of the other.
      expect(of(rare.key).filter(({ result }) => result === 'refused')).toEqual([]);
      const admitted = requests.filter(({ result }) => result === 'admitted').length;
      expect(await countScripts()).toBeLessThan(admitted * (countings.includes('log') ? 1 : 0.5));
    },
    60_000,
  );
});
