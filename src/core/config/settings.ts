// Spec §5, §8 and decisions 1: every environment variable once. The settings page and
// .env.example are generated from this table.
import { LOG_LEVELS } from '../log.ts';
import type { Config } from './config.ts';
import {
  anyText,
  baseUrl,
  flag,
  host,
  httpUrl,
  integer,
  list,
  listenAddress,
  oneOf,
  origin,
  type Rule,
  redisUrl,
  trustProxy,
} from './rules.ts';

export interface Setting<T> {
  readonly variable: string;
  readonly rule: Rule<NonNullable<T>>;
  /** The value when the variable is unset; settings above it in the table may decide. */
  readonly fallback: (above: Config) => T;
  /** The default as shown in documentation; empty when there is none. */
  readonly shown: string;
  readonly help: string;
  readonly chapter: Chapter;
  /** Never printed, not even when it is wrong. */
  readonly secret?: true;
}

export const CHAPTERS = [
  'Service',
  'Store and sessions',
  'Tokens',
  'OAuth proxy',
  'Browsers and proxies',
  'Rate limits',
] as const;
type Chapter = (typeof CHAPTERS)[number];

const ONE_YEAR_SECONDS = 31_536_000;
const ONE_DAY_MS = 86_400_000;

const urls = 'a comma list of URLs or names';

