// How people log in: the mode, consent, and which clients are let in.
import { isLoopbackHost } from '../loopback.ts';
import type { Config, OAuthSettings } from './config.ts';
import { flag, integer, list, oneOf, type Rule, scope } from './rules.ts';
import type { Setting } from './setting.ts';

const NONE = 'none';

/** A list that may be empty by the word `none`: an empty variable counts as unset. */
const listOrNone = (item: Rule<string>, allowed: string): Rule<readonly string[]> => {
  const some = list(item, allowed);
  return { parse: (text) => (text === NONE ? [] : some.parse(text)), allowed };
};

const documentHost: Rule<string> = {
  parse: (text) => (text === '*' || /^([a-z0-9-]+\.)+[a-z0-9-]+$/.test(text) ? text : undefined),
  allowed: 'a host name',
};

/** Browsers run these, or read files by them: never a way back to a client. */
const DANGEROUS = new Set([
  'about',
  'blob',
  'data',
  'file',
  'filesystem',
  'ftp',
  'http',
  'https',
  'javascript',
  'jar',
  'mailto',
  'vbscript',
  'view-source',
  'ws',
  'wss',
]);

const scheme: Rule<string> = {
  parse: (text) => (/^[a-z][a-z0-9+.-]*$/.test(text) && !DANGEROUS.has(text) ? text : undefined),
  allowed: 'a scheme',
};

const MIN_SECRET_BYTES = 32;

const secret: Rule<string> = {
  parse: (text) => (Buffer.byteLength(text) >= MIN_SECRET_BYTES ? text : undefined),
  allowed: 'a secret',
};

const accessToken: Rule<string> = {
  parse: (text) => (/^[\x21-\x7e]{16,}$/.test(text) ? text : undefined),
  allowed: 'at least 16 printable ASCII characters',
};

const DOCUMENT_HOSTS = ['claude.ai', 'vscode.dev', 'chatgpt.com', 'zed.dev', 'cursor.com'];
const SCOPES = ['openid', 'profile', 'email', 'offline_access'];
const SCHEMES = ['cursor', 'vscode', 'vscode-insiders', 'windsurf', 'claude'];

const THIRTY_DAYS_SECONDS = 2_592_000;
const NINETY_DAYS_SECONDS = 7_776_000;
const ONE_YEAR_SECONDS = 31_536_000;

const isBroker = ({ oauthMode }: Config): boolean => oauthMode === 'broker';
const chapter = 'Log-in';

