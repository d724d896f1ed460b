// A gateway before a token endpoint that answers as the test says: in broker mode, where it accepts the tokens that tests sign beside its own,
// or in proxy mode.
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
  /** What the provider answers from now on, in place of the tokens of whoever logs in. */
  answer(status: number, body: object): void;
  respond(respond: (res: ServerResponse) => void): void;
  /** From now on the provider answers with an ID token of the login that was approved last, and with these members. */
  answerLogins(claims?: Readonly<Record<string, unknown>>, tokens?: object): void;
  /** How often the provider was asked. */
  asked(): number;
  /** The last form that it got. */
  last(): Readonly<Record<string, string>>;
  /** What the gateway issues for a login in broker mode. */
  logIn(client: Client, change?: Readonly<Record<string, string>>): Promise<IssuedTokens>;
  close(): Promise<void>;
}

export interface IssuedTokens {
  readonly access_token: string;
  readonly refresh_token: string;
}

/** The client that the gateway is at the provider. */
const PROVIDER_CLIENT = 'provider-client';

const buildBrokerEnv = (baseUrl: string) => ({
  OAUTH_MODE: 'broker',
  OAUTH_ACCEPT_PROVIDER_TOKENS: 'true',
  OIDC_AUDIENCE: `${baseUrl}/mcp,${baseUrl},${baseUrl}/`,
});

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
      ...(env.OAUTH_MODE === 'proxy' ? {} : buildBrokerEnv(env.BASE_URL ?? BASE)),
      BASE_URL: BASE,
      OAUTH_AUTHORIZATION_URL: 'https://id.example/authorize',
      OAUTH_TOKEN_URL: `${upstream.url}/token`,
      OAUTH_REVOCATION_URL: `${upstream.url}/revoke`,
      OAUTH_CLIENT_ID: PROVIDER_CLIENT,
      OAUTH_CLIENT_SECRET: 'provider-secret',
      OAUTH_CONSENT_RATE_LIMIT_MAX: '10000',
      OAUTH_CALLBACK_RATE_LIMIT_MAX: '10000',
      OAUTH_TOKEN_RATE_LIMIT_MAX: '10000',
      ...env,
    },
  });
  const steps = createLoginSteps(gateway);
  let nonce: string | undefined;
  const { approve } = steps;
  steps.approve = async (client, change) => {
    const approved = await approve(client, change);
    nonce = approved.asked.searchParams.get('nonce') ?? undefined;
    return approved;
  };

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
    answerLogins(claims, tokens) {
      upstream.answer(async (res) => {
        const iat = Math.floor(clock.now() / 1000);
        const idToken = { aud: PROVIDER_CLIENT, iat, exp: iat + 300, nonce, ...claims };
        const answer = {
          access_token: 'opaque',
          token_type: 'Bearer',
          expires_in: 300,
          refresh_token: 'of the provider',
          id_token: await gateway.issuer.sign(idToken),
          ...tokens,
        };
        res.end(JSON.stringify(answer));
      });
    },
    async logIn(client, change) {
      const { status, text } = await steps.redeem(client, await steps.logIn(client, change));
      if (status !== 200) throw new Error(`The code was answered ${status}: ${text}`);
      return JSON.parse(text);
    },
    async close() {
      await gateway.close();
      await upstream.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
  broker.answerLogins();
  return broker;
}