export const settings: { readonly [Name in keyof Config]: Setting<Config[Name]> } = {
  port: {
    variable: 'PORT',
    rule: integer(1, 65_535),
    fallback: () => 3000,
    shown: '3000',
    help: 'Port to listen on.',
    chapter: 'Service',
  },
  baseUrl: {
    variable: 'BASE_URL',
    rule: baseUrl,
    fallback: ({ port }) => `http://localhost:${port}`,
    shown: 'http://localhost:<PORT>',
    help: 'Public address of the service. Every URL handed out derives from it, never from a request header; a trailing slash is dropped.',
    chapter: 'Service',
  },
  authRequired: {
    variable: 'AUTH_REQUIRED',
    rule: flag,
    fallback: () => true,
    shown: 'true',
    help: 'false lets every caller in without a token. For local development only.',
    chapter: 'Service',
  },
  host: {
    variable: 'HOST',
    rule: listenAddress,
    fallback: ({ authRequired }) => (authRequired ? '0.0.0.0' : '127.0.0.1'),
    shown: '0.0.0.0 (127.0.0.1 with AUTH_REQUIRED=false)',
    help: 'Address to listen on.',
    chapter: 'Service',
  },
  nodeEnv: {
    variable: 'NODE_ENV',
    rule: anyText,
    fallback: () => 'development',
    shown: 'development',
    help: 'Shown as environment by config://server. production turns off the allowances for localhost, and turns on HSTS where BASE_URL is https.',
    chapter: 'Service',
  },
  logLevel: {
    variable: 'LOG_LEVEL',
    rule: oneOf(...LOG_LEVELS),
    fallback: () => 'info',
    shown: 'info',
    help: 'error, warn, info or debug. debug logs every request.',
    chapter: 'Service',
  },
  serviceDisplayName: {
    variable: 'SERVICE_DISPLAY_NAME',
    rule: anyText,
    fallback: () => 'Postern',
    shown: 'Postern',
    help: 'Name in the answer of the service_ping tool.',
    chapter: 'Service',
  },
  metricsEnabled: {
    variable: 'METRICS_ENABLED',
    rule: flag,
    fallback: () => false,
    shown: 'false',
    help: 'Serves OpenMetrics text at /metrics, without authentication.',
    chapter: 'Service',
  },
  maxBodyBytes: {
    variable: 'MAX_BODY_BYTES',
    rule: integer(1024, 104_857_600),
    fallback: () => 1_048_576,
    shown: '1048576',
    help: 'Largest request body, in bytes; more is answered with 413.',
    chapter: 'Service',
  },
  shutdownDelayMs: {
    variable: 'SHUTDOWN_DELAY_MS',
    rule: integer(0, 600_000),
    fallback: () => 0,
    shown: '0',
    help: 'Milliseconds to keep serving after SIGTERM while /health/ready already says not_ready, so that a load balancer can turn away first.',
    chapter: 'Service',
  },

  redisUrl: {
    variable: 'REDIS_URL',
    rule: redisUrl,
    fallback: () => undefined,
    shown: '',
    help: 'Redis or Valkey shared by all replicas: redis:// or rediss:// (TLS); ?cluster=true for Redis Cluster. Unset: the embedded store in DATA_DIR.',
    chapter: 'Store and sessions',
    secret: true,
  },
  dataDir: {
    variable: 'DATA_DIR',
    rule: anyText,
    fallback: () => './data',
    shown: './data',
    help: 'Folder of the embedded store; one process at a time.',
    chapter: 'Store and sessions',
  },
  sessionKeyPrefix: {
    variable: 'MCP_SESSION_KEY_PREFIX',
    rule: anyText,
    fallback: () => 'mcp:session:',
    shown: 'mcp:session:',
    help: 'Prefix of the keys of MCP sessions.',
    chapter: 'Store and sessions',
  },
  sessionTtlSeconds: {
    variable: 'MCP_SESSION_TTL_SECONDS',
    rule: integer(60, ONE_YEAR_SECONDS),
    fallback: () => 86_400,
    shown: '86400',
    help: 'Seconds a session lives without a request; every accepted request starts them anew.',
    chapter: 'Store and sessions',
  },

  oidcIssuer: {
    variable: 'OIDC_ISSUER',
    rule: httpUrl,
    fallback: () => undefined,
    shown: '',
    help: "The provider's issuer, exactly as in the iss claim of its tokens. Required while AUTH_REQUIRED=true.",
    chapter: 'Tokens',
  },
  oidcAudience: {
    variable: 'OIDC_AUDIENCE',
    rule: list(anyText, urls),
    fallback: ({ baseUrl }) => [baseUrl, `${baseUrl}/`, `${baseUrl}/mcp`],
    shown: 'BASE_URL, BASE_URL with a slash, and BASE_URL/mcp',
    help: 'Comma list of audiences; a token is accepted when its aud is or contains one of them.',
    chapter: 'Tokens',
  },
  oidcJwksUrl: {
    variable: 'OIDC_JWKS_URL',
    rule: httpUrl,
    fallback: () => undefined,
    shown: "found by the issuer's discovery document",
    help: "URL of the provider's key set.",
    chapter: 'Tokens',
  },
  oidcClockToleranceSeconds: {
    variable: 'OIDC_CLOCK_TOLERANCE_SECONDS',
    rule: integer(0, 60),
    fallback: () => 5,
    shown: '5',
    help: "Seconds by which the provider's clock may differ (exp and nbf).",
    chapter: 'Tokens',
  },

  oauthAuthorizationUrl: {
    variable: 'OAUTH_AUTHORIZATION_URL',
    rule: httpUrl,
    fallback: () => undefined,
    shown: '',
    help: "The provider's authorization endpoint. A query in it is kept and wins over the client's parameters (for example access_type=offline for Google). Unset: /oauth/authorize answers server_error.",
    chapter: 'OAuth proxy',
  },
  oauthTokenUrl: {
    variable: 'OAUTH_TOKEN_URL',
    rule: httpUrl,
    fallback: () => undefined,
    shown: '',
    help: "The provider's token endpoint. Unset: /oauth/token answers server_error.",
    chapter: 'OAuth proxy',
  },
  oauthRevocationUrl: {
    variable: 'OAUTH_REVOCATION_URL',
    rule: httpUrl,
    fallback: () => undefined,
    shown: '',
    help: "The provider's revocation endpoint (RFC 7009). Unset: /oauth/revoke answers server_error.",
    chapter: 'OAuth proxy',
  },
  oauthClientId: {
    variable: 'OAUTH_CLIENT_ID',
    rule: {
      parse: (text) => (text.startsWith('svc-') ? undefined : text),
      allowed: 'the client id registered at the provider; svc- is the prefix of dynamic clients',
    },
    fallback: () => undefined,
    shown: '',
    help: 'The client registered at the provider; dynamic (svc-) clients ride on it.',
    chapter: 'OAuth proxy',
  },
  oauthClientSecret: {
    variable: 'OAUTH_CLIENT_SECRET',
    rule: anyText,
    fallback: () => undefined,
    shown: '',
    help: 'Its secret, sent to the provider only in the name of dynamic clients.',
    chapter: 'OAuth proxy',
    secret: true,
  },
  oauthClientAuth: {
    variable: 'OAUTH_CLIENT_AUTH',
    rule: oneOf('post', 'basic'),
    fallback: () => 'post',
    shown: 'post',
    help: 'How the secret is sent: post (client_secret_post) or basic (client_secret_basic).',
    chapter: 'OAuth proxy',
  },
  dcrClientTtlSeconds: {
    variable: 'DCR_CLIENT_TTL',
    rule: integer(60, ONE_YEAR_SECONDS * 10),
    fallback: () => 2_592_000,
    shown: '2592000',
    help: 'Seconds until a dynamically registered client must register again (30 days).',
    chapter: 'OAuth proxy',
  },

  allowedOrigins: {
    variable: 'ALLOWED_ORIGINS',
    rule: list(origin, 'a comma list of origins such as https://app.example.com'),
    fallback: () => [],
    shown: '',
    help: "Origins of browser clients. BASE_URL's own is always allowed; http://localhost:* and http://127.0.0.1:* are unless NODE_ENV=production.",
    chapter: 'Browsers and proxies',
  },
  allowedHosts: {
    variable: 'ALLOWED_HOSTS',
    rule: list(host, 'a comma list of hosts; without a port any port is meant'),
    fallback: () => [],
    shown: '',
    help: "Further values of the Host header beside BASE_URL's; without a port, any port. localhost, 127.0.0.1 and [::1] are allowed unless NODE_ENV=production.",
    chapter: 'Browsers and proxies',
  },
  trustProxy: {
    variable: 'TRUST_PROXY',
    rule: trustProxy,
    fallback: () => ({ kind: 'all' }),
    shown: 'all',
    help: 'Whom to believe about the address of the caller. all: the first entry of X-Forwarded-For, else X-Real-IP. none: the socket. A number n: the n-th address from the right of X-Forwarded-For. Addresses and CIDR ranges: those proxies are skipped from the right.',
    chapter: 'Browsers and proxies',
  },

  rateLimitEnabled: {
    variable: 'RATE_LIMIT_ENABLED',
    rule: flag,
    fallback: () => true,
    shown: 'true',
    help: 'false switches all rate limits off.',
    chapter: 'Rate limits',
  },
  ...limitGroup('mcp', 'MCP', 'calls of /mcp', 60_000, 100, 10_000),
  ...limitGroup('dcr', 'DCR', 'client registrations', 3_600_000, 10, 1000),
  ...limitGroup('authorize', 'OAUTH_AUTHORIZE', 'calls of /oauth/authorize', 60_000, 10, 1000),
};

