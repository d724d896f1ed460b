// OpenID provider for development and tests: accepts any name as a login, and needs no network.

import { generateKeyPair, type JsonWebKey, randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Configuration, errors, Provider, ResourceServer } from 'oidc-provider';
import type { Config } from '../../config/config.ts';
import { isLoopbackHost } from '../../platform/address.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { describeCode } from '../../platform/error-code.ts';
import { isObject, parseJson } from '../../platform/json.ts';
import { StartError } from '../command-line/errors.ts';
import { readIfPresent } from '../command-line/read-input.ts';

/** Creates the provider for a gateway with these settings. @throws StartError if its keys cannot be written. */
export async function createProviderOf(
  { server: { baseUrl }, store }: Config,
  issuer: string,
  [first = `${baseUrl}/mcp`, ...others]: readonly string[],
  clientId: string,
): Promise<RequestListener> {
  // At the first start, another thread generates the keys during the import.
  const [keys] = await Promise.all([
    loadOrCreateProviderKeys(store.dataDir),
    silenceNotices(loadPackage),
  ]);
  return createDevProvider({
    issuer,
    keys,
    gatewayUrl: baseUrl,
    audience: [first, ...others],
    client: { id: clientId },
    accessTokenTtlSeconds: 3600,
  });
}

const EDITOR_REDIRECT =
  /^(https:\/\/(insiders\.)?vscode\.dev\/redirect$|(cursor|vscode|vscode-insiders):\/\/)/;

/**
 * True for a redirect to this machine, with any port (RFC 8252 §7.3), or to an editor. Others are refused: a code from this
 * provider gives access to the developer's gateway.
 */
function isLocalRedirect(uri: string) {
  if (EDITOR_REDIRECT.test(uri)) return true;
  const { protocol, hostname } = new URL(uri);
  return protocol === 'http:' && isLoopbackHost(hostname);
}

/** @throws Error with code `ERR_MODULE_NOT_FOUND` if the development packages are missing. */
export async function createDevProvider(settings: DevProviderSettings): Promise<RequestListener> {
  const { issuer } = settings;
  const accounts = createAccounts();
  const provider = await silenceNotices(async () => {
    const { Provider: Constructor, errors: thrown } = await loadPackage();
    const { InvalidTarget } = thrown;
    return new Constructor(issuer, createProviderConfiguration(settings, accounts, InvalidTarget));
  });
  // The gateway's own callback is allowed at any address.
  provider.Client.prototype.redirectUriAllowed = (uri: string) =>
    uri === `${settings.gatewayUrl}/oauth/callback` || (URL.canParse(uri) && isLocalRedirect(uri));
  const handleRequest = provider.callback();
  const { host } = new URL(issuer);

  return (req, res) => {
    const { url = '/' } = req;
    const answer = (status: number, text: string, headers = {}) =>
      res.writeHead(status, { ...TEXT, ...headers }).end(text);
    // Blocks web pages whose own host name resolves to this machine (DNS rebinding).
    if (req.headers.host !== host) {
      answer(403, `This is ${issuer}. It does not answer to any other name.`);
    } else if (url === '/') {
      answer(
        200,
        'This development provider accepts any name. Your client opens it when you have to log in.\n',
      );
    } else if (
      url.startsWith(TOKEN_PATH) &&
      // Fetch Metadata: a request from another site's page, such as an image. Programs send no such header.
      /^(cross|same)-site$/.test(String(req.headers['sec-fetch-site']))
    ) {
      answer(403, 'Pages from other sites get no token, and cannot change groups.\n');
    } else if (url.startsWith(TOKEN_PATH)) {
      const [name = '', query] = url.slice(TOKEN_PATH.length).split('?');
      const groups = new URLSearchParams(query).get('groups');
      if (groups !== null && NAME.test(name)) accounts.setGroups(name, parseGroups(groups));
      issueToken(provider, settings, name)
        .then((token) => {
          if (token !== undefined) answer(200, `${token}\n`, { 'Cache-Control': 'no-store' });
          else
            answer(
              404,
              `${TOKEN_PATH}NAME gives an access token for NAME, ${TOKEN_PATH}NAME?groups=A,B for one in these groups.\n`,
            );
        })
        .catch(() => answer(500, 'The token could not be made.\n'));
    } else if (url.startsWith(LOGIN_PATH)) {
      logIn(provider, accounts, req, res).catch(() =>
        answer(400, 'This login has expired. Start again from your client.'),
      );
    } else {
      // There are no accounts to select: `select_account` becomes a new login.
      const choice = /([?&]prompt=)[^&]*\bselect_account\b[^&]*/;
      req.url = addDefaultScope(url).replace(choice, '$1login');
      handleRequest(req, res);
    }
  };
}

