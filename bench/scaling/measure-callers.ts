// What a call costs Redis by how often each caller calls: a share of a window is worth its price only to a caller
// who comes again before its life is over. The service's own store is driven at a fixed rate, as one busy process would.
import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { loadConfig } from '../../src/config/load.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLog } from '../../src/platform/log.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { fillStore } from '../growth/fill-store.ts';
import { withRedis } from './measure-redis.ts';
import type { BuildRequest } from './redis-cost.ts';
import { createRedisMeter, type RedisFigures } from './redis-meter.ts';
import { STORE_MODES, type StoreMode } from './store-modes.ts';
import { buildCallOfUser, createSessions, forUsers } from './store-requests.ts';

export interface CallersRow extends RedisFigures {
  readonly mode: StoreMode['name'];
  /** Each with an address and a session, who call in turn. */
  readonly users: number;
  readonly callsPerSecond: number;
}

const USERS = [250, 2_500, 25_000];
/** So few that a busy machine can make them, too. */
const CALLS_PER_SECOND = 2_000;
/** Where Redis is behind, the others are not made. */
const MAX_UNDER_WAY = 500;
/** Longer than two shares live: before, there are none for whoever calls once in a share's life. */
const WARM_UP_SECONDS = 11;

export const measureCallers = (seconds: number): Promise<readonly CallersRow[]> =>
  withRedis(async ({ redisUrl, client }) => {
    const meter = createRedisMeter(client);
    const env = { AUTH_REQUIRED: 'false', REDIS_URL: redisUrl };
    const rows: CallersRow[] = [];
    for (const users of USERS) {
      await client.flushall();
      await fillStore(env, (store) => createSessions(store, users));
      const build = forUsers(users, buildCallOfUser);
      for (const mode of STORE_MODES) {
        await removeWindows(client);
        const store = await openStore(loadConfig({ ...env, ...mode.settings }), {
          clock: systemClock,
          log: createLog('error'),
        });
        try {
          await drive(store, build, WARM_UP_SECONDS);
          const before = await meter.read();
          const calls = await drive(store, build, seconds);
          const used = meter.computeUse(before, await meter.read(), calls);
          rows.push({ mode: mode.name, users, callsPerSecond: calls / seconds, ...used });
        } finally {
          await store.close();
        }
      }
    }
    return rows;
  });

/** Of the mode before: each begins with none. */
const removeWindows = (client: Redis) =>
  client.eval(
    "for _, key in ipairs(redis.call('KEYS', '*ratelimit:*')) do redis.call('UNLINK', key) end",
    0,
  );

/** Redis has not answered in time: the machine is busy, and what it did is counted all the same. */
const ignore = () => undefined;

/** How many calls there were. */
async function drive(store: Store, build: BuildRequest, seconds: number): Promise<number> {
  const startedAt = performance.now();
  const underWay = new Set<Promise<unknown>>();
  let due = 0;
  let sent = 0;
  for (let elapsed = 0; elapsed < seconds; ) {
    for (; due < elapsed * CALLS_PER_SECOND; due++) {
      if (underWay.size >= MAX_UNDER_WAY) continue;
      const { windows, access } = build(sent++);
      const call = Promise.resolve(store.admitRequest(windows, access))
        .catch(ignore)
        .finally(() => underWay.delete(call));
      underWay.add(call);
    }
    await pause(1);
    elapsed = (performance.now() - startedAt) / 1000;
  }
  await Promise.all(underWay);
  return sent;
}