type GroupSettings<Group extends string> = {
  readonly [Name in
    | `${Group}RateLimitWindowMs`
    | `${Group}RateLimitMax`
    | `${Group}GlobalRateLimitMax`]: Setting<number>;
};

/** Spec §8: the three variables of a limit group; the global one has GLOBAL before RATE. */
function limitGroup<const Group extends 'mcp' | 'dcr' | 'authorize'>(
  group: Group,
  prefix: string,
  what: string,
  windowMs: number,
  max: number,
  globalMax: number,
): GroupSettings<Group> {
  const setting = (variable: string, high: number, value: number, help: string) => ({
    variable,
    rule: integer(1, high),
    fallback: () => value,
    shown: String(value),
    help,
    chapter: 'Rate limits' as const,
  });
  return {
    [`${group}RateLimitWindowMs`]: setting(
      `${prefix}_RATE_LIMIT_WINDOW_MS`,
      ONE_DAY_MS * 30,
      windowMs,
      `Sliding window for ${what}, in milliseconds.`,
    ),
    [`${group}RateLimitMax`]: setting(
      `${prefix}_RATE_LIMIT_MAX`,
      1_000_000_000,
      max,
      `Most ${what} per address and window.`,
    ),
    [`${group}GlobalRateLimitMax`]: setting(
      `${prefix}_GLOBAL_RATE_LIMIT_MAX`,
      1_000_000_000,
      globalMax,
      `Most ${what} of all callers per window.`,
    ),
  } as unknown as GroupSettings<Group>;
}
