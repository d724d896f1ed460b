// A gateway over a Redis that keeps what is written to it, and a client that calls it all the time.
import type { Env, RunningPostern } from '../../../test/support/gateway/process.ts';
import { type RedisServer, startRedis } from '../../../test/support/stores/redis.ts';
import type { KnowingClient } from '../client/knowing-client.ts';
import type { Load } from '../client/load.ts';
import { checkAtMost, checkFact, type Outcome } from '../fault.ts';
import type { Extent, Stage } from '../stage.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

export interface GatewayOverRedis {
  readonly redis: RedisServer;
  readonly gateway: RunningPostern;
  readonly client: KnowingClient;
  readonly load: Load;
}

/** After `kill -9` everything that was answered is still there: a 404 would be wrong. */
const DURABLE = ['appendonly yes', 'appendfsync everysec'];

const RATE: Extent = { full: 200, short: 100 };

export async function startOverRedis(stage: Stage, rate = RATE): Promise<GatewayOverRedis> {
  const redis = stage.closeAtEnd(await startRedis({ config: DURABLE }));
  return { redis, ...(await startCalls(stage, redis.url, {}, rate)) };
}

/** The same, with a network in between that can be made to misbehave. */
export async function startOverNetwork(
  stage: Stage,
): Promise<GatewayOverRedis & { readonly network: TcpProxy }> {
  const redis = stage.closeAtEnd(await startRedis({ config: DURABLE }));
  const network = stage.closeAtEnd(await startTcpProxy(redis.port));
  return { redis, network, ...(await startCalls(stage, `redis://127.0.0.1:${network.port}`)) };
}

export async function startCalls(
  stage: Stage,
  redisUrl: string,
  env: Env = {},
  rate: Extent = RATE,
) {
  const issuer = await stage.startIssuer();
  const gateway = await stage.startGateway(issuer, { REDIS_URL: redisUrl, ...env });
  const client = await stage.startClient(gateway.url, issuer);
  const load = stage.startLoad(stage.isShort ? rate.short : rate.full, client.callAny);
  return { gateway, client, load };
}

/** After every fault: all sessions are what they should be, and the process still runs. */
export async function finishCalls(
  { load, client, gateway }: Omit<GatewayOverRedis, 'redis'>,
  recoveryMs: number,
  checks: Outcome['checks'],
): Promise<Outcome> {
  await load.stop();
  await client.checkSessions();
  return {
    tally: client.tally,
    recoveryMs,
    checks: [
      checkFact('the process still runs', !gateway.hasEnded),
      checkAtMost('recovery', recoveryMs, 2000),
      ...checks,
    ],
  };
}
