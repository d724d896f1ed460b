// What an operator should hear once, at start (decisions 10).
import type { Log } from '../log.ts';
import { isOnThisMachine } from '../loopback.ts';
import type { Config } from './config.ts';

/** Foot-guns at warn; what may well be meant so at info: a healthy start says nothing at warn. */
export function sayAtStart(config: Config, log: Log): void {
  const isPublic = !isOnThisMachine(new URL(config.baseUrl).hostname);
  for (const { isThere, say } of isPublic ? [...ANYWHERE, ...IN_PUBLIC] : ANYWHERE) {
    if (isThere(config)) log.warn(say);
  }
  sayWhoCanLogIn(config, log);
  if (!config.authRequired && isOnThisMachine(config.host)) {
    log.info('AUTH_REQUIRED=false lets everybody in on this machine.', { host: config.host });
  }
}

interface FootGun {
  readonly isThere: (config: Config) => boolean;
  /** Begins with the variable. */
  readonly say: string;
}

const ANYWHERE: readonly FootGun[] = [
  {
    isThere: ({ baseUrlIsSet, host }) => !baseUrlIsSet && isEveryAddress(host),
    say: 'BASE_URL is not set, while the service listens on all addresses: clients on other machines are sent to localhost. Set BASE_URL to the public address of the service, or HOST=127.0.0.1.',
  },
  {
    isThere: ({ authRequired, host }) => !authRequired && !isOnThisMachine(host),
    say: 'AUTH_REQUIRED=false lets everybody in who reaches this address. Remove it, or set HOST=127.0.0.1.',
  },
  {
    // The confused deputy: whoever registers a client could ride on a user's log-in at the provider.
    isThere: ({ oauthMode, oauthConsent, ...config }) =>
      oauthMode === 'broker' && oauthConsent === 'off' && isOpen(config),
    say: 'OAUTH_CONSENT=off: whoever registers a client can log in by it as any user who follows a link. Set OAUTH_CONSENT=page, or DCR_ACCESS_TOKEN and CIMD_ALLOWED_HOSTS=none.',
  },
];

/** Only where BASE_URL is not on loopback. */
const IN_PUBLIC: readonly FootGun[] = [
  {
    isThere: ({ nodeEnv }) => nodeEnv !== 'production',
    say: 'NODE_ENV is not production: localhost is accepted as Host and Origin, and browsers are not told to insist on https. Set NODE_ENV=production.',
  },
  {
    isThere: ({ baseUrl }) => isPlainHttp(baseUrl),
    say: 'BASE_URL is an http address: tokens travel unencrypted. Put TLS in front and set BASE_URL to the https address.',
  },
  {
    isThere: ({ oidcIssuer }) => isPlainHttp(oidcIssuer),
    say: "OIDC_ISSUER is an http address: anybody on the way to it can replace the provider's keys and forge tokens. Set it to an https address.",
  },
  {
    isThere: ({ oidcJwksUrl }) => isPlainHttp(oidcJwksUrl),
    say: "OIDC_JWKS_URL is an http address: anybody on the way to it can replace the provider's keys and forge tokens. Set it to an https address.",
  },
  {
    isThere: ({ rateLimitEnabled }) => !rateLimitEnabled,
    say: 'RATE_LIMIT_ENABLED=false: nothing limits how often anybody may call. Remove it; the limits can be raised one by one.',
  },
  {
    isThere: ({ cimdAllowedHosts }) => cimdAllowedHosts.includes('*'),
    say: 'CIMD_ALLOWED_HOSTS=* lets every website be a client, and callers choose the hosts that this service asks for documents. List the hosts of the clients that you use.',
  },
  {
    isThere: ({ oauthAllowedScopes }) => oauthAllowedScopes.includes('*'),
    say: 'OAUTH_ALLOWED_SCOPES=* lets every client ask for all that your client may have at the provider. List the scopes that all clients may have.',
  },
  {
    isThere: ({ trustProxy }) => trustProxy.kind === 'all',
    say: 'TRUST_PROXY=all believes anybody about their address, which rate limits go by. Set it to the number or the networks of your proxies, or to none.',
  },
  {
    isThere: ({ oauthMode, ...config }) => oauthMode === 'proxy' && isOpen(config),
    say: 'OAUTH_MODE=proxy with open registration: anybody can register a client, and the provider does not ask the user again for each. Set OAUTH_MODE=broker, which does, or DCR_ACCESS_TOKEN.',
  },
];

/** Whether anybody can bring a client along. */
const isOpen = ({
  dcrAccessToken,
  cimdAllowedHosts,
}: Pick<Config, 'dcrAccessToken' | 'cimdAllowedHosts'>): boolean =>
  dcrAccessToken === undefined || cimdAllowedHosts.length > 0;

/** At info: a service that only checks tokens from elsewhere is as it should be. */
function sayWhoCanLogIn(config: Config, log: Log): void {
  if (config.oauthMode === 'broker' || !config.authRequired) return;
  const needed = {
    OAUTH_AUTHORIZATION_URL: config.oauthAuthorizationUrl,
    OAUTH_TOKEN_URL: config.oauthTokenUrl,
    OAUTH_CLIENT_ID: config.oauthClientId,
  };
  const missing = Object.entries(needed).flatMap(([name, value]) =>
    value === undefined ? [name] : [],
  );
  if (missing.length > 0) {
    log.info(
      `Nobody can log in through this service: OAUTH_MODE=proxy needs ${missing.join(', ')}. Set OAUTH_MODE=broker, which finds the URLs by OIDC_ISSUER and needs OAUTH_CLIENT_ID only, or set what is missing. Without it the service accepts tokens that clients got elsewhere.`,
      { missing },
    );
  } else if (config.oauthMetadataIssuer === 'upstream') {
    log.info(
      'OAUTH_MODE=proxy: clients that compare the issuer of the metadata with this address (MCP SDK 2.x, oauth4webapi, the Go SDK) will not log in, and the provider must know the redirect URI of each that does. OAUTH_MODE=broker lets all of them in.',
    );
  }
}

const isPlainHttp = (url: string | undefined): boolean =>
  url !== undefined && new URL(url).protocol === 'http:';

/** `0.0.0.0`, `::`, and the long forms of the latter. */
const isEveryAddress = (host: string): boolean => /^(0\.0\.0\.0|[0:]+)$/.test(host);
