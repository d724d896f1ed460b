import { execFileSync } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { builtInCatalog } from '../../built-in/index.ts';
import type { Config } from '../../config/config.ts';
import { loadConfig } from '../../config/load.ts';
import type { Env } from '../../config/setting.ts';
import type { Setup } from '../../gateway/configuration/gateway-file.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { Catalog } from '../../mcp/catalog/catalog.ts';
import { listTools, serveOwnCatalog } from '../../mcp/catalog/own-catalog.ts';
import { getErrorCode } from '../../platform/error-code.ts';
import { countNoun } from '../../platform/text.ts';
import { prepareEnvironment } from '../command-line/env-file.ts';
import { StartError } from '../command-line/errors.ts';
import type { Texts } from '../command-line/invocation.ts';
import { endWithNpx } from '../command-line/process-end.ts';
import { createProviderOf, DEFAULT_GROUPS, TOKEN_PATH } from '../dev-provider/provider.ts';
import { serve } from '../serve/serve.ts';
import { openConfigFile } from '../setup/config-file.ts';
import { loadCatalog } from '../setup/load-catalog.ts';
import { announceServers, createAnnouncer, createBanner } from './announce.ts';
import { joinWatcher, tellWatcher } from './watch.ts';

const CLIENT_ID = 'postern-dev';

/** Other defaults for development; the user's own variables take precedence. */
const DEV_DEFAULTS = {
  HOST: '127.0.0.1',
  LOG_LEVEL: 'warn',
  LOG_FORMAT: 'text',
  OAUTH_POPUPS: 'true',
  // Clients register themselves. Without internet access, their metadata documents could not be fetched.
  CIMD_ALLOWED_HOSTS: 'none',
  MCP_RATE_LIMIT_MAX: '10000',
  DCR_RATE_LIMIT_MAX: '1000',
  OAUTH_AUTHORIZE_RATE_LIMIT_MAX: '1000',
  OAUTH_CONSENT_RATE_LIMIT_MAX: '1000',
  OAUTH_CALLBACK_RATE_LIMIT_MAX: '1000',
} as const;

/** The mode that works with all clients. */
const BROKER = { OAUTH_MODE: 'broker' } as const;

/** Placeholders until the development provider runs, in every mode; the actual settings are checked later. */
const PLACEHOLDERS = {
  OIDC_ISSUER: 'http://localhost',
  OAUTH_AUTHORIZATION_URL: 'http://localhost/auth',
  OAUTH_TOKEN_URL: 'http://localhost/token',
  OAUTH_CLIENT_ID: CLIENT_ID,
} as const;

/**
 * `postern dev`: runs the gateway with the embedded store, rate limits too high to reach by hand, and its own identity provider,
 * unless OIDC_ISSUER names another.
 */
export async function dev(options: Texts<'catalog' | 'config' | 'port'>): Promise<void> {
  const changed = joinWatcher();
  endWithNpx();
  const envFile = prepareEnvironment(options, process.env);
  if (process.env.NODE_ENV === 'production')
    throw new StartError(
      'NODE_ENV: postern dev accepts anyone and is not for production. Use postern start.',
    );
  const environment = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value));
  const preview = loadConfig({
    ...DEV_DEFAULTS,
    ...PLACEHOLDERS,
    ...chooseMode(environment),
    ...environment,
  });
  const configFile = await openConfigFile(preview);
  const catalog = await loadCatalog(preview.server.catalogFile);
  const { config, login, tokenUrl, close } = await openSetup(environment, preview);
  const hasKeys = hasKeyboard();
  const announcer = createAnnouncer(console.log, hasKeys);
  let endServerNotes = () => {};

  async function announceServed(gateway: Gateway, loaded: readonly string[], setup?: Setup) {
    const served = configFile && { ...configFile, ...(setup && { setup }) };
    announcer.announce({
      ...createBanner(config, { login, tokenUrl, configFile: served, envFile }),
      summary: await summarize(gateway, catalog ?? builtInCatalog, served?.setup),
      loaded,
    });
    endServerNotes();
    if (config.server.logFormat === 'json') return;
    endServerNotes = announceServers(gateway.listServers, announcer.note);
  }

  const serving = serve(config, catalog, envFile, {
    configFile,
    isDevelopment: true,
    onReload: (setup, loaded) =>
      void serving.then((gateway) => announceServed(gateway, loaded, setup)),
    ...(close && { alsoClose: close }),
  });
  await announceServed(await serving, changed);
  tellWatcher();
  if (hasKeys) listenToKeys((key) => key === 'c' && announcer.printHints());
}

