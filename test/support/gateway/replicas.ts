// Gateways over one Redis, behind one address: each request goes to the next of them.
import { createServer, type RequestListener, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadConfig } from '../../../src/config/load.ts';
import { createGateway, type Deps } from '../../../src/gateway/gateway.ts';
import { specCatalog } from '../catalogs/spec-catalog.ts';
import { createLoginSteps } from '../oauth/login-steps.ts';
import { startProvider } from '../oauth/provider.ts';
import { startRedis } from '../stores/redis.ts';
import { onFreePort } from './gateway.ts';
import { createHttpRequest } from './http-request.ts';
import { collectLog, type LogLine } from './log.ts';
import { noInternet } from './no-internet.ts';
import { GENEROUS } from './service.ts';

export interface Replicas {
  readonly baseUrl: string;
  readonly log: readonly LogLine[];
  /** `POST /oauth/token 2`: what was asked of which replica, oldest first. */
  readonly served: readonly string[];
  /** A login of which each step goes to the replica of this number. */
  on(replica: number): ReturnType<typeof createLoginSteps>;
  /** Ends all of them, then starts them again. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

const COUNT = 3;
const CHOICE = 'x-replica';

/** Three of them in broker mode; with a catalogue of the test's own, where one is given. */
export async function startReplicas(deps: Pick<Partial<Deps>, 'catalog'> = {}): Promise<Replicas> {
  const redis = await startRedis();
  const served: string[] = [];
  let ports: readonly number[] = [];
  let turn = 0;
  const front = createServer((req, res) => {
    const { [CHOICE]: choice = turn++ % COUNT } = req.headers;
    served.push(`${req.method} ${req.url?.split('?')[0]} ${choice}`);
    onwardTo(ports[Number(choice)] ?? 0)(req, res);
  });
  await new Promise<void>((listening) => front.listen(0, '127.0.0.1', listening));
  const baseUrl = `http://localhost:${(front.address() as AddressInfo).port}`;
  const provider = await startProvider({ gatewayUrl: baseUrl });
  const { log, lines } = collectLog();
  const config = loadConfig({
    BASE_URL: baseUrl,
    HOST: '127.0.0.1',
    REDIS_URL: redis.url,
    OAUTH_MODE: 'broker',
    OAUTH_STATE_SECRET: 'one-secret-for-all-of-the-replicas',
    ...GENEROUS,
    ...provider.env,
  });
  const open = () =>
    Promise.all(
      Array.from({ length: COUNT }, () =>
        createGateway(onFreePort(config), {
          log,
          catalog: specCatalog,
          network: noInternet,
          ...deps,
        }),
      ),
    );
  const listen = () => Promise.all(gateways.map((gateway) => gateway.listen()));
  const end = () => Promise.all(gateways.map((gateway) => gateway.close()));
  let gateways = await open();
  ports = await listen();

  return {
    baseUrl,
    log: lines,
    served,
    on: (replica) =>
      createLoginSteps({ request: createHttpRequest(baseUrl, { [CHOICE]: String(replica) }) }),
    async restart() {
      await end();
      gateways = await open();
      ports = await listen();
    },
    async close() {
      front.closeAllConnections();
      await new Promise((closed) => front.close(closed));
      await end();
      await provider.close();
      await redis.close();
    },
  };
}

const onwardTo =
  (port: number): RequestListener =>
  (req, res) => {
    const { method, url, headers } = req;
    const onward = request({ host: '127.0.0.1', port, method, path: url, headers });
    onward.on('response', (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    onward.on('error', () => (res.headersSent ? res.destroy() : res.writeHead(502).end()));
    // Whoever hangs up here hangs up there.
    res.on('close', () => onward.destroy());
    req.pipe(onward);
  };
