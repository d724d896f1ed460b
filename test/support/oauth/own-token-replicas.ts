// Two replicas with sockets of their own that issue their own tokens, for real clients: those know the first one only.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { loadConfig } from '../../../src/config/load.ts';
import { createGateway, type Deps, type Gateway } from '../../../src/gateway/gateway.ts';
import { specCatalog } from '../catalogs/spec-catalog.ts';
import { type ManualClock, manualClock } from '../gateway/clock.ts';
import { createHttpRequest } from '../gateway/http-request.ts';
import { collectLog } from '../gateway/log.ts';
import { noInternet } from '../gateway/no-internet.ts';
import { freePort } from '../gateway/ports.ts';
import { GENEROUS } from '../gateway/service.ts';
import { type OpaqueProvider, startOpaqueProvider } from '../providers/opaque-provider.ts';
import { startRedis } from '../stores/redis.ts';
import { createLoginSteps } from './login-steps.ts';

export interface OwnTokenReplicas {
  /** Of the first. */
  readonly mcpUrl: URL;
  readonly provider: OpaqueProvider;
  readonly clock: ManualClock;
  /** What a browser sends to the second. */
  readonly elsewhere: ReturnType<typeof createLoginSteps>;
  /** Of the first, at the same address. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export async function startOwnTokenReplicas(
  env: Readonly<Record<string, string>> = {},
  deps: Partial<Pick<Deps, 'file'>> = {},
): Promise<OwnTokenReplicas> {
  const clock = manualClock();
  const provider = await startOpaqueProvider({ clock });
  const redis = await startRedis();
  const port = await freePort();
  const otherPort = await freePort();
  const baseUrl = `http://localhost:${port}`;
  const { log } = collectLog();

  async function open(at: number): Promise<Gateway> {
    const config = loadConfig({
      BASE_URL: baseUrl,
      HOST: '127.0.0.1',
      PORT: String(at),
      REDIS_URL: redis.url,
      OAUTH_STATE_SECRET: 'one-secret-for-all-of-the-replicas',
      ...GENEROUS,
      ...provider.env,
      ...env,
    });
    const gateway = await createGateway(config, {
      log,
      clock,
      catalog: specCatalog,
      network: noInternet,
      ...deps,
    });
    await gateway.listen();
    return gateway;
  }

  let first = await open(port);
  const second = await open(otherPort);
  return {
    mcpUrl: new URL(`${baseUrl}/mcp`),
    provider,
    clock,
    elsewhere: createLoginSteps({ request: createHttpRequest(`http://localhost:${otherPort}`) }),
    async restart() {
      await first.close();
      // Only in a later turn does a client in this process see that its connections have ended.
      await nextTurn();
      await nextTurn();
      first = await open(port);
    },
    async close() {
      await first.close();
      await second.close();
      await provider.close();
      await redis.close();
    },
  };
}