export const oauthSettings: {
  readonly [Name in keyof OAuthSettings]: Setting<OAuthSettings[Name]>;
} = {
  oauthMode: {
    variable: 'OAUTH_MODE',
    rule: oneOf('proxy', 'broker'),
    fallback: () => 'proxy',
    shown: 'proxy',
    help: 'broker (recommended): the gateway is its own issuer, and the provider knows one redirect URI, BASE_URL/oauth/callback. proxy: clients are sent to the provider, which must know the redirect URI of each.',
    chapter,
  },
  oauthConsent: {
    variable: 'OAUTH_CONSENT',
    rule: oneOf('page', 'off'),
    fallback: (above) => (isBroker(above) ? 'page' : 'off'),
    shown: 'page with OAUTH_MODE=broker, else off',
    help: 'page asks the user before a client may log in. off leaves that to the provider, which sees one client only.',
    chapter,
  },
  oauthConsentTtlSeconds: {
    variable: 'OAUTH_CONSENT_TTL_SECONDS',
    rule: integer(0, ONE_YEAR_SECONDS),
    fallback: () => THIRTY_DAYS_SECONDS,
    shown: String(THIRTY_DAYS_SECONDS),
    help: 'Seconds for which an approval is remembered, per browser, client and redirect URI; 0 asks every time.',
    chapter,
  },
  oauthPopups: {
    variable: 'OAUTH_POPUPS',
    rule: flag,
    fallback: () => false,
    shown: 'false',
    help: 'true lets web clients log in through a popup: Cross-Origin-Opener-Policy is unsafe-none on the pages of the log-in.',
    chapter,
  },
  oauthAllowedScopes: {
    variable: 'OAUTH_ALLOWED_SCOPES',
    rule: list(scope, 'a comma list of scopes, or * for any'),
    fallback: () => SCOPES,
    shown: SCOPES.join(','),
    help: 'Scopes that clients may ask for with OAUTH_MODE=broker; others are left out. Every client uses what your client at the provider may do: add only what all of them may have. Those of OAUTH_ADDED_SCOPES are asked for in any case.',
    chapter,
  },
  oauthStateSecrets: {
    variable: 'OAUTH_STATE_SECRET',
    rule: list(secret, `a comma list of secrets of at least ${MIN_SECRET_BYTES} bytes each`),
    fallback: () => undefined,
    shown: 'made and kept in DATA_DIR with the embedded store',
    help: 'Seals what a log-in leaves in the store, requestState, and messages between replicas. The first of several seals, all open: put a new one in front, and take the old one away an hour later. Required with REDIS_URL where OAUTH_MODE=broker or OAUTH_CONSENT=page.',
    chapter,
    secret: true,
  },
  oauthRefreshTtlSeconds: {
    variable: 'OAUTH_REFRESH_TTL_SECONDS',
    rule: integer(3600, ONE_YEAR_SECONDS * 10),
    fallback: () => NINETY_DAYS_SECONDS,
    shown: String(NINETY_DAYS_SECONDS),
    help: 'Seconds for which the gateway remembers which client a refresh token belongs to; renewed on use. OAUTH_MODE=broker only.',
    chapter,
  },
  oauthMetadataIssuer: {
    variable: 'OAUTH_METADATA_ISSUER',
    rule: oneOf('self', 'upstream'),
    fallback: (above) => (isBroker(above) ? 'self' : 'upstream'),
    shown: 'upstream (self with OAUTH_MODE=broker)',
    help: 'Which issuer the metadata names with OAUTH_MODE=proxy: the provider (upstream), or the gateway (self), on which clients of the current generation insist.',
    chapter,
  },
  cimdAllowedHosts: {
    variable: 'CIMD_ALLOWED_HOSTS',
    rule: listOrNone(documentHost, 'a comma list of host names, * for any, or none'),
    fallback: (above) => (isBroker(above) ? DOCUMENT_HOSTS : []),
    shown: `${DOCUMENT_HOSTS.join(', ')} with OAUTH_MODE=broker, else none`,
    help: 'Hosts whose client ID metadata documents (CIMD) are believed: a client_id that is an https URL there needs no registration.',
    chapter,
  },
  oauthLoopbackAnyPort: {
    variable: 'OAUTH_LOOPBACK_ANY_PORT',
    rule: flag,
    fallback: isBroker,
    shown: 'true with OAUTH_MODE=broker, else false',
    help: 'A client registered for a redirect URI on localhost, 127.0.0.1 or [::1] may come back to another port (RFC 8252 §7.3).',
    chapter,
  },
  oauthRedirectSchemes: {
    variable: 'OAUTH_REDIRECT_SCHEMES',
    rule: listOrNone(scheme, 'a comma list of private-use schemes such as cursor, or none'),
    fallback: (above) => (isBroker(above) ? SCHEMES : []),
    shown: `${SCHEMES.join(', ')} with OAUTH_MODE=broker, else none`,
    help: 'Schemes beside https that a redirect URI may have (RFC 8252 §7.1).',
    chapter,
  },
  dcrRenew: {
    variable: 'DCR_RENEW',
    rule: flag,
    fallback: isBroker,
    shown: 'true with OAUTH_MODE=broker, else false',
    help: 'Every token that a registered client gets starts its DCR_CLIENT_TTL anew.',
    chapter,
  },
  dcrAccessToken: {
    variable: 'DCR_ACCESS_TOKEN',
    rule: accessToken,
    fallback: () => undefined,
    shown: '',
    help: 'Registration then needs this bearer token (RFC 7591 §3). Few clients can send one.',
    chapter,
    secret: true,
  },
};

/** What does not go together, one sentence each. A value that was refused in `env` is not missing. */
export function oauthProblems(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const { oauthMode, oauthConsent, baseUrl, redisUrl } = config;
  const problems: string[] = [];
  if (oauthMode === 'broker') {
    if (!isOwnIssuer(baseUrl)) {
      problems.push(
        `BASE_URL: ${JSON.stringify(baseUrl)} is not allowed with OAUTH_MODE=broker; allowed is https, or http on localhost, 127.0.0.1 or [::1].`,
      );
    }
    if (!env.OAUTH_CLIENT_ID) {
      problems.push(
        'OAUTH_CLIENT_ID is missing: OAUTH_MODE=broker needs the client registered at the provider.',
      );
    }
    if (!env.OIDC_ISSUER && !config.authRequired) {
      problems.push('OIDC_ISSUER is missing: OAUTH_MODE=broker needs it.');
    }
  }
  const seals = oauthMode === 'broker' || oauthConsent === 'page';
  if (seals && redisUrl !== undefined && !env.OAUTH_STATE_SECRET) {
    problems.push(
      'OAUTH_STATE_SECRET is missing: all replicas need the same one (at least 32 bytes; for example the output of openssl rand -base64 48).',
    );
  }
  return problems;
}

/** RFC 8414 §2: an issuer is https; on this machine http does. */
function isOwnIssuer(baseUrl: string): boolean {
  const { protocol, hostname } = new URL(baseUrl);
  return protocol === 'https:' || isLoopbackHost(hostname);
}