/** RFC 6749 §3.3: a client may omit the scope, but oidc-provider rejects that. */
function addDefaultScope(target: string) {
  const isUnscoped = target.startsWith('/auth?') && !/[?&]scope=[^&]/.test(target);
  return isUnscoped ? `${target.replace(/&scope=(?=&|$)/, '')}&scope=profile` : target;
}

const TEXT = {
  'Content-Type': 'text/plain; charset=utf-8',
  'X-Content-Type-Options': 'nosniff',
} as const;

/** An optional dependency, loaded only here. */
const loadPackage = () => import('oidc-provider');

/** Suppresses the notices of oidc-provider about production and Node.js versions, which do not apply here. */
async function silenceNotices<Result>(run: () => Promise<Result>) {
  const { info, warn } = console;
  console.info = () => {};
  console.warn = () => {};
  try {
    return await run();
  } finally {
    Object.assign(console, { info, warn });
  }
}

/**
 * Issues a token without a browser: `curl <issuer>/token-for/ada`. Names contain only characters that are safe in shells and
 * URLs.
 */
export const TOKEN_PATH = '/token-for/';

const NAME = /^[\w.@-]{1,100}$/;

/** The access token that a login under this name would yield; undefined for an invalid name. */
async function issueToken(provider: Provider, settings: DevProviderSettings, name: string) {
  if (!NAME.test(name)) return undefined;
  const client = await provider.Client.find(settings.client.id);
  if (client === undefined) throw new Error(`There is no client ${settings.client.id}`);
  const resource = `${settings.gatewayUrl}/mcp`;
  const token = new provider.AccessToken({
    client,
    accountId: name,
    grantId: '',
    gty: 'authorization_code',
    scope: SCOPES.join(' '),
    expiresIn: settings.accessTokenTtlSeconds,
    resourceServer: {
      ...describeResource(settings, resource),
      identifier: () => resource,
      scopes: new Set(SCOPES),
    },
  });
  return token.save();
}

interface DevProviderSettings {
  /** `http://localhost:<port>`, served by the caller. */
  readonly issuer: string;
  readonly keys: ProviderKeys;
  /** BASE_URL of the gateway: the provider issues tokens for this URL and those below it (RFC 8707). */
  readonly gatewayUrl: string;
  /** Audiences that the gateway accepts; the first one is the default resource. */
  readonly audience: readonly [string, ...string[]];
  /** The gateway's client; public if it has no secret. */
  readonly client: {
    readonly id: string;
    readonly secret?: string;
    readonly auth?: 'post' | 'basic';
  };
  readonly accessTokenTtlSeconds: number;
}

const ONE_DAY_SECONDS = 86_400;

const SCOPES = ['openid', 'profile', 'email', 'offline_access'];

