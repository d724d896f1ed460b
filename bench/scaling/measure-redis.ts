// What a call costs Redis by the number of requests in a script, and the one key that every call writes.
import { execFileSync } from 'node:child_process';
import type { Redis } from 'ioredis';
import { startRedis } from '../../test/support/stores/redis.ts';
import { fillStore } from '../growth/fill-store.ts';
import { type BuildRequest, driveRedis, type RedisCost } from './redis-cost.ts';
import { createRedisMeter } from './redis-meter.ts';
import {
  buildAddressPart,
  buildGlobalPart,
  buildSessionCall,
  buildSessionPart,
  buildStatelessCall,
  createSessions,
  GLOBAL_KEY,
} from './store-requests.ts';

/** One row: of so many requests in each script. */
export interface RedisCostRow extends RedisCost {
  readonly part: RedisPart;
}

export type RedisPart = 'session' | 'stateless' | 'address' | 'global' | 'session only';

export interface HotWindowResult {
  readonly max: number;
  readonly seconds: number;
  readonly batch: number;
  readonly requestsPerSecond: number;
  readonly cpuMicroseconds: number;
  readonly entries: number;
  readonly bytesPerEntry: number;
  /** Milliseconds in which Redis answers nobody when half of the entries have become too old at once. */
  readonly stallMs: number;
}

const PARTS: Readonly<Record<RedisPart, BuildRequest>> = {
  session: buildSessionCall,
  stateless: buildStatelessCall,
  address: buildAddressPart,
  global: buildGlobalPart(),
  'session only': buildSessionPart,
};

const BATCHES = [1, 4, 16, 64];
/** Stores, each with a connection: enough that Redis is never idle. */
const STORES = 4;
const REDIS_CORE = '0';

interface Measured {
  readonly redisUrl: string;
  readonly client: Redis;
}

/** On a core of its own; what asks it is on the other. */
export async function withRedis<Result>(
  measure: (redis: Measured) => Promise<Result>,
): Promise<Result> {
  const redis = await startRedis();
  try {
    const client = redis.client();
    const pid = /^process_id:(\d+)/m.exec(await client.info('server'))?.[1] ?? '';
    execFileSync('taskset', ['-acp', REDIS_CORE, pid], { stdio: 'ignore' });
    return await measure({ redisUrl: redis.url, client });
  } finally {
    await redis.close();
  }
}

export const measureRedisCosts = (seconds: number): Promise<readonly RedisCostRow[]> =>
  withRedis(async ({ redisUrl, client }) => {
    const meter = createRedisMeter(client);
    const rows: RedisCostRow[] = [];
    for (const [part, build] of Object.entries(PARTS)) {
      if (!isPart(part)) continue;
      for (const batch of BATCHES) {
        await client.flushall();
        await fillStore({ AUTH_REQUIRED: 'false', REDIS_URL: redisUrl }, (store) =>
          createSessions(store),
        );
        const drive = { redisUrl, meter, stores: STORES, batch, seconds, build };
        rows.push({ part, ...(await driveRedis(drive)) });
      }
    }
    return rows;
  });

const isPart = (part: string): part is RedisPart => Object.hasOwn(PARTS, part);

/** As fast as Redis counts, for longer than the window. */
export const measureHotWindow = (max: number, seconds: number): Promise<HotWindowResult> =>
  withRedis(async ({ redisUrl, client }) => {
    const meter = createRedisMeter(client);
    const batch = 64;
    const build = buildGlobalPart(max);
    const cost = await driveRedis({ redisUrl, meter, stores: STORES, batch, seconds, build });
    const entries = await client.zcard(GLOBAL_KEY);
    const bytes = Number(await client.memory('USAGE', GLOBAL_KEY, 'SAMPLES', '0'));
    const half = String(Math.floor(entries / 2));
    const [, middle] = await client.zrange(GLOBAL_KEY, half, half, 'WITHSCORES');
    const startedAt = performance.now();
    await client.zremrangebyscore(GLOBAL_KEY, '-inf', middle ?? '');
    return {
      max,
      seconds,
      batch,
      requestsPerSecond: cost.requestsPerSecond,
      cpuMicroseconds: cost.cpuMicroseconds,
      entries,
      bytesPerEntry: bytes / entries,
      stallMs: performance.now() - startedAt,
    };
  });
