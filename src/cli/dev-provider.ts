// An OpenID provider for development and tests: any name logs in, nothing leaves the machine.
import { generateKeyPair, type JsonWebKey, randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Configuration, Provider } from 'oidc-provider';
import { loginPage } from './dev-login.ts';

export interface DevProviderOptions {
  readonly port: number;
  /** Audience of access tokens whose request names no resource: the gateway's BASE_URL. */
  readonly audience: string;
  /** Where the keys are kept, so that tokens survive a restart; not kept without. */
  readonly folder?: string;
  /** The client that the gateway uses; public without a secret. */
  readonly client: {
    readonly id: string;
    readonly secret?: string;
    readonly auth?: 'post' | 'basic';
  };
  /** Seconds an access token lives. */
  readonly accessTokenTtl?: number;
}

export interface DevProvider {
  readonly issuer: string;
  close(): Promise<void>;
}

interface Keys {
  readonly signing: JsonWebKey;
  readonly cookie: string;
}

/** A redirect that stays on the machine, whatever the port (RFC 8252 §7.3), or an app's scheme. */
const LOCAL_REDIRECT =
  /^(http:\/\/(localhost|127\.0\.0\.1)(:\d+)?\/|(cursor|vscode|vscode-insiders):\/\/)/;

const SCOPES = ['openid', 'profile', 'email', 'offline_access'];

/** @throws Error with code `EADDRINUSE` when the port is taken. */
export async function startDevProvider(options: DevProviderOptions): Promise<DevProvider> {
  const issuer = `http://localhost:${options.port}`;
  const keys = options.folder ? await keptKeys(options.folder) : await newKeys();
  const provider = await quietly(async () => {
    // A development dependency: loaded here and nowhere else.
    const { Provider: Constructor } = await import('oidc-provider');
    return new Constructor(issuer, configuration(options, keys));
  });
  allowLocalRedirects(provider);
  const server = createServer(handler(provider));
  await listen(server, options.port);
  return {
    issuer,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function configuration(options: DevProviderOptions, keys: Keys): Configuration {
  const { audience, client, accessTokenTtl = 3600 } = options;
  const method =
    client.secret === undefined ? 'none' : (`client_secret_${client.auth ?? 'post'}` as const);
  return {
    clients: [
      {
        client_id: client.id,
        ...(client.secret !== undefined && { client_secret: client.secret }),
        token_endpoint_auth_method: method,
        redirect_uris: ['http://localhost/callback'],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        application_type: 'native',
      },
    ],
    jwks: { keys: [keys.signing] },
    cookies: { keys: [keys.cookie] },
    scopes: SCOPES,
    claims: { openid: ['sub'], profile: ['name', 'groups'], email: ['email'] },
    pkce: { required: () => true },
    interactions: { url: (_ctx, { uid }) => `/login/${uid}` },
    findAccount: (_ctx, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, ...claimsOf(accountId) }),
    }),
    extraTokenClaims: (_ctx, token) =>
      'accountId' in token && token.accountId ? claimsOf(token.accountId) : undefined,
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    loadExistingGrant: async (ctx) => {
      const { client: asking, session, provider, resourceServers = {} } = ctx.oidc;
      if (!asking || !session?.accountId) return undefined;
      // Who logs in here agrees: there is nothing to protect.
      const grant = new provider.Grant({
        clientId: asking.clientId,
        accountId: session.accountId,
      });
      grant.addOIDCScope(SCOPES.join(' '));
      for (const resource of Object.keys(resourceServers)) {
        grant.addResourceScope(resource, SCOPES.join(' '));
      }
      await grant.save();
      return grant;
    },
    features: {
      devInteractions: { enabled: false },
      revocation: { enabled: true },
      rpInitiatedLogout: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => audience,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, resource) => ({
          scope: SCOPES.join(' '),
          audience: resource,
          accessTokenFormat: 'jwt',
          accessTokenTTL: accessTokenTtl,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    ttl: {
      AccessToken: accessTokenTtl,
      AuthorizationCode: 60,
      Grant: 86_400,
      IdToken: 3600,
      Interaction: 600,
      RefreshToken: 86_400,
      Session: 86_400,
    },
  };
}

const claimsOf = (name: string) => ({
  name,
  email: `${name.toLowerCase().replace(/[^a-z0-9]+/g, '.')}@example.com`,
  groups: ['developers'],
});

function allowLocalRedirects(provider: Provider): void {
  const { prototype } = provider.Client;
  const registered = prototype.redirectUriAllowed;
  prototype.redirectUriAllowed = function redirectUriAllowed(uri: string) {
    return LOCAL_REDIRECT.test(uri) || registered.call(this, uri);
  };
}

/** The log-in page; everything else is the provider's. */
function handler(provider: Provider) {
  const serve = provider.callback();

  return (req: IncomingMessage, res: ServerResponse): void => {
    if (!req.url?.startsWith('/login/')) {
      serve(req, res);
      return;
    }
    logIn(provider, req, res).catch(() => {
      res.writeHead(400, { 'content-type': 'text/plain' });
      res.end('This log-in has expired. Start again from your client.');
    });
  };
}

async function logIn(provider: Provider, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { prompt } = await provider.interactionDetails(req, res);
  if (req.method !== 'POST') {
    res.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
    res.end(loginPage(prompt.name));
    return;
  }
  let form = '';
  for await (const chunk of req) form += chunk;
  const name = new URLSearchParams(form).get('name')?.trim().slice(0, 100) || 'developer';
  await provider.interactionFinished(req, res, { login: { accountId: name } });
}

/** Its notices speak of production; this is not. */
async function quietly<Result>(work: () => Promise<Result>): Promise<Result> {
  const { info, warn } = console;
  console.info = () => {};
  console.warn = () => {};
  try {
    return await work();
  } finally {
    Object.assign(console, { info, warn });
  }
}

async function keptKeys(folder: string): Promise<Keys> {
  const file = join(folder, 'dev-provider-keys.json');
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Keys;
  } catch {
    const keys = await newKeys();
    await mkdir(folder, { recursive: true });
    await writeFile(file, JSON.stringify(keys), { mode: 0o600 });
    await chmod(file, 0o600);
    return keys;
  }
}

async function newKeys(): Promise<Keys> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
  const kid = randomBytes(8).toString('hex');
  return {
    signing: { ...privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' },
    cookie: randomBytes(32).toString('base64url'),
  };
}

const listen = (server: Server, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve());
  });
