// What a call costs Redis: the service's own store admits requests, so many in each script, as fast as
// Redis takes them. Each store stands for a replica, with a connection of its own.

import { loadConfig } from '../../src/config/load.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLog } from '../../src/platform/log.ts';
import { openStore } from '../../src/store/open.ts';
import type { LimitWindow, SessionAccess, Store } from '../../src/store/store.ts';
import type { RedisFigures, RedisMeter } from './redis-meter.ts';

/** A request as the store sees it. */
export interface StoreRequest {
  readonly windows: readonly LimitWindow[];
  readonly access: SessionAccess | undefined;
}

export type BuildRequest = (n: number) => StoreRequest;

export interface RedisCost extends RedisFigures {
  readonly requestsPerSecond: number;
  /** Requests in each script, as Redis counted them. */
  readonly batch: number;
  readonly admitted: number;
}

export interface Drive {
  readonly redisUrl: string;
  readonly meter: RedisMeter;
  readonly stores: number;
  readonly batch: number;
  readonly seconds: number;
  readonly build: BuildRequest;
}

export async function driveRedis(drive: Drive): Promise<RedisCost> {
  const { redisUrl, meter, stores, batch, seconds, build } = drive;
  const config = loadConfig({ AUTH_REQUIRED: 'false', REDIS_URL: redisUrl });
  const open = () => openStore(config, { clock: systemClock, log: createLog('error') });
  const opened = await Promise.all(Array.from({ length: stores }, open));
  let sent = 0;
  let admitted = 0;

  async function load(store: Store, until: number): Promise<void> {
    while (performance.now() < until) {
      const requests = Array.from({ length: batch }, () => build(sent++));
      const admissions = await Promise.all(
        requests.map(({ windows, access }) => store.admitRequest(windows, access)),
      );
      for (const { verdict } of admissions) if (verdict?.isAdmitted !== false) admitted++;
    }
  }

  try {
    const warmUntil = performance.now() + 500;
    await Promise.all(opened.map((store) => load(store, warmUntil)));
    sent = 0;
    admitted = 0;
    const before = await meter.read();
    const startedAt = performance.now();
    const until = startedAt + seconds * 1000;
    await Promise.all(opened.map((store) => load(store, until)));
    const elapsed = (performance.now() - startedAt) / 1000;
    const used = meter.computeUse(before, await meter.read(), sent);
    return { ...used, requestsPerSecond: sent / elapsed, batch: 1 / used.scripts, admitted };
  } finally {
    await Promise.all(opened.map((store) => store.close()));
  }
}
