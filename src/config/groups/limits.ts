// §8: rate limits. A row of GROUPS declares the variables of a limit and builds the limit.
import { flag, integer, oneOf, THIRTY_DAYS_MS } from '../rules.ts';
import { defineSetting, type Read, type Setting } from '../setting.ts';

type LimitsConfig =
  | { readonly enabled: false }
  | {
      readonly enabled: true;
      readonly counting: LimitCounting;
      readonly groups: Readonly<Record<LimitGroup, LimitRule>>;
    };

/** Requests are counted one by one in the store, or in shares of a window that a process leases in advance. */
export type LimitCounting = 'log' | 'leased';

export interface LimitRule {
  readonly group: LimitGroup;
  /** Prefix of the variables that set the limit, named to operators who have to raise it. */
  readonly prefix: string;
  /** Length of the sliding window in milliseconds. */
  readonly windowMs: number;
  /** Maximum requests per window: from one address, from one user (undefined: not counted), and in total. */
  readonly max: {
    readonly ip: number;
    readonly user: number | undefined;
    /** Maximum for the login that a request belongs to, which counts instead of its address (undefined: no login is known). */
    readonly grant: number | undefined;
    readonly global: number;
  };
}

interface LimitRow {
  /** One minute by default. */
  readonly windowMs?: number;
  readonly max: number;
  readonly globalMax: number;
  /** Set if a user's requests can be limited as well. */
  readonly perUser?: true;
  /** Maximum per login, for requests that belong to one. */
  readonly grantMax?: number;
  /** Additional documentation for the maximums per address and per login. */
  readonly details?: {
    readonly ip: string;
    readonly grant: string;
    readonly grantSummary?: string;
  };
}

const count = integer(1, 1_000_000_000);

/** `what` describes the limited requests; the names of the variables begin with `prefix`. */
const defineLimit = (
  prefix: string,
  what: string,
  { windowMs = 60_000, max, globalMax, perUser, grantMax, details }: LimitRow,
) => ({
  prefix,
  windowMs: defineSetting(`${prefix}_RATE_LIMIT_WINDOW_MS`, integer(1, THIRTY_DAYS_MS), {
    default: windowMs,
    summary: `Length of the sliding window for ${what}, in milliseconds.`,
  }),
  ip: defineSetting(`${prefix}_RATE_LIMIT_MAX`, count, {
    default: max,
    summary: `Maximum number of ${what} per address and window.`,
    ...(grantMax !== undefined && {
      details:
        details?.ip ??
        `Those that belong to a known login, and that reach the provider, are counted separately, with the same limit. See also ${prefix}_GRANT_RATE_LIMIT_MAX.`,
    }),
  }),
  global: defineSetting(`${prefix}_GLOBAL_RATE_LIMIT_MAX`, count, {
    default: globalMax,
    summary: `Maximum number of ${what} of all callers per window.`,
  }),
  user:
    perUser &&
    defineSetting(`${prefix}_USER_RATE_LIMIT_MAX`, count, {
      summary: `Maximum number of ${what} per user and window.`,
      details: `Users are counted in addition to addresses. Set this, and raise ${prefix}_RATE_LIMIT_MAX, if many users share one address (an office, a NAT). If unset, users are not counted.`,
    }),
  grant:
    grantMax === undefined
      ? undefined
      : defineSetting(`${prefix}_GRANT_RATE_LIMIT_MAX`, count, {
          default: grantMax,
          summary:
            details?.grantSummary ??
            `Maximum number of ${what} per login and window that reach the provider, whatever address they come from.`,
          details:
            details?.grant ??
            'Refreshes that get the last response of their login again are counted separately, with 100 times the limit.',
        }),
});