/**
 * `3 tools, 1 session kept`, or with servers `2 servers, 1 tool of the gateway itself`. The number of a server's tools is
 * announced once it responds.
 */
async function summarize(gateway: Gateway, catalog: Catalog, setup: Setup | undefined) {
  const tools =
    setup?.file.builtIn === false ? 0 : (await listTools(serveOwnCatalog(catalog))).length;
  const servers = setup?.file.servers.length ?? 0;
  const sessions = await gateway.countSessions().catch(() => 0);
  const ownTools = countNoun(tools, 'tool');
  return [
    servers === 0 ? ownTools : countNoun(servers, 'server'),
    servers > 0 && tools > 0 && `${ownTools} of the gateway itself`,
    sessions > 0 && `${countNoun(sessions, 'session')} kept`,
  ]
    .filter(Boolean)
    .join(', ');
}

/** Chooses the mode as the service will: settings for one mode are rejected in the other. */
function chooseMode(environment: Env) {
  const { AUTH_REQUIRED, OIDC_ISSUER, OAUTH_CLIENT_ID, OIDC_AUDIENCE } = environment;
  const hasLogin = OIDC_ISSUER === undefined || OAUTH_CLIENT_ID !== undefined;
  if (AUTH_REQUIRED === 'false' || !hasLogin) return {};
  const isBesideOwn = OIDC_ISSUER === undefined && OIDC_AUDIENCE !== undefined;
  return { ...BROKER, ...(isBesideOwn && acceptProviderTokens(environment, [OIDC_AUDIENCE])) };
}

/** Returns the settings of the service, and how to log in. @throws ConfigError with all problems of the settings. */
async function openSetup(environment: Env, preview: Config) {
  if (preview.auth.required && environment.OIDC_ISSUER === undefined) {
    const { audience } = preview.auth.provider;
    loadWithDevProvider(environment, PLACEHOLDERS.OIDC_ISSUER, audience);
    const { issuer, close } = await startDevProvider(preview, audience);
    return {
      config: loadWithDevProvider(environment, issuer, audience),
      login: `any name, no password (${issuer})`,
      /** Returns an access token. */
      tokenUrl: `${issuer}${TOKEN_PATH}ada`,
      close,
    };
  }
  // With the provider from OIDC_ISSUER, or without any.
  const canLogIn = preview.auth.required && environment.OAUTH_CLIENT_ID !== undefined;
  const config = loadConfig({ ...DEV_DEFAULTS, ...(canLogIn && BROKER), ...environment });
  const login = config.auth.required ? `at ${config.auth.provider.issuer}` : 'none needed';
  return { config, login };
}

const loadWithDevProvider = (environment: Env, issuer: string, audience: readonly string[]) =>
  loadConfig({
    ...DEV_DEFAULTS,
    ...BROKER,
    ...acceptProviderTokens(environment, audience),
    OIDC_ISSUER: issuer,
    // For OAUTH_MODE=proxy, which does not discover endpoints.
    OAUTH_AUTHORIZATION_URL: `${issuer}/auth`,
    OAUTH_TOKEN_URL: `${issuer}/token`,
    OAUTH_REVOCATION_URL: `${issuer}/token/revocation`,
    OAUTH_CLIENT_ID: CLIENT_ID,
    // Everybody who logs in there may see the operators' page.
    ADMIN_GROUPS: DEFAULT_GROUPS,
    ...environment,
  });

