// An OpenID provider for development and tests: any name logs in, nothing leaves the machine.
import type { RequestListener, ServerResponse } from 'node:http';
import type { Provider } from 'oidc-provider';
import type { Config } from '../../config/config.ts';
import { isLoopbackHost } from '../../platform/address.ts';
import {
  createProviderConfiguration,
  type DevProviderSettings,
  describeResource,
  SCOPES,
} from './configuration.ts';
import { loadOrCreateProviderKeys, type ProviderKeys } from './keys.ts';
import { createAccounts, LOGIN_PATH, logIn, parseGroups } from './login.ts';

interface DevProviderOptions extends DevProviderSettings {
  /** `http://localhost:<port>`, where the caller serves it. */
  readonly issuer: string;
  readonly keys: ProviderKeys;
}

/** The one of a gateway with these settings. @throws StartError where its keys cannot be written. */
export async function createProviderOf(
  { server: { baseUrl }, store }: Config,
  issuer: string,
  [first = `${baseUrl}/mcp`, ...others]: readonly string[],
  clientId: string,
): Promise<RequestListener> {
  // At the first start another thread makes the keys meanwhile.
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
 * A redirect that stays on the machine, whatever the port (RFC 8252 §7.3), or leads into an
 * editor. Nothing else: a code of this provider opens the developer's gateway.
 */
function isLocalRedirect(uri: string): boolean {
  if (EDITOR_REDIRECT.test(uri)) return true;
  const { protocol, hostname } = new URL(uri);
  return protocol === 'http:' && isLoopbackHost(hostname);
}

/** @throws Error with code `ERR_MODULE_NOT_FOUND` where the development packages are missing. */
export async function createDevProvider(options: DevProviderOptions): Promise<RequestListener> {
  const { issuer, keys } = options;
  const accounts = createAccounts();
  const provider = await silenceNotices(async () => {
    const { Provider: Constructor, errors } = await loadPackage();
    const { InvalidTarget } = errors;
    return new Constructor(
      issuer,
      createProviderConfiguration(options, { keys, accounts }, InvalidTarget),
    );
  });
  allowLocalRedirects(provider, `${options.gatewayUrl}/oauth/callback`);
  const handleRequest = provider.callback();
  const { host } = new URL(issuer);

  return (req, res) => {
    // A page elsewhere must not reach it under a name of its own (DNS rebinding).
    if (req.headers.host !== host) {
      res.writeHead(403, TEXT).end(`This is ${issuer}. It does not answer to any other name.`);
    } else if (req.url === '/') {
      res
        .writeHead(200, TEXT)
        .end(
          'This development provider lets anybody log in. Your client opens it when a login is needed.\n',
        );
    } else if (req.url?.startsWith(TOKEN_PATH) && isForeignPage(req.headers['sec-fetch-site'])) {
      res.writeHead(403, TEXT).end('A page elsewhere gets no token, and changes no groups.\n');
    } else if (req.url?.startsWith(TOKEN_PATH)) {
      const [name = '', query] = req.url.slice(TOKEN_PATH.length).split('?');
      const groups = new URLSearchParams(query).get('groups');
      if (groups !== null && isName(name)) accounts.setGroups(name, parseGroups(groups));
      answerToken(res, issueToken(provider, options, name)).catch(() => {
        res.writeHead(500, TEXT).end('The token could not be made.\n');
      });
    } else if (req.url?.startsWith(LOGIN_PATH)) {
      logIn({ provider, accounts }, req, res).catch(() => {
        res.writeHead(400, TEXT).end('This login has expired. Start again from your client.');
      });
    } else {
      req.url = replaceUnknownPrompt(addDefaultScope(req.url ?? '/'));
      handleRequest(req, res);
    }
  };
}

/** Fetch Metadata: whether another site's page asks, as by an image. Programs send none. */
const isForeignPage = (site: string | string[] | undefined): boolean =>
  site === 'cross-site' || site === 'same-site';

async function answerToken(
  res: ServerResponse,
  issuing: Promise<string | undefined>,
): Promise<void> {
  const token = await issuing;
  if (token === undefined) {
    res
      .writeHead(404, TEXT)
      .end(
        `${TOKEN_PATH}NAME gives an access token for NAME, ${TOKEN_PATH}NAME?groups=A,B for one in these groups.\n`,
      );
  } else {
    res.writeHead(200, { ...TEXT, 'Cache-Control': 'no-store' }).end(`${token}\n`);
  }
}

/** RFC 6749 §3.3: a client may leave the scope to the server, which this one refuses as "none". */
function addDefaultScope(target: string): string {
  const isUnscoped = target.startsWith('/auth?') && !/[?&]scope=[^&]/.test(target);
  return isUnscoped ? `${target.replace(/&scope=(?=&|$)/, '')}&scope=profile` : target;
}

/** There are no accounts to choose from: `select_account` becomes a new login. */
const replaceUnknownPrompt = (target: string): string =>
  target.replace(/([?&]prompt=)[^&]*\bselect_account\b[^&]*/, '$1login');

const TEXT = {
  'Content-Type': 'text/plain; charset=utf-8',
  'X-Content-Type-Options': 'nosniff',
} as const;

/** The gateway's own callback is allowed wherever it is. */
function allowLocalRedirects({ Client }: Provider, callback: string): void {
  Client.prototype.redirectUriAllowed = (uri: string) =>
    uri === callback || (URL.canParse(uri) && isLocalRedirect(uri));
}

/** An optional dependency: loaded here and nowhere else. */
const loadPackage = () => import('oidc-provider');

/** The notices of oidc-provider are about production and its supported Node versions: no use here. */
async function silenceNotices<Result>(run: () => Promise<Result>): Promise<Result> {
  const { info, warn } = console;
  console.info = () => {};
  console.warn = () => {};
  try {
    return await run();
  } finally {
    Object.assign(console, { info, warn });
  }
}

/** For a token without a browser: `curl <issuer>/token-for/ada`. A name has characters that no shell and no URL changes. */
export const TOKEN_PATH = '/token-for/';

const NAME = /^[\w.@-]{1,100}$/;

const isName = (text: string): boolean => NAME.test(text);

/** The access token that a login under this name would give; undefined for what is no name. */
async function issueToken(
  provider: Provider,
  settings: DevProviderSettings,
  name: string,
): Promise<string | undefined> {
  if (!isName(name)) return undefined;
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