function createProviderConfiguration(
  settings: DevProviderSettings,
  accounts: Accounts,
  InvalidTarget: typeof errors.InvalidTarget,
): Configuration {
  const { keys, gatewayUrl } = settings;
  const { id, secret, auth = 'post' } = settings.client;
  const { createClaims } = accounts;
  return {
    clients: [
      {
        client_id: id,
        ...(secret !== undefined && { client_secret: secret }),
        token_endpoint_auth_method: secret === undefined ? 'none' : `client_secret_${auth}`,
        // createDevProvider decides which URIs are allowed, but one has to be listed.
        redirect_uris: ['https://postern.invalid/callback'],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    ],
    jwks: { keys: [keys.signing] },
    cookies: { keys: [keys.cookie] },
    scopes: SCOPES,
    claims: { openid: ['sub'], profile: ['name', 'groups'], email: ['email'] },
    pkce: { required: () => true },
    interactions: { url: (_ctx, { uid }) => `${LOGIN_PATH}${uid}` },
    findAccount: (_ctx, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, ...createClaims(accountId) }),
    }),
    extraTokenClaims: (_ctx, token) =>
      'accountId' in token && token.accountId ? createClaims(token.accountId) : undefined,
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    expiresWithSession: () => false,
    loadExistingGrant: async ({ oidc }) => {
      const { session, provider, resourceServers = {} } = oidc;
      const clientId = oidc.client?.clientId;
      if (!clientId || !session?.accountId) return undefined;
      const grant = new provider.Grant({ clientId, accountId: session.accountId });
      grant.addOIDCScope(SCOPES.join(' '));
      for (const resource of Object.keys(resourceServers)) {
        grant.addResourceScope(resource, SCOPES.join(' '));
      }
      await grant.save();
      return grant;
    },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      revocation: {
        enabled: true,
        allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId,
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => `${gatewayUrl}/mcp`,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, resource) => {
          if (resource !== gatewayUrl && !resource.startsWith(`${gatewayUrl}/`))
            throw new InvalidTarget(`tokens are issued only for ${gatewayUrl}`);
          return describeResource(settings, resource);
        },
      },
    },
    clientBasedCORS: () => false,
    renderError: (ctx, { error, error_description }) => {
      ctx.type = 'text/plain';
      ctx.body = `${error}: ${error_description}`;
    },
    ttl: {
      AccessToken: settings.accessTokenTtlSeconds,
      AuthorizationCode: 60,
      Grant: ONE_DAY_SECONDS * 14,
      IdToken: 3600,
      Interaction: 600,
      RefreshToken: ONE_DAY_SECONDS * 14,
      Session: ONE_DAY_SECONDS,
    },
  };
}

/** The format of tokens for the gateway, or for one of its servers. */
const describeResource = (
  { audience, accessTokenTtlSeconds }: DevProviderSettings,
  resource: string,
): ResourceServer => ({
  scope: SCOPES.join(' '),
  audience: audience.includes(resource) ? resource : audience[0],
  accessTokenFormat: 'jwt',
  accessTokenTTL: accessTokenTtlSeconds,
  jwt: { sign: { alg: 'RS256' } },
});

/** The keys that the development provider uses to sign tokens and cookies. */
interface ProviderKeys {
  /** A private RS256 key as a JWK (RFC 7517). */
  readonly signing: JsonWebKey;
  readonly cookie: string;
}

/**
 * Loads the keys in `folder`, or creates them at the first start: tokens stay valid across restarts.
 *
 * @throws StartError if the folder cannot be written.
 */
async function loadOrCreateProviderKeys(folder: string): Promise<ProviderKeys> {
  const file = join(folder, 'dev-provider-keys.json');
  // Invalid content is treated like a missing file.
  const kept = parseJson(readIfPresent(file));
  if (isProviderKeys(kept)) return kept;
  const keys = await generateProviderKeys();
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(file, JSON.stringify(keys), { mode: 0o600 });
  } catch (error) {
    throw new StartError(
      `DATA_DIR: the folder ${folder} cannot be written (${describeCode(error)}). Set it to one that this user can write, for example DATA_DIR=/tmp/postern-data`,
    );
  }
  return keys;
}

