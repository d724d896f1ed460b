// Processes that are asked to end, or are killed, alone and behind HAProxy.

import { freePort } from '../../../test/support/gateway/ports.ts';
import type { RunningPostern } from '../../../test/support/gateway/process.ts';
import type { Issuer } from '../../../test/support/oauth/issuer.ts';
import { startRedis } from '../../../test/support/stores/redis.ts';
import { checkCount, checkFact, checkNoneRefused, type Fault } from '../fault.ts';
import { measureReadiness } from '../recovery.ts';
import { startHaproxy } from '../servers/haproxy.ts';
import type { Stage } from '../stage.ts';

const alone: Fault = {
  name: 'sigterm',
  title: 'SIGTERM under 500 requests a second, without a load balancer.',
  figure: 'No request that was sent stays without an answer; exit code 0.',
  async run(stage) {
    const redis = stage.closeAtEnd(await startRedis());
    const issuer = await stage.startIssuer();
    const gateway = await stage.startGateway(issuer, {
      REDIS_URL: redis.url,
      SHUTDOWN_DELAY_MS: '2000',
    });
    const client = await stage.startClient(gateway.url, issuer);
    const load = stage.startLoad(stage.choose({ full: 500, short: 200 }), client.callAny);
    await stage.pause(stage.choose({ full: 5000, short: 500 }));
    client.allow('not listening');
    gateway.kill('SIGTERM');
    if (stage.isShort) {
      // Where a machine is short of CPU, the system resets connections that wait to be accepted.
      await measureReadiness(stage, gateway.url, false);
      await load.stop();
    }
    const { code } = await gateway.ended;
    await load.stop();
    return { tally: client.tally, checks: [checkCount('exit code', code ?? -1, 0)] };
  },
};

interface Replicas {
  readonly url: string;
  readonly issuer: Issuer;
  readonly checkEveryMs: number;
  readonly count: number;
  end(index: number, signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
  /** Resolves when HAProxy sends requests to it again. */
  start(index: number): Promise<void>;
}

async function startReplicas(stage: Stage): Promise<Replicas> {
  const redis = stage.closeAtEnd(await startRedis());
  const issuer = await stage.startIssuer();
  const checkEveryMs = stage.isShort ? 200 : 1000;
  const ports = [await freePort(), await freePort()];
  const balancer = stage.closeAtEnd(await startHaproxy(ports, checkEveryMs));
  const running: (RunningPostern | undefined)[] = [];

  async function start(index: number): Promise<void> {
    running[index] = await stage.startGateway(issuer, {
      REDIS_URL: redis.url,
      PORT: String(ports[index]),
      BASE_URL: balancer.url,
      SHUTDOWN_DELAY_MS: String(stage.isShort ? 2500 : 4 * checkEveryMs),
      TRUST_PROXY: '1',
    });
    const url = running[index]?.url;
    while (!(await fetch(`${url}/health/ready`)).ok) await stage.pause(20);
    await stage.pause(2 * checkEveryMs);
  }

  await Promise.all(ports.map((_port, index) => start(index)));
  return {
    url: balancer.url,
    issuer,
    checkEveryMs,
    count: ports.length,
    start,
    async end(index, signal) {
      const replica = running[index];
      if (replica === undefined) throw new Error(`There is no replica ${index}`);
      replica.kill(signal);
      return (await replica.ended).code;
    },
  };
}

const startClientOfAll = (stage: Stage, { url, issuer }: Replicas) =>
  stage.startClient(url, issuer, { endsHoldAfterMs: stage.endsHoldAfterMs });

const rolling: Fault = {
  name: 'rolling-restarts',
  title: 'Twenty rolling restarts of two replicas behind HAProxy, without stickiness.',
  figure: 'No call fails, no session is lost, exit code 0 each time.',
  async run(stage) {
    const replicas = await startReplicas(stage);
    const client = await startClientOfAll(stage, replicas);
    const load = stage.startLoad(stage.choose({ full: 250, short: 100 }), client.callAny);
    const codes = new Set<number | null>();
    for (let times = 0; times < stage.choose({ full: 20, short: 2 }); times += 1) {
      const index = times % replicas.count;
      await stage.pause(replicas.checkEveryMs);
      codes.add(await replicas.end(index, 'SIGTERM'));
      await replicas.start(index);
    }
    await load.stop();
    await client.checkSessions();
    return {
      tally: client.tally,
      checks: [
        checkNoneRefused(client.tally),
        checkFact('exit code 0 each time', codes.size === 1 && codes.has(0), [...codes].join(', ')),
      ],
    };
  },
};

const killed: Fault = {
  name: 'replica-killed',
  title: 'kill -9 of one of two replicas behind HAProxy, ten times.',
  figure:
    'Only calls that it was working on fail (502, or a closed connection); no session is lost.',
  async run(stage) {
    const replicas = await startReplicas(stage);
    const client = await startClientOfAll(stage, replicas);
    const load = stage.startLoad(stage.choose({ full: 250, short: 100 }), client.callAny);
    const kills = stage.choose({ full: 10, short: 1 });
    for (let times = 0; times < kills; times += 1) {
      const index = times % replicas.count;
      await stage.pause(replicas.checkEveryMs);
      client.allow('load balancer', 'connection');
      await replicas.end(index, 'SIGKILL');
      await stage.pause(3 * replicas.checkEveryMs);
      client.allow();
      await replicas.start(index);
    }
    await load.stop();
    await client.checkSessions();
    const perKill = client.tally.count('refused') / kills;
    return {
      tally: client.tally,
      checks: [checkFact('failed calls per kill ≤ 20', perKill <= 20, perKill.toFixed(1))],
    };
  },
};

export const replicaFaults: readonly Fault[] = [alone, rolling, killed];
