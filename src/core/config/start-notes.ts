// What an operator should hear once, at start.
import type { Log } from '../log.ts';
import type { Config } from './config.ts';

/** Risks at warn; what may well be meant so at info: a healthy start says nothing at warn. */
export function sayAtStart(config: Config, log: Log): void {
  warnOfRisks(config, log);
  sayWhoCanLogIn(config, log);
  warnOfOpenRegistration(config, log);
}

/** The confused deputy: whoever registers a client could ride on a user's log-in at the provider. */
function warnOfOpenRegistration(config: Config, log: Log): void {
  const { oauthMode, oauthConsent, dcrAccessToken, cimdAllowedHosts } = config;
  const isOpen = dcrAccessToken === undefined || cimdAllowedHosts.length > 0;
  if (oauthMode !== 'broker' || oauthConsent !== 'off' || !isOpen) return;
  log.warn(
    'OAUTH_CONSENT=off: whoever registers a client can log in by it as any user who follows a link. Set OAUTH_CONSENT=page, or DCR_ACCESS_TOKEN and CIMD_ALLOWED_HOSTS=none.',
  );
}

function warnOfRisks({ host, trustProxy, authRequired }: Config, log: Log): void {
  if (isLoopback(host)) {
    if (!authRequired) log.info('AUTH_REQUIRED=false lets everybody in on this machine.', { host });
    return;
  }
  if (trustProxy.kind === 'all') {
    log.warn(
      'TRUST_PROXY=all believes anybody about their address, which rate limits go by. Set it to the number or the networks of your proxies, or to none.',
    );
  }
  if (!authRequired) {
    log.warn('AUTH_REQUIRED=false lets everybody in who reaches this address.', { host });
  }
}

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
      'Nobody can log in through this service while these are not set; only tokens from elsewhere are of use.',
      { missing },
    );
  } else if (config.oauthMetadataIssuer === 'upstream') {
    log.info(
      'OAUTH_MODE=proxy: clients that compare the issuer of the metadata with this address (MCP SDK 2.x, oauth4webapi, the Go SDK) will not log in, and the provider must know the redirect URI of each that does. OAUTH_MODE=broker lets all of them in.',
    );
  }
}

const isLoopback = (host: string) => /^(localhost|::1|127\.[\d.]+)$/.test(host);