export async function generateProviderKeys(): Promise<ProviderKeys> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
  const kid = randomBytes(8).toString('hex');
  return {
    signing: { ...privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' },
    cookie: randomBytes(32).toString('base64url'),
  };
}

const isProviderKeys = (content: unknown): content is ProviderKeys =>
  isObject(content) && isObject(content.signing) && typeof content.cookie === 'string';

// The login page of the development provider, its form, and the accounts that logged in.

/** The path that the provider redirects a browser to for a login. */
const LOGIN_PATH = '/login/';

/** Unless a login names others. */
export const DEFAULT_GROUPS = 'developers';
const MAX_NAME_LENGTH = 100;
const MAX_FORM_BYTES = 10_000;

/** Serves the login page and handles its form. @throws if the login has expired. */
async function logIn(
  provider: Provider,
  accounts: Accounts,
  req: IncomingMessage,
  res: ServerResponse,
) {
  const { prompt } = await provider.interactionDetails(req, res);
  // Consent is always granted, even if the client insists on a prompt.
  if (prompt.name !== 'login') {
    const options = { mergeWithLastSubmission: true };
    await provider.interactionFinished(req, res, { consent: {} }, options);
  } else if (req.method === 'POST') {
    const form = await readForm(req);
    const name = form.get('name')?.trim().slice(0, MAX_NAME_LENGTH) || 'developer';
    const groups = form.get('groups');
    if (groups !== null) accounts.setGroups(name, parseGroups(groups));
    await provider.interactionFinished(req, res, { login: { accountId: name } });
  } else {
    res.writeHead(200, LOGIN_PAGE_HEADERS).end(LOGIN_PAGE);
  }
}

async function readForm(req: IncomingMessage) {
  let form = '';
  for await (const chunk of req) {
    form += chunk;
    if (form.length > MAX_FORM_BYTES) throw new Error('The form is too large.');
  }
  return new URLSearchParams(form);
}

/** The login page. It shows nothing from the request and loads no resources. */
const LOGIN_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="application-name" content="postern-dev-login">
<title>Postern development login</title>
<style>
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 22rem; margin: 15vh auto 0; padding: 0 1rem; }
input, button { font: inherit; padding: .5rem .75rem; width: 100%; box-sizing: border-box; }
label[for=groups], button { display: block; margin-top: 1rem; }
</style>
</head>
<body>
<main>
<h1>Log in</h1>
<p>This is the development provider: any name works, and there is no password.</p>
<form method="post">
<label for="name">Name</label>
<input id="name" name="name" value="developer" maxlength="100" autocomplete="username" autofocus required>
<label for="groups">Groups, separated by commas</label>
<input id="groups" name="groups" value="${DEFAULT_GROUPS}" maxlength="500" autocomplete="off">
<button type="submit">Log in</button>
</form>
</main>
</body>
</html>
`;

/** No form-action: Chromium applies it to every redirect after the form, including the one to the client. */
const LOGIN_PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
} as const;

type Accounts = ReturnType<typeof createAccounts>;

/** Maximum number of names whose groups are remembered: a test may use any number of names. */
const MAX_NAMES = 1000;
const MAX_GROUPS = 50;

function createAccounts() {
  const groupsOf = createBoundedMap<string, readonly string[]>(MAX_NAMES);

  return {
    /** Remembers the groups of this name until its next login with groups. */
    setGroups: (name: string, groups: readonly string[]) => void groupsOf.set(name, groups),
    /** Claims of tokens for this name. */
    createClaims: (name: string) => ({
      name,
      email: `${name.toLowerCase().replace(/[^a-z0-9]+/g, '.')}@example.com`,
      groups: groupsOf.get(name) ?? parseGroups(DEFAULT_GROUPS),
    }),
  };
}

/** `developers, operators`; empty if nothing is typed. */
const parseGroups = (text: string) =>
  text
    .split(',')
    .map((group) => group.trim())
    .filter((group) => group !== '')
    .slice(0, MAX_GROUPS);