/** Endpoints of one group share their windows. */
const GROUPS = {
  mcp: defineLimit('MCP', 'calls of /mcp', { max: 100, globalMax: 10_000, perUser: true }),
  dcr: defineLimit('DCR', 'client registrations', {
    windowMs: 3_600_000,
    max: 10,
    globalMax: 1000,
  }),
  authorize: defineLimit('OAUTH_AUTHORIZE', 'calls of /oauth/authorize', {
    max: 10,
    globalMax: 1000,
  }),
  consent: defineLimit('OAUTH_CONSENT', 'approvals at /oauth/consent', {
    max: 20,
    globalMax: 1000,
  }),
  token: defineLimit(
    'OAUTH_TOKEN',
    'calls of /oauth/token, refreshes aside, and of /oauth/revoke',
    { max: 300, globalMax: 10_000 },
  ),
  // `grantMax` is for requests that may reach the provider; cheap requests (`KnownLogin`) get 100 times as much. Clients that
  // refresh on every session check mostly get a cached response. In broker mode, all requests of a known login are cheap, unless
  // OAUTH_RENEWAL_SECONDS is under 60.
  refresh: defineLimit('OAUTH_REFRESH', 'refreshes at /oauth/token', {
    max: 300,
    globalMax: 100_000,
    grantMax: 30,
  }),
  // Counted per client if the credentials are valid, otherwise per address, so that an attacker who guesses locks out only their
  // own address.
  machine: defineLimit(
    'OAUTH_CLIENT_CREDENTIALS',
    'token requests of clients that log in as themselves',
    {
      max: 60,
      globalMax: 10_000,
      grantMax: 300,
      details: {
        ip: 'Those with valid credentials count per client, whatever address they come from.',
        grant: 'Here, each client in the configuration file counts as one login.',
      },
    },
  ),
  callback: defineLimit('OAUTH_CALLBACK', 'calls of /oauth/callback', { max: 20, globalMax: 1000 }),
  // A provider has few addresses and sends one request per session, and an administrator may end all users' sessions at once.
  logout: defineLimit('BACKCHANNEL_LOGOUT', 'calls of /oauth/backchannel-logout', {
    max: 1000,
    globalMax: 10_000,
    grantMax: 10_000,
    details: {
      ip: 'Logout tokens from the provider are counted separately, whatever address they come from.',
      grantSummary:
        'Maximum number of logout tokens from the provider per window, whatever address they come from.',
      grant: 'No other requests count here, so no other caller can exhaust this limit.',
    },
  }),
  account: defineLimit('ACCOUNT', 'calls of /account', { max: 60, globalMax: 3000 }),
  connections: defineLimit('CONNECTIONS', 'calls of /connections', { max: 60, globalMax: 3000 }),
  approvals: defineLimit('APPROVALS', 'calls of /approvals', { max: 60, globalMax: 3000 }),
  admin: defineLimit('ADMIN', 'calls of /admin/api', { max: 300, globalMax: 3000 }),
};

export type LimitGroup = keyof typeof GROUPS;

const enabled = defineSetting('RATE_LIMIT_ENABLED', flag, {
  default: true,
  summary: '`false` turns off all rate limits.',
});

const counting = defineSetting('RATE_LIMIT_COUNTING', oneOf('log', 'leased'), {
  default: 'log',
  summary: 'How requests are counted: `log` counts each in the store.',
  details:
    '`leased` needs REDIS_URL: a process takes a share of a window in advance, and contacts Redis only for the next share. No limit is ever exceeded; near a limit a request may be refused while another process has a share left. See [Scaling](scaling.md#when-to-switch).',
});

export const limitSettings: readonly Setting<unknown>[] = [
  enabled,
  counting,
  ...Object.values(GROUPS).flatMap(({ windowMs, ip, global, user, grant }) =>
    [windowMs, ip, global, user, grant].filter((setting) => setting !== undefined),
  ),
];

export function readLimitsConfig(read: Read): LimitsConfig {
  if (!read(enabled)) return { enabled: false };
  const groups = Object.entries(GROUPS).map(
    ([group, { prefix, windowMs, ip, user, grant, global }]) => {
      const max = {
        ip: read(ip),
        user: user && read(user),
        grant: grant && read(grant),
        global: read(global),
      };
      return [group, { group, prefix, windowMs: read(windowMs), max }];
    },
  );
  return { enabled: true, counting: read(counting), groups: Object.fromEntries(groups) };
}

/** The variable for the group's limit per user; undefined if requests are not counted per user. */
export const findUserVariable = (group: LimitGroup): string | undefined =>
  GROUPS[group].user?.variable;
