// A provider whose access tokens nobody else can read: OpenID Connect's code flow, an ID token, and nothing more. Who comes
// to its `/authorize` is logged in there already.
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, systemClock } from '../../../src/platform/clock.ts';
import { type Issuer, startIssuer } from '../oauth/issuer.ts';

export type Claims = Readonly<Record<string, unknown>>;

/** What its endpoints do. `refuse` is the gateway's own client being refused. */
export type ProviderBehaviour = 'ok' | 'down' | 'error' | 'refuse' | 'busy';

export interface OpaqueProvider {
  readonly issuer: Issuer;
  /** The settings by which a gateway logs people in at it. */
  readonly env: Readonly<Record<string, string>>;
  /** How often each endpoint was asked. */
  readonly asked: { code: number; refresh: number; userinfo: number; revoke: number };
  /** Refresh tokens that were revoked here. */
  readonly revoked: readonly string[];
  /** Whether each refresh brings another refresh token, and the one before is taken for stolen. */
  rotates: boolean;
  /** Whether a refresh is answered with an ID token, too (OpenID Connect Core §12.2 leaves that open). */
  renewsIdToken: boolean;
  /** Whether there is a refresh token at all. */
  hasRefreshTokens: boolean;
  /** Seconds for which access tokens live. */
  expiresIn: number;
  /** Members of the ID token over those that belong there. */
  idToken: Claims;
  userinfo: Claims;
  behave(behaviour: ProviderBehaviour): void;
  /** The user logs in: what the browser brings back to the gateway for the address it was sent to. */
  logIn(asked: URL, claims?: Claims): { readonly code: string; readonly state: string };
  /** Nothing of this user is renewed any more. */
  disable(sub: string): void;
  close(): Promise<void>;
}

interface Login {
  readonly claims: Claims;
  readonly nonce: string | null;
}

export const CLIENT_ID = 'gateway-at-provider';
const CLIENT_SECRET = 'secret-of-the-gateway';

export async function startOpaqueProvider({
  clock = systemClock,
}: {
  clock?: Clock;
} = {}): Promise<OpaqueProvider> {
  const issuer = await startIssuer({ clock });
  const codes = new Map<string, Login>();
  const refreshTokens = new Map<string, Login>();
  const spent = new Map<string, Login>();
  const accessTokens = new Map<string, Login>();
  const disabled = new Set<string>();
  const revoked: string[] = [];
  let behaviour: ProviderBehaviour = 'ok';

  const server = createServer((req, res) => {
    handle(req, res).catch((error: unknown) => res.writeHead(500).end(String(error)));
  });
  server.keepAliveTimeout = 0;
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  issuer.document = {
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    revocation_endpoint: `${url}/revoke`,
    userinfo_endpoint: `${url}/userinfo`,
    scopes_supported: ['openid', 'profile', 'email', 'offline_access'],
  };

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of req) body += chunk;
    const form = new URLSearchParams(body);
    if (behaviour === 'down') return void res.destroy();
    if (behaviour === 'error') return void res.writeHead(500).end('oops');
    if (behaviour === 'busy') return void res.writeHead(429).end('{}');
    if (req.url?.startsWith('/authorize?')) {
      const asked = new URL(req.url, url);
      const back = new URL(asked.searchParams.get('redirect_uri') ?? '');
      back.search = new URLSearchParams(provider.logIn(asked)).toString();
      return void res.writeHead(302, { location: back.href }).end();
    }
    if (req.url === '/userinfo') {
      provider.asked.userinfo += 1;
      const login = accessTokens.get(req.headers.authorization?.slice('Bearer '.length) ?? '');
      if (login === undefined) return void res.writeHead(401).end();
      return send(res, 200, { sub: login.claims.sub, ...provider.userinfo });
    }
    if (behaviour === 'refuse' || form.get('client_secret') !== CLIENT_SECRET) {
      return send(res, 401, { error: 'invalid_client' });
    }
    if (req.url === '/revoke') {
      provider.asked.revoke += 1;
      const token = form.get('token') ?? '';
      revoked.push(token);
      refreshTokens.delete(token);
      return void res.writeHead(200).end();
    }
    if (form.get('grant_type') === 'authorization_code') {
      provider.asked.code += 1;
      const code = form.get('code') ?? '';
      const login = codes.get(code);
      codes.delete(code);
      return answerTokens(res, login);
    }
    provider.asked.refresh += 1;
    const refreshToken = form.get('refresh_token') ?? '';
    const stolen = spent.get(refreshToken);
    if (stolen !== undefined) {
      for (const [token, login] of refreshTokens) if (login === stolen) refreshTokens.delete(token);
    }
    const login = refreshTokens.get(refreshToken);
    if (login && provider.rotates) {
      refreshTokens.delete(refreshToken);
      spent.set(refreshToken, login);
    }
    return answerTokens(res, login, { isRefresh: true });
  }

  async function answerTokens(
    res: ServerResponse,
    login: Login | undefined,
    { isRefresh = false } = {},
  ): Promise<void> {
    if (login === undefined || disabled.has(String(login.claims.sub))) {
      return send(res, 400, { error: 'invalid_grant' });
    }
    const { claims, nonce } = login;
    const accessToken = `opaque-${randomUUID()}`;
    accessTokens.set(accessToken, login);
    const refreshToken = `refresh-${randomUUID()}`;
    const hasRefreshToken = provider.hasRefreshTokens && (provider.rotates || !isRefresh);
    if (hasRefreshToken) refreshTokens.set(refreshToken, login);
    const now = Math.floor(clock.now() / 1000);
    return send(res, 200, {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: provider.expiresIn,
      ...(hasRefreshToken && { refresh_token: refreshToken }),
      ...((!isRefresh || provider.renewsIdToken) && {
        id_token: await issuer.sign({
          aud: CLIENT_ID,
          iat: now,
          exp: now + 300,
          ...(nonce !== null && { nonce }),
          ...claims,
          ...provider.idToken,
        }),
      }),
    });
  }

  const provider: OpaqueProvider = {
    issuer,
    env: {
      OIDC_ISSUER: issuer.url,
      OAUTH_MODE: 'broker',
      OAUTH_TOKENS: 'gateway',
      OAUTH_CLIENT_ID: CLIENT_ID,
      OAUTH_CLIENT_SECRET: CLIENT_SECRET,
    },
    asked: { code: 0, refresh: 0, userinfo: 0, revoke: 0 },
    revoked,
    rotates: true,
    renewsIdToken: true,
    hasRefreshTokens: true,
    expiresIn: 3600,
    idToken: {},
    userinfo: {},
    behave(wanted) {
      behaviour = wanted;
    },
    logIn(asked, claims = {}) {
      const code = randomUUID();
      const all = { sub: 'user-1', name: 'Ada', email: 'ada@example.com', ...claims };
      codes.set(code, { claims: all, nonce: asked.searchParams.get('nonce') });
      return { code, state: asked.searchParams.get('state') ?? '' };
    },
    disable: (sub) => void disabled.add(sub),
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
      await issuer.close();
    },
  };
  return provider;
}

function send(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
