// A provider on a loopback socket: the same core for all of them, and in what they differ by their habits (habits.ts).
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Clock, systemClock } from '../../../src/platform/clock.ts';
import { type Issuer, startIssuer } from '../oauth/issuer.ts';
import { type Back, createAuthorizationEndpoint } from './authorization-endpoint.ts';
import { type Habits, type Person, type Route, type Surroundings, sendJson } from './habits.ts';
import { ADA } from './login-page.ts';
import { createLogins } from './logins.ts';
import { createLogout, type LoggedOut, type SentLogout } from './logout.ts';
import { createTokenEndpoint } from './token-endpoint.ts';

/**
 * What its endpoints do. `refuse` is the gateway's own client being refused; `lost`, that it does what it is asked, and its
 * answer never arrives.
 */
export type ProviderBehaviour = 'ok' | 'down' | 'error' | 'refuse' | 'busy' | 'lost';

export interface Emulator {
  readonly habits: Habits;
  /** `http://127.0.0.1:<port>`. */
  readonly origin: string;
  readonly issuer: Issuer;
  /** The settings by which a gateway logs people in at it. */
  readonly env: Readonly<Record<string, string>>;
  /** How often each endpoint was asked. */
  readonly asked: { code: number; refresh: number; userinfo: number; revoke: number };
  /** Tokens that were revoked here. */
  readonly revoked: readonly string[];
  /** Who is logged in already when a browser comes; undefined where everybody is asked who they are. */
  person: Person | undefined;
  /** Where logout tokens are posted to (Back-Channel Logout 1.0 §2.2). */
  logoutUrl: string | undefined;
  behave(behaviour: ProviderBehaviour): void;
  /** The person logs in: what the browser brings back to the gateway for the address it was sent to. */
  logIn(asked: URL, person?: Person): Back;
  /** Nothing of this person is good any more. */
  disable(sub: string): void;
  /** Who is logged in, each once. */
  listPeople(): readonly Person[];
  /** Ends logins, and tells the gateway where the provider has back-channel logout. */
  logOutUser(whom: LoggedOut): Promise<readonly SentLogout[]>;
  close(): Promise<void>;
}

export interface EmulatorOptions {
  readonly clock?: Clock;
  /** A free one unless given. */
  readonly port?: number;
  /** Everybody is asked who they are, by a page. */
  readonly asksWho?: boolean;
}

export const CLIENT_ID = 'gateway-at-provider';
const CLIENT_SECRET = 'secret-of-the-gateway';

export async function startEmulator(
  habits: Habits,
  { clock = systemClock, asksWho = false, port = 0 }: EmulatorOptions = {},
): Promise<Emulator> {
  const { paths, issuerPath } = habits;
  const logins = createLogins(habits, () => Math.floor(clock.now() / 1000));
  const asked = { code: 0, refresh: 0, userinfo: 0, revoke: 0 };
  const revoked: string[] = [];
  let behaviour: ProviderBehaviour = 'ok';

  const issuer = await startIssuer({
    clock,
    port,
    path: issuerPath,
    keysPath: paths.keys,
    answer(req, res) {
      const route = routes.get(new URL(req.url ?? '', 'http://localhost').pathname);
      if (route === undefined && habits.isOpenId) return false;
      const failed = (error: unknown) => void res.writeHead(500).end(String(error));
      receive(route ?? answerNotFound, req, res).catch(failed);
      return true;
    },
  });
  const origin = new URL(issuer.url).origin;
  const here: Surroundings = {
    origin,
    issuer,
    clock,
    clientId: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    findLogin: logins.findLogin,
    revoke(token) {
      asked.revoke += 1;
      revoked.push(token);
      logins.revoke(token);
    },
  };
  const authorization = createAuthorizationEndpoint({
    habits,
    here,
    logins,
    getPerson: () => emulator.person,
  });
  const tokens = createTokenEndpoint({
    habits,
    here,
    logins,
    asked,
    refusesClient: () => behaviour === 'refuse',
  });
  const logout = createLogout({ habits, here, logins, getLogoutUrl: () => emulator.logoutUrl });
  issuer.document = describeEndpoints(habits, origin);

  const routes = new Map<string | undefined, Route>([
    [paths.authorize, authorization.answer],
    [paths.token, tokens.answerToken],
    [paths.revoke, tokens.answerRevoke],
    [paths.userinfo, answerUserinfo],
    [paths.endSession, logout.answerEndSession],
    ...Object.entries(habits.createRoutes(here)),
  ]);

  async function receive(route: Route, req: IncomingMessage, res: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of req) body += chunk;
    if (behaviour === 'down') return void res.destroy();
    if (behaviour === 'error') return void res.writeHead(500).end('oops');
    if (behaviour === 'busy') return void res.writeHead(429).end('{}');
    if (behaviour === 'lost') res.end = () => res.destroy();
    await route(req, res, new URLSearchParams(body), body);
  }

  function answerUserinfo(req: IncomingMessage, res: ServerResponse): void {
    asked.userinfo += 1;
    const [, token = ''] = /^Bearer (.+)$/i.exec(req.headers.authorization ?? '') ?? [];
    const login = logins.findLogin(token);
    if (login !== undefined) {
      sendJson(res, 200, habits.describeInUserinfo(login, here));
      return;
    }
    const { status, body } = habits.renderRefusal(INVALID_TOKEN);
    res.setHeader('www-authenticate', 'Bearer error="invalid_token"');
    sendJson(res, status, body);
  }

  const emulator: Emulator = {
    habits,
    origin,
    issuer,
    env: {
      ...habits.settings,
      [habits.addressSetting]: habits.isOpenId ? issuer.url : origin,
      OAUTH_MODE: 'broker',
      OAUTH_CLIENT_ID: CLIENT_ID,
      OAUTH_CLIENT_SECRET: CLIENT_SECRET,
    },
    asked,
    revoked,
    person: asksWho ? undefined : ADA,
    logoutUrl: undefined,
    behave(wanted) {
      behaviour = wanted;
    },
    logIn: ({ searchParams }, person = ADA) => authorization.logIn(searchParams, person),
    disable: logins.disable,
    listPeople: () => [
      ...new Map(logins.list().map(({ person }) => [person.sub, person])).values(),
    ],
    logOutUser: logout.logOut,
    close: issuer.close,
  };
  return emulator;
}

const answerNotFound: Route = (_req, res) => void res.writeHead(404).end();

const INVALID_TOKEN = {
  status: 401,
  error: 'invalid_token',
  error_description: 'The access token has expired or was revoked.',
};

/** OpenID Connect Discovery §3. */
function describeEndpoints(habits: Habits, origin: string): Record<string, unknown> {
  const { paths, scopes, clientAuth, logoutTokenNames, document } = habits;
  return {
    authorization_endpoint: origin + paths.authorize,
    token_endpoint: origin + paths.token,
    userinfo_endpoint: origin + paths.userinfo,
    ...(paths.revoke !== undefined && { revocation_endpoint: origin + paths.revoke }),
    ...(paths.endSession !== undefined && { end_session_endpoint: origin + paths.endSession }),
    ...(logoutTokenNames.length > 0 && {
      backchannel_logout_supported: true,
      backchannel_logout_session_supported: logoutTokenNames.includes('sid'),
    }),
    scopes_supported: scopes,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: clientAuth.map((name) => `client_secret_${name}`),
    ...document,
  };
}