/** Accepts the provider's tokens besides the gateway's own, so that curl can get one without a browser. */
function acceptProviderTokens(environment: Env, audience: readonly string[]) {
  const { OAUTH_MODE, OAUTH_ACCEPT_PROVIDER_TOKENS } = environment;
  const issuesOwn = (OAUTH_MODE || 'broker') === 'broker';
  return issuesOwn && !OAUTH_ACCEPT_PROVIDER_TOKENS
    ? { OAUTH_ACCEPT_PROVIDER_TOKENS: 'true', OIDC_AUDIENCE: audience.join(',') }
    : {};
}

// Key commands of postern dev, if it has the terminal to itself.

const CTRL_C = '\u0003';
const CTRL_Z = '\u001a';

/**
 * True if the user can press keys for this process. The system stops a background process (started with `&`) that reads from the
 * terminal.
 */
function hasKeyboard() {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false;
  try {
    const args = ['-o', 'stat=', '-p', String(process.pid)];
    return execFileSync('ps', args, { encoding: 'utf8' }).includes('+');
  } catch {
    return false;
  }
}

/** Listens until the process ends, and then restores the terminal. In raw mode, Ctrl+C is an ordinary key. */
function listenToKeys(onKey: (key: string) => void) {
  const { stdin } = process;

  function take() {
    stdin.setRawMode(true);
    stdin.resume();
  }

  function giveBack() {
    stdin.setRawMode(false);
    stdin.pause();
  }

  stdin.setEncoding('utf8').on('data', (pressed: string) => {
    // Signals the whole process group, as the terminal would.
    if (pressed === CTRL_C) process.kill(0, 'SIGINT');
    else if (pressed === CTRL_Z) {
      giveBack();
      // Stops the whole process group, as the terminal would.
      process.kill(0, 'SIGTSTP');
    } else onKey(pressed);
  });
  process.on('SIGCONT', () => {
    if (hasKeyboard()) take();
  });
  process.on('exit', giveBack);
  take();
}

/**
 * Starts the development provider for the gateway with this configuration, on a separate port.
 *
 * @throws StartError
 */
async function startDevProvider(config: Config, audience: readonly string[]) {
  const server = createServer();
  const issuer = `http://localhost:${await listenOnFreePort(server, config.server.port + 1)}`;
  const handleRequest = await createProviderOf(config, issuer, audience, CLIENT_ID).catch(
    (error: unknown): never => {
      if (getErrorCode(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
      throw new StartError(
        'The development provider is missing: npm did not install the optional package oidc-provider (--omit=optional, or the download failed). Install again with --include=optional, set OIDC_ISSUER to your own provider, or set AUTH_REQUIRED=false to run without logging in.',
      );
    },
  );
  server.on('request', handleRequest);
  async function close() {
    server.close();
    server.closeAllConnections();
  }
  return { issuer, close };
}

const ATTEMPTS = 20;
const HIGHEST_PORT = 65_535;

/** Listens on 127.0.0.1 on the first free port starting from `port`; resolves to that port. */
async function listenOnFreePort(server: Server, port: number) {
  const last = Math.min(port + ATTEMPTS - 1, HIGHEST_PORT);
  for (let candidate = port; candidate <= last; candidate += 1) {
    if (await tryListen(server, candidate)) return candidate;
  }
  throw new StartError(
    `PORT: the development provider needs a free port among the ${ATTEMPTS} after PORT, and all of them are taken. Set another PORT.`,
  );
}

/** False if the port is in use. */
const tryListen = (server: Server, port: number) =>
  new Promise<boolean>((resolve, reject) => {
    const onError = (error: Error) =>
      getErrorCode(error) === 'EADDRINUSE' ? resolve(false) : reject(error);
    server.once('error', onError);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', onError);
      resolve(true);
    });
  });
