// A gateway before an emulated provider, whose answers a test may change on their way.
import type { Deps } from '../../../src/gateway/gateway.ts';
import { type ManualClock, manualClock } from '../gateway/clock.ts';
import { startGateway, type TestGateway } from '../gateway/gateway.ts';
import { type Emulator, startEmulator } from '../providers/emulator.ts';
import type { Habits, Person } from '../providers/habits.ts';
import { ADA } from '../providers/login-page.ts';
import { BASE, createOwnTokenLogins, type OwnTokenLogins, toTokens } from './own-tokens.ts';

export interface EmulatedLogins extends OwnTokenLogins {
  readonly gateway: TestGateway;
  readonly emulator: Emulator;
  readonly clock: ManualClock;
  /** Who logs in next. */
  person: Person;
  /** What each request to the provider is answered in place of its own answer; undefined for that. */
  change: ((url: URL, answer: Response) => Promise<Response> | undefined) | undefined;
  /** Requests to the provider so far. */
  readonly requests: readonly string[];
  /** `user://profile`. */
  readProfile(access: string): Promise<unknown>;
  close(): Promise<void>;
}

export async function startEmulatedLogins(
  habits: Habits,
  env: Readonly<Record<string, string>> = {},
): Promise<EmulatedLogins> {
  const clock = manualClock(1_800_000_000_000);
  const emulator = await startEmulator(habits, { clock });
  const requests: string[] = [];
  let started: EmulatedLogins | undefined;
  const fetchChanged: Deps['fetch'] = async (url, init) => {
    requests.push(`${init.method ?? 'GET'} ${url.replace(emulator.origin, '')}`);
    const answer = await fetch(url, init);
    return started?.change?.(new URL(url), answer) ?? answer;
  };
  const gateway = await startGateway({
    deps: { clock, fetch: fetchChanged },
    env: {
      BASE_URL: BASE,
      OIDC_ISSUER: '',
      ...emulator.env,
      OAUTH_CONSENT_RATE_LIMIT_MAX: '10000',
      OAUTH_CALLBACK_RATE_LIMIT_MAX: '10000',
      OAUTH_TOKEN_RATE_LIMIT_MAX: '10000',
      ...env,
    },
  });
  const logins = createOwnTokenLogins(gateway, {
    logIn: (asked) => emulator.logIn(asked, own.person),
  });
  const own: EmulatedLogins = {
    ...logins,
    gateway,
    emulator,
    clock,
    person: ADA,
    change: undefined,
    requests,
    async readProfile(access) {
      const opened = await logins.call(access);
      const { json } = await gateway.rpc(
        { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'user://profile' } },
        { token: access, session: String(opened.headers['mcp-session-id']) },
      );
      return JSON.parse(json.result.contents[0].text);
    },
    async close() {
      await gateway.close();
      await emulator.close();
    },
  };
  started = own;
  return own;
}

/** A refresh that is answered with tokens. */
export async function renew(
  own: Pick<EmulatedLogins, 'refresh'>,
  tokens: Parameters<OwnTokenLogins['refresh']>[0],
) {
  return toTokens(tokens.client, await own.refresh(tokens));
}

export const answerJson = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  Promise.resolve(
    new Response(JSON.stringify(body), {
      status,
      headers: { 'content-type': 'application/json', ...headers },
    }),
  );
