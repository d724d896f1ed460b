import { createServer, type RequestListener } from 'node:http';
import type { Config } from '../core/config/config.ts';
import { loadConfig } from '../core/config/load.ts';
import { getErrorCode } from '../core/errors/error-code.ts';
import { loadCatalog } from './catalog-file/load-catalog.ts';
import type { Options } from './command-line.ts';
import { banner } from './dev-banner.ts';
import { loadOrCreateProviderKeys } from './dev-provider/keys.ts';
import { listenOnFreePort } from './dev-provider/listen-on-free-port.ts';
import { createDevProvider, type DevProviderOptions } from './dev-provider/provider.ts';
import { prepareEnv } from './env-file.ts';
import { serve } from './serve.ts';
import { StartError } from './start-error.ts';

const CLIENT_ID = 'postern-dev';

/** What development wants otherwise; a variable of the user's own wins. */
const DEFAULTS = {
  HOST: '127.0.0.1',
  LOG_LEVEL: 'warn',
  OAUTH_POPUPS: 'true',
  // Clients register. Without the internet their documents could not be fetched.
  CIMD_ALLOWED_HOSTS: 'none',
  MCP_RATE_LIMIT_MAX: '10000',
  DCR_RATE_LIMIT_MAX: '1000',
  OAUTH_AUTHORIZE_RATE_LIMIT_MAX: '1000',
  OAUTH_CONSENT_RATE_LIMIT_MAX: '1000',
  OAUTH_CALLBACK_RATE_LIMIT_MAX: '1000',
} as const;

/** The mode that lets every client in. */
const BROKER = { OAUTH_MODE: 'broker' } as const;

/** Stands in until the development provider is there. */
const UNKNOWN_YET = { OIDC_ISSUER: 'http://localhost' } as const;

/**
 * `postern dev`: the embedded store, limits that nobody meets by hand, and an identity provider
 * of its own, unless OIDC_ISSUER names another.
 */
export async function dev(options: Options): Promise<void> {
  endWithWatcher();
  const envFile = prepareEnv(options);
  if (process.env.NODE_ENV === 'production') {
    throw new StartError([
      'NODE_ENV: postern dev lets everybody in and is not for production; use postern start.',
    ]);
  }
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value));
  const preview = loadConfig({ ...DEFAULTS, ...UNKNOWN_YET, OAUTH_CLIENT_ID: CLIENT_ID, ...given });
  if (!preview.auth.required || given.OIDC_ISSUER !== undefined) {
    const canLogIn = preview.auth.required && given.OAUTH_CLIENT_ID !== undefined;
    const config = loadConfig({ ...DEFAULTS, ...(canLogIn && BROKER), ...given });
    const catalog = await catalogOf(options);
    await serve(config, { catalog, envFile });
    const logIn = config.auth.required ? `at ${config.auth.provider.issuer}` : 'none needed';
    console.log(banner(config, { logIn, catalog: options.catalog, envFile }));
    return;
  }
  const catalog = await catalogOf(options);
  const { issuer, close } = await startProvider(preview, preview.auth.provider.audience);
  const config = loadConfig({
    ...DEFAULTS,
    ...BROKER,
    OIDC_ISSUER: issuer,
    // For OAUTH_MODE=proxy, which discovers none of them.
    OAUTH_AUTHORIZATION_URL: `${issuer}/auth`,
    OAUTH_TOKEN_URL: `${issuer}/token`,
    OAUTH_REVOCATION_URL: `${issuer}/token/revocation`,
    OAUTH_CLIENT_ID: CLIENT_ID,
    ...given,
  });
  await serve(config, { catalog, envFile, alsoClose: close });
  const logIn = `any name, no password (${issuer})`;
  console.log(banner(config, { logIn, catalog: options.catalog, envFile }));
}

const catalogOf = async ({ catalog }: Options) =>
  catalog === undefined ? undefined : loadCatalog(catalog);

async function startProvider({ server: gateway, store }: Config, audience: readonly string[]) {
  const { port, baseUrl } = gateway;
  const server = createServer();
  const issuer = `http://localhost:${await listenOnFreePort(server, port + 1)}`;
  const [first = `${baseUrl}/mcp`, ...others] = audience;
  const serveProvider = await load({
    issuer,
    keys: await loadOrCreateProviderKeys(store.dataDir),
    gatewayUrl: baseUrl,
    audience: [first, ...others],
    client: { id: CLIENT_ID },
    accessTokenTtlSeconds: 3600,
  });
  server.on('request', serveProvider);
  async function close(): Promise<void> {
    server.close();
    server.closeAllConnections();
  }
  return { issuer, close };
}

async function load(options: DevProviderOptions): Promise<RequestListener> {
  try {
    return await createDevProvider(options);
  } catch (error) {
    if (getErrorCode(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new StartError([
      'The development provider is missing: npm left out the optional package oidc-provider (--omit=optional, or it could not be fetched). Install again with --include=optional; or set OIDC_ISSUER to a provider of yours, or AUTH_REQUIRED=false for no log-in.',
    ]);
  }
}

/** When `--watch` is killed, what it ran would keep the port, and nobody would know of it. */
function endWithWatcher(): void {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel?.unref();
}
