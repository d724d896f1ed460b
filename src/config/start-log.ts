// Writes the log lines at startup: the address, a summary of the configuration, and its risks.

import { isOnThisMachine } from '../platform/address.ts';
import type { Facts, Log } from '../platform/log.ts';
import { NODE_VERSION, PACKAGE_VERSION } from '../platform/own-files.ts';
import type { Config } from './config.ts';
import type { OAuthConfig, ProxyConfig } from './groups/oauth.ts';
import { findStoreKind } from './groups/store.ts';
import { hideQueries } from './setting.ts';

/** Logs that the service is listening, and where. */
export function logListening(config: Config, port: number, log: Log, facts: Facts = {}): void {
  const { host, baseUrl } = config.server;
  log.info('Listening.', {
    host,
    port,
    mcp: `${baseUrl}/mcp`,
    ...summarizeConfig(config),
    ...facts,
    version: PACKAGE_VERSION,
    node: NODE_VERSION,
  });
}

/** A short summary of the configuration, without secrets. */
export const summarizeConfig = ({ auth, oauth, store }: Config) => ({
  mode: auth.required ? oauth.mode : 'without authentication',
  ...(oauth.provider && { issuer: hideQueries(oauth.provider.issuer) }),
  store: findStoreKind(store).describe(store),
});

/** Logs risks at level warn, and choices that may be intended at info: a healthy startup logs nothing at warn. */
export function logStartWarnings(config: Config, log: Log): void {
  const isPublic = !isOnThisMachine(new URL(config.server.baseUrl).hostname);
  for (const find of isPublic ? [...RISKS, ...PUBLIC_RISKS] : RISKS) {
    const warning = find(config);
    if (warning) log.warn(warning);
  }
  if (config.auth.required) {
    if (config.oauth.mode === 'proxy') logWhoCanLogIn(config.oauth, log);
  } else if (isOnThisMachine(config.server.host)) {
    log.info('AUTH_REQUIRED=false accepts all callers on this machine.', {
      host: config.server.host,
    });
  }
}

/** Returns a warning that begins with the variable, or false if there is no risk. */
type FindRisk = (config: Config) => string | false;

const RISKS: readonly FindRisk[] = [
  ({ server }) =>
    !server.isBaseUrlSet &&
    isEveryAddress(server.host) &&
    'BASE_URL is not set, but the service listens on all addresses: clients on other machines are sent to localhost. Set BASE_URL to the public address of the service, or set HOST=127.0.0.1.',
  // This may be intended, for example for a service behind a TLS proxy on the same machine.
  ({ server }) =>
    !server.isBaseUrlSet &&
    server.environment === 'production' &&
    !isEveryAddress(server.host) &&
    'BASE_URL is not set in production: clients are sent to localhost. Set BASE_URL to the public address of the service.',
  ({ auth, server }) =>
    !auth.required &&
    !isOnThisMachine(server.host) &&
    'AUTH_REQUIRED=false accepts everyone who can reach this address. Remove it, or set HOST=127.0.0.1.',
  // A confused deputy: a self-registered client could exploit the user's login with the provider.
  ({ oauth }) =>
    oauth.mode === 'broker' &&
    oauth.consent.kind === 'off' &&
    isOpen(oauth) &&
    'OAUTH_CONSENT=off: anyone who registers a client can use it to log in as any user who follows a link. Set OAUTH_CONSENT=page, or set DCR_ACCESS_TOKEN and CIMD_ALLOWED_HOSTS=none.',
];

/** Checked only if BASE_URL is not on loopback. */
const PUBLIC_RISKS: readonly FindRisk[] = [
  ({ server }) =>
    server.environment !== 'production' &&
    'NODE_ENV is not production: localhost is accepted as Host and Origin, and browsers are not told to use https only. Set NODE_ENV=production.',
  ({ server }) =>
    isPlainHttp(server.baseUrl) &&
    'BASE_URL is an http address: tokens travel unencrypted. Put a TLS proxy in front, and set BASE_URL to the https address.',
  ({ oauth }) =>
    isPlainHttp(oauth.provider?.issuer) &&
    'OIDC_ISSUER is an http address: anyone between the gateway and the provider can replace its keys and forge tokens. Set it to an https address.',
  ({ oauth }) =>
    isPlainHttp(oauth.provider?.jwksUrl) &&
    'OIDC_JWKS_URL is an http address: anyone between the gateway and the provider can replace its keys and forge tokens. Set it to an https address.',
  ({ limits }) =>
    !limits.enabled &&
    'RATE_LIMIT_ENABLED=false: callers are not limited. Remove it; each limit can be raised separately.',
  ({ oauth }) =>
    oauth.clientIdMetadata.allowedHosts.includes('*') &&
    'CIMD_ALLOWED_HOSTS=* accepts clients from any website, and lets callers choose the hosts that the gateway fetches documents from. List the hosts of the clients that you use.',
  ({ oauth }) =>
    oauth.mode === 'broker' &&
    oauth.allowedScopes.includes('*') &&
    'OAUTH_ALLOWED_SCOPES=* lets every client request all permissions that your client has at the provider. List the scopes that all clients may have.',
  ({ http }) =>
    http.trustProxy.kind === 'all' &&
    'TRUST_PROXY=all lets callers claim any address, and rate limits count by address. Set it to the number or the networks of your proxies, or to none.',
  ({ oauth }) =>
    oauth.mode === 'proxy' &&
    isOpen(oauth) &&
    'OAUTH_MODE=proxy with open registration: anyone can register a client, and the provider does not ask users about each of them. Set OAUTH_MODE=broker, which does, or set DCR_ACCESS_TOKEN.',
];

/** True if strangers can register a client or bring their own. */
const isOpen = ({ registration, clientIdMetadata }: OAuthConfig) =>
  registration.accessToken === undefined || clientIdMetadata.allowedHosts.length > 0;

/** Logged at info if OAUTH_MODE=proxy is set explicitly: such a service may only verify tokens issued elsewhere. */
function logWhoCanLogIn(oauth: ProxyConfig, log: Log) {
  const needed = {
    OAUTH_AUTHORIZATION_URL: oauth.endpoints.authorizationUrl,
    OAUTH_TOKEN_URL: oauth.endpoints.tokenUrl,
    OAUTH_CLIENT_ID: oauth.providerClient.id,
  };
  const missing = Object.entries(needed).flatMap(([name, value]) =>
    value === undefined ? [name] : [],
  );
  if (missing.length > 0) {
    log[oauth.isModeSet ? 'info' : 'warn'](
      `Users cannot log in through this service: OAUTH_MODE=proxy needs ${missing.join(', ')}. Set OAUTH_MODE=broker, which discovers the URLs from OIDC_ISSUER and only needs OAUTH_CLIENT_ID, or set the missing variables. If the gateway only has to accept tokens that clients get elsewhere, set OAUTH_MODE=proxy explicitly to turn off this warning.`,
      { missing },
    );
  } else if (oauth.metadataIssuer === 'upstream') {
    log.info(
      'OAUTH_MODE=proxy: clients that compare the issuer of the metadata with this address (MCP SDK 2.x, oauth4webapi, the Go SDK) refuse to log in, and the provider must know the redirect URI of every other client. OAUTH_MODE=broker works with all of them.',
    );
  }
}

const isPlainHttp = (url: string | undefined) =>
  url !== undefined && new URL(url).protocol === 'http:';

/** `0.0.0.0`, `::`, and the long forms of the latter. */
const isEveryAddress = (host: string) => /^(0\.0\.0\.0|[0:]+)$/.test(host);
