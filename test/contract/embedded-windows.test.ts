// §8.1: sliding windows in memory, against the simplest way to count.
import { expect, test } from 'vitest';
import type { Clock } from '../../src/platform/clock.ts';
import { openEmbeddedStore } from '../../src/store/embedded/open.ts';
import type { LimitWindow, Store, WindowVerdict } from '../../src/store/store.ts';
import { below, pick, randomOf } from '../support/fuzz/seeded-random.ts';
import { manualClock } from '../support/gateway/clock.ts';
import { collectLog } from '../support/gateway/log.ts';
import { closeAfterTest, useFresh } from '../support/lifetimes.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const WINDOW_MS = 1000;
const { log } = collectLog();
const folder = useFresh(createTemporaryFolder);

async function open(clock: Clock): Promise<Store> {
  const options = { dataDir: folder.path, sessionKeyPrefix: 'mcp:session:', clock, log };
  return closeAfterTest(await openEmbeddedStore(options));
}

async function count(store: Store, windows: readonly LimitWindow[]) {
  const { verdict, entry } = await store.admitRequest(windows, undefined);
  if (verdict === undefined) throw new Error('no verdict');
  return { verdict, entry };
}

/** All times of a window's requests, gone through each time. */
function createModel() {
  let counted: { readonly key: string; readonly at: number }[] = [];
  const timesOf = ({ key, windowMs }: LimitWindow, now: number) =>
    counted.filter((one) => one.key === key && one.at > now - windowMs).map(({ at }) => at);

  return {
    count(windows: readonly [LimitWindow, LimitWindow], now: number): WindowVerdict {
      const refusing = windows.find((window) => timesOf(window, now).length >= window.max);
      if (refusing === undefined) {
        counted.push(...windows.map(({ key }) => ({ key, at: now })));
      }
      const { scope, max: limit, windowMs, ...told } = refusing ?? windows[0];
      const times = timesOf({ scope, max: limit, windowMs, ...told }, now);
      const resetAt = Math.min(...times) + windowMs;
      const remaining = refusing ? 0 : limit - times.length;
      const isAdmitted = refusing === undefined;
      return { isAdmitted, scope, limit, remaining, resetAt, resetInMs: resetAt - now };
    },
    uncount(key: string, at: number) {
      const one = counted.find((other) => other.key === key && other.at === at);
      counted = counted.filter((other) => other !== one);
    },
  };
}

test.each([
  { what: 'few requests, far apart', maxStepMs: 400, max: 5 },
  { what: 'many in each millisecond', maxStepMs: 2, max: 900 },
  { what: 'one in nearly each millisecond', maxStepMs: 4, max: 2000 },
])('§8.1 $what: each verdict is as if all times were gone through', async (row) => {
  const { maxStepMs, max } = row;
  const clock = manualClock();
  const store = await open(clock);
  const model = createModel();
  const random = randomOf(11, max);
  const undo: (() => Promise<void>)[] = [];
  const all: LimitWindow = { scope: 'global', key: 'all', windowMs: WINDOW_MS, max: 2 * max };
  for (let turn = 0; turn < 4000; turn += 1) {
    const key = pick(random, ['a', 'b', 'c']);
    const windows = [{ scope: 'ip', key, windowMs: WINDOW_MS, max }, all] as const;
    const now = clock.now();
    const { verdict, entry } = await count(store, windows);
    expect(verdict).toEqual(model.count(windows, now));
    if (entry !== undefined) {
      undo.push(async () => {
        await store.uncountRequest(key, entry);
        model.uncount(key, now);
      });
    }
    // Some are taken back, the last ones and ones of long ago; some that have left the window.
    if (below(random, 3) === 0) await undo.pop()?.();
    if (below(random, 10) === 0) await undo.splice(below(random, undo.length), 1)[0]?.();
    if (below(random, 500) === 0) await store.sweepSessions();
    clock.advance(below(random, 400) === 0 ? WINDOW_MS : below(random, maxStepMs));
  }
});

test('§8.1 a clock that is set back or forward changes no window', async () => {
  const manual = manualClock();
  let offset = 0;
  const store = await open({ ...manual, now: () => manual.now() + offset });
  const windows = [{ scope: 'ip', key: 'a', windowMs: WINDOW_MS, max: 2 }] as const;
  await count(store, windows);
  manual.advance(100);
  await count(store, windows);
  for (const jump of [3_600_000, -3_600_000]) {
    offset = jump;
    expect((await count(store, windows)).verdict).toMatchObject({
      isAdmitted: false,
      resetInMs: 900,
      resetAt: manual.now() + offset + 900,
    });
  }
  manual.advance(900);
  expect((await count(store, windows)).verdict).toMatchObject({ isAdmitted: true, remaining: 0 });
});
