// A gateway in broker mode before a token endpoint that answers as the test says.
import { mkdtemp, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Deps } from '../../../src/gateway/gateway.ts';
import { openEmbeddedStore } from '../../../src/store/embedded/open.ts';
import type { Store } from '../../../src/store/store.ts';
import { type ManualClock, manualClock } from '../gateway/clock.ts';
import { startGateway, type TestGateway } from '../gateway/gateway.ts';
import { collectLog } from '../gateway/log.ts';
import { type Client, createLoginSteps } from './login-steps.ts';
import { startUpstream, type Upstream } from './upstream.ts';

export const BASE = 'https://gw.example';
export const MCP = `${BASE}/mcp`;

export interface Broker {
  readonly gateway: TestGateway;
  readonly upstream: Upstream;
  readonly clock: ManualClock;
  /** What lies in it. */
  readonly store: Store;
  readonly steps: ReturnType<typeof createLoginSteps>;
  /** An access token; by default one that the gateway takes for ten years. */
  sign(claims?: Readonly<Record<string, unknown>>): Promise<string>;
  /** What the provider answers from now on. */
  answer(status: number, body: object): void;
  respond(respond: (res: ServerResponse) => void): void;
  /** How often the provider was asked. */
  asked(): number;
  /** The last form that it got. */
  last(): Readonly<Record<string, string>>;
  /** A login that brings a refresh token. */
  refreshTokenOf(client: Client, token: string): Promise<string>;
  close(): Promise<void>;
}

export async function startBroker(
  env: Readonly<Record<string, string>> = {},
  deps: Partial<Deps> = {},
  /** Makes the gateway's store of the one that `store` looks into. */
  wrap = (store: Store): Store => store,
): Promise<Broker> {
  const clock = manualClock(1_800_000_000_000);
  const upstream = await startUpstream();
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-broker-'));
  const { log } = collectLog();
  const store = await openEmbeddedStore({ dataDir, sessionKeyPrefix: 'mcp:session:', clock, log });
  const gateway = await startGateway({
    deps: { clock, store: wrap(store), ...deps },
    env: {
      OAUTH_MODE: 'broker',
      BASE_URL: BASE,
      OAUTH_AUTHORIZATION_URL: 'https://id.example/authorize',
      OAUTH_TOKEN_URL: `${upstream.url}/token`,
      OAUTH_REVOCATION_URL: `${upstream.url}/revoke`,
      OAUTH_CLIENT_ID: 'provider-client',
      OAUTH_CLIENT_SECRET: 'provider-secret',
      OAUTH_CONSENT_RATE_LIMIT_MAX: '10000',
      OAUTH_CALLBACK_RATE_LIMIT_MAX: '10000',
      OAUTH_TOKEN_RATE_LIMIT_MAX: '10000',
      ...env,
    },
  });
  const steps = createLoginSteps(gateway);

  const broker: Broker = {
    gateway,
    upstream,
    clock,
    store,
    steps,
    sign: (claims) =>
      gateway.issuer.sign({ aud: MCP, exp: clock.now() / 1000 + 315_360_000, ...claims }),
    answer: (status, body) =>
      upstream.answer((res) => void res.writeHead(status).end(JSON.stringify(body))),
    respond: upstream.answer,
    asked: () => upstream.received.length,
    last: () => Object.fromEntries(upstream.received.at(-1)?.form ?? []),
    async refreshTokenOf(client, token) {
      broker.answer(200, { access_token: await broker.sign(), refresh_token: token });
      const { status, text } = await steps.redeem(client, await steps.logIn(client));
      if (status !== 200) throw new Error(`The code was answered ${status}: ${text}`);
      return token;
    },
    async close() {
      await gateway.close();
      await upstream.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
  return broker;
}
