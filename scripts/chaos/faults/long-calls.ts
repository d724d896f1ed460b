// §15.1, §17: calls that take long, while replicas are restarted and connections break.

import { fileURLToPath } from 'node:url';
import { freePort } from '../../../test/support/gateway/ports.ts';
import type { RunningPostern } from '../../../test/support/gateway/process.ts';
import type { Issuer } from '../../../test/support/oauth/issuer.ts';
import { startRedis } from '../../../test/support/stores/redis.ts';
import { startLongCalls } from '../client/long-calls.ts';
import { createTally } from '../client/tally.ts';
import { checkCount, checkFact, type Fault } from '../fault.ts';
import { startHaproxy } from '../servers/haproxy.ts';
import { startTcpProxy } from '../servers/tcp-proxy.ts';
import type { Stage } from '../stage.ts';

const CATALOG = fileURLToPath(new URL('../servers/slow-catalog.mjs', import.meta.url));
const CHECK_EVERY_MS = 500;

interface Replicas {
  readonly url: string;
  readonly issuer: Issuer;
  restart(index: number): Promise<number | null>;
}

async function startReplicas(stage: Stage, shutdownDelayMs: number): Promise<Replicas> {
  const redis = stage.closeAtEnd(await startRedis());
  const issuer = await stage.startIssuer();
  const ports = [await freePort(), await freePort()];
  const balancer = stage.closeAtEnd(await startHaproxy(ports, CHECK_EVERY_MS));
  const running: (RunningPostern | undefined)[] = [];

  async function start(index: number): Promise<void> {
    const env = {
      REDIS_URL: redis.url,
      PORT: String(ports[index]),
      BASE_URL: balancer.url,
      SHUTDOWN_DELAY_MS: String(shutdownDelayMs),
      MCP_USER_CALLS_MAX: '0',
      TRUST_PROXY: '1',
    };
    running[index] = await stage.startGateway(issuer, env, {
      args: ['start', '--catalog', CATALOG],
    });
    while (!(await fetch(`${running[index]?.url}/health/ready`)).ok) await stage.pause(20);
    await stage.pause(3 * CHECK_EVERY_MS);
  }

  await Promise.all(ports.map((_port, index) => start(index)));
  return {
    url: balancer.url,
    issuer,
    async restart(index) {
      const replica = running[index];
      if (replica === undefined) throw new Error(`There is no replica ${index}`);
      replica.kill('SIGTERM');
      const { code } = await replica.ended;
      await start(index);
      return code;
    },
  };
}

const restarted: Fault = {
  name: 'long-calls-restarted',
  title:
    'Twenty rolling restarts of two replicas behind HAProxy, with 100 calls of 5 to 20 s under way.',
  figure: 'No answer is lost, exit code 0 each time (SHUTDOWN_DELAY_MS=15000).',
  async run(stage) {
    // For calls whose length no scale changes.
    const replicas = await startReplicas(stage, stage.isShort ? 4000 : 15_000);
    const tally = createTally();
    const started = await startLongCalls({
      url: replicas.url,
      getToken: () => replicas.issuer.sign(),
      tally,
      count: stage.choose({ full: 100, short: 20 }),
      shortestMs: stage.isShort ? 1500 : 5000,
      longestMs: stage.isShort ? 5000 : 20_000,
      mayFailFirstMs: 0,
    });
    const calls = stage.closeAtEnd(started);
    const codes = new Set<number | null>();
    for (let times = 0; times < stage.choose({ full: 20, short: 1 }); times += 1) {
      codes.add(await replicas.restart(times % 2));
    }
    await calls.stop();
    return {
      tally,
      checks: [
        checkCount('lost answers', tally.count('wrong') + tally.count('refused'), 0),
        checkFact('exit code 0 each time', codes.size === 1 && codes.has(0), [...codes].join(', ')),
      ],
    };
  },
};

/** Until a call has a stream, and its client has read that. */
const UNTIL_STREAM_MS = 3000;

const cut: Fault = {
  name: 'long-calls-cut',
  title:
    'All connections are cut, again and again, with 100 calls of 5 to 20 s under way at two replicas.',
  figure: 'Only calls that are too young to have a stream fail; every other answer arrives.',
  async run(stage) {
    const replicas = await startReplicas(stage, 1000);
    const proxy = stage.closeAtEnd(await startTcpProxy(Number(new URL(replicas.url).port)));
    const tally = createTally();
    const started = await startLongCalls({
      url: `http://127.0.0.1:${proxy.port}`,
      getToken: () => replicas.issuer.sign(),
      tally,
      count: stage.choose({ full: 100, short: 20 }),
      shortestMs: stage.isShort ? 3000 : 5000,
      longestMs: stage.isShort ? 8000 : 20_000,
      mayFailFirstMs: UNTIL_STREAM_MS,
    });
    const calls = stage.closeAtEnd(started);
    for (let times = 0; times < stage.choose({ full: 20, short: 2 }); times += 1) {
      await stage.pause(5000);
      proxy.reset();
    }
    await calls.stop();
    return { tally, checks: [checkCount('lost answers', tally.count('wrong'), 0)] };
  },
};

export const longCallFaults: readonly Fault[] = [restarted, cut];
