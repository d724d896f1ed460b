// Gateways that issue tokens of their own, one or two over one Redis, before a provider whose tokens they cannot read.

import type { Deps } from '../../../src/gateway/gateway.ts';
import { type ManualClock, manualClock } from '../gateway/clock.ts';
import {
  INITIALIZE_REQUEST,
  startGateway,
  type TestGateway,
  type TestResponse,
} from '../gateway/gateway.ts';
import {
  type Claims,
  type OpaqueProvider,
  startOpaqueProvider,
} from '../providers/opaque-provider.ts';
import { type RedisServer, startRedis } from '../stores/redis.ts';
import { type Client, createLoginSteps } from './login-steps.ts';

export const BASE = 'https://gw.example';
export const MCP = `${BASE}/mcp`;

export interface Tokens {
  readonly client: Client;
  readonly access: string;
  readonly refresh: string;
  readonly expiresIn: number;
  readonly scope: string | undefined;
}

/** Logins through a gateway, wherever it runs. */
export interface OwnTokenLogins {
  readonly steps: ReturnType<typeof createLoginSteps>;
  /** As far as the address at which the client is called back. */
  logInTo(client: Client, claims?: Claims, change?: Record<string, string>): Promise<URL>;
  logIn(claims?: Claims, change?: Record<string, string>): Promise<Tokens>;
  refresh(tokens: Tokens, change?: Record<string, string>): Promise<TestResponse>;
  /** `initialize` with an access token. */
  call(access: string, path?: string): Promise<TestResponse>;
}

export interface OwnTokenGateway extends OwnTokenLogins {
  readonly gateway: TestGateway;
}

export interface OwnTokenSetup extends OwnTokenGateway {
  readonly provider: OpaqueProvider;
  readonly clock: ManualClock;
  /** The same store behind another one; only with Redis. */
  readonly other: OwnTokenGateway;
  /** One more gateway with these settings, over the same store; only with Redis. */
  open(env: Readonly<Record<string, string>>): Promise<OwnTokenGateway>;
  close(): Promise<void>;
}

export interface OwnTokenOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly deps?: Partial<Deps>;
  /** Two replicas over Redis, in place of one with the embedded store. */
  readonly isReplicated?: boolean;
}

export async function startOwnTokens({
  env = {},
  deps = {},
  isReplicated = false,
}: OwnTokenOptions = {}): Promise<OwnTokenSetup> {
  const clock = manualClock(1_800_000_000_000);
  const provider = await startOpaqueProvider({ clock });
  const redis: RedisServer | undefined = isReplicated ? await startRedis() : undefined;
  const gateways: TestGateway[] = [];

  async function open(furtherEnv = {}): Promise<OwnTokenGateway> {
    const gateway = await startGateway({
      deps: { clock, ...deps },
      env: {
        BASE_URL: BASE,
        ...provider.env,
        ...(redis && {
          REDIS_URL: redis.url,
          OAUTH_STATE_SECRET: 'one-secret-for-all-of-the-replicas',
        }),
        OAUTH_CONSENT_RATE_LIMIT_MAX: '10000',
        OAUTH_CALLBACK_RATE_LIMIT_MAX: '10000',
        OAUTH_TOKEN_RATE_LIMIT_MAX: '10000',
        ...env,
        ...furtherEnv,
      },
    });
    gateways.push(gateway);
    return { gateway, ...createOwnTokenLogins(gateway, provider) };
  }

  const one = await open();
  const other = isReplicated ? await open() : one;
  return {
    ...one,
    other,
    open,
    provider,
    clock,
    async close() {
      for (const gateway of gateways) await gateway.close();
      await provider.close();
      await redis?.close();
    },
  };
}

export function createOwnTokenLogins(
  gateway: Pick<TestGateway, 'request'>,
  provider: Pick<OpaqueProvider, 'logIn'>,
): OwnTokenLogins {
  const steps = createLoginSteps(gateway);

  const own: OwnTokenLogins = {
    steps,
    async logInTo(client, claims, change) {
      const { cookie, asked } = await steps.approve(client, change);
      const { status, headers, text } = await steps.callback(provider.logIn(asked, claims), cookie);
      if (status !== 303) throw new Error(`The callback was answered ${status}: ${text}`);
      return new URL(headers.location ?? '');
    },
    async logIn(claims, change) {
      const client = await steps.register();
      const answer = await steps.redeem(client, await own.logInTo(client, claims, change));
      return toTokens(client, answer);
    },
    refresh: ({ client, refresh }, change) => steps.refresh(client, refresh, change),
    call: (access, path = '/mcp') =>
      gateway.request({
        method: 'POST',
        path,
        body: INITIALIZE_REQUEST,
        headers: { authorization: `Bearer ${access}` },
      }),
  };
  return own;
}

export function toTokens(client: Client, { status, text }: TestResponse): Tokens {
  if (status !== 200) throw new Error(`The token endpoint answered ${status}: ${text}`);
  const { access_token: access, refresh_token: refresh, expires_in, scope } = JSON.parse(text);
  return { client, access, refresh, expiresIn: expires_in, scope };
}
