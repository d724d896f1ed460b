// §8: the rate limits. A row of GROUPS makes the variables of a limit, and the limit itself.
import { flag, integer, THIRTY_DAYS_MS } from '../rules.ts';
import { defineSetting, type Read, type Setting } from '../setting.ts';

export type LimitsConfig =
  | { readonly enabled: false }
  | { readonly enabled: true; readonly groups: Readonly<Record<LimitGroup, LimitRule>> };

export interface LimitRule {
  readonly group: LimitGroup;
  /** What the variables that set it begin with, for whoever has to raise it. */
  readonly prefix: string;
  /** Length of the sliding window in milliseconds. */
  readonly windowMs: number;
  /** Requests per window of an address, of a user (undefined: not counted), of all callers. */
  readonly max: {
    readonly ip: number;
    readonly user: number | undefined;
    /** Of a login that the request belongs to, in place of its address (undefined: none is known). */
    readonly grant: number | undefined;
    readonly global: number;
  };
}

interface LimitRow {
  readonly group: string;
  readonly prefix: string;
  /** What is limited. */
  readonly what: string;
  readonly windowMs: number;
  readonly max: number;
  readonly globalMax: number;
  /** Whether requests of a user can be limited, too. */
  readonly perUser?: true;
  /** The most of one login, where requests belong to one. */
  readonly grantMax?: number;
}

const GROUPS = [
  {
    group: 'mcp',
    prefix: 'MCP',
    what: 'calls of /mcp',
    windowMs: 60_000,
    max: 100,
    globalMax: 10_000,
    perUser: true,
  },
  {
    group: 'dcr',
    prefix: 'DCR',
    what: 'client registrations',
    windowMs: 3_600_000,
    max: 10,
    globalMax: 1000,
  },
  {
    group: 'authorize',
    prefix: 'OAUTH_AUTHORIZE',
    what: 'calls of /oauth/authorize',
    windowMs: 60_000,
    max: 10,
    globalMax: 1000,
  },
  {
    group: 'consent',
    prefix: 'OAUTH_CONSENT',
    what: 'approvals at /oauth/consent',
    windowMs: 60_000,
    max: 20,
    globalMax: 1000,
  },
  {
    group: 'token',
    prefix: 'OAUTH_TOKEN',
    what: 'calls of /oauth/token, refreshes aside, and of /oauth/revoke',
    windowMs: 60_000,
    max: 300,
    globalMax: 10_000,
  },
  {
    group: 'refresh',
    prefix: 'OAUTH_REFRESH',
    what: 'refreshes at /oauth/token',
    windowMs: 60_000,
    max: 300,
    globalMax: 100_000,
    // Of what reaches the provider. Clients that refresh at every look at a session mostly get the last answer again.
    grantMax: 30,
  },
  {
    group: 'callback',
    prefix: 'OAUTH_CALLBACK',
    what: 'calls of /oauth/callback',
    windowMs: 60_000,
    max: 20,
    globalMax: 1000,
  },
  {
    group: 'admin',
    prefix: 'ADMIN',
    what: 'calls of /admin/api',
    windowMs: 60_000,
    max: 300,
    globalMax: 3000,
  },
] as const satisfies readonly LimitRow[];

/** Endpoints of one group share their windows. */
export type LimitGroup = (typeof GROUPS)[number]['group'];

const MAX = 1_000_000_000;

const defineWindow = ({ prefix, what, windowMs }: LimitRow) =>
  defineSetting(`${prefix}_RATE_LIMIT_WINDOW_MS`, integer(1, THIRTY_DAYS_MS), {
    default: { value: windowMs },
    summary: `Length of the sliding window for ${what}, in milliseconds.`,
  });

const defineMax = ({ prefix, what, max, grantMax }: LimitRow) =>
  defineSetting(`${prefix}_RATE_LIMIT_MAX`, integer(1, MAX), {
    default: { value: max },
    summary: `The most ${what} per address and window.`,
    ...(grantMax !== undefined && {
      details: `Those that the gateway can match with a login, and that reach the provider, count apart from the others, with the same limit. See ${prefix}_GRANT_RATE_LIMIT_MAX, too.`,
    }),
  });

const defineGrantMax = ({ prefix, what }: LimitRow, grantMax: number) =>
  defineSetting(`${prefix}_GRANT_RATE_LIMIT_MAX`, integer(1, MAX), {
    default: { value: grantMax },
    summary: `The most ${what} per login and window that reach the provider, whatever address they come from.`,
    details:
      'Refreshes that get the last answer of their login again count apart, up to 100 times as many.',
  });

const defineGlobalMax = ({ prefix, what, globalMax }: LimitRow) =>
  defineSetting(`${prefix}_GLOBAL_RATE_LIMIT_MAX`, integer(1, MAX), {
    default: { value: globalMax },
    summary: `The most ${what} of all callers per window.`,
  });

const defineUserMax = ({ prefix, what }: LimitRow) =>
  defineSetting(`${prefix}_USER_RATE_LIMIT_MAX`, integer(1, MAX), {
    summary: `The most ${what} per user and window.`,
    details: `Users are counted beside addresses. Set it, and raise ${prefix}_RATE_LIMIT_MAX, if many users share one address (an office, a NAT). If unset, users are not counted.`,
  });

const enabled = defineSetting('RATE_LIMIT_ENABLED', flag, {
  default: { value: true },
  summary: '`false` turns off all rate limits.',
});

const defineLimit = (row: LimitRow): readonly Setting<unknown>[] => [
  defineWindow(row),
  defineMax(row),
  defineGlobalMax(row),
  ...(row.perUser ? [defineUserMax(row)] : []),
  ...(row.grantMax === undefined ? [] : [defineGrantMax(row, row.grantMax)]),
];

export const limitSettings: readonly Setting<unknown>[] = [enabled, ...GROUPS.flatMap(defineLimit)];

export function readLimitsConfig(read: Read): LimitsConfig {
  if (!read(enabled)) return { enabled: false };
  const groups: Partial<Record<LimitGroup, LimitRule>> = {};
  for (const row of GROUPS) groups[row.group] = readRule(row, row.group, read);
  if (!isComplete(groups)) throw new Error('A limit group has no row');
  return { enabled: true, groups };
}

const readRule = (row: LimitRow, group: LimitGroup, read: Read): LimitRule => ({
  group,
  prefix: row.prefix,
  windowMs: read(defineWindow(row)),
  max: {
    ip: read(defineMax(row)),
    user: row.perUser && read(defineUserMax(row)),
    grant: row.grantMax === undefined ? undefined : read(defineGrantMax(row, row.grantMax)),
    global: read(defineGlobalMax(row)),
  },
});

/** The variable that sets a limit per user of this group; undefined where users are not counted. */
export function findUserVariable(group: LimitGroup): string | undefined {
  const row: LimitRow | undefined = GROUPS.find((one) => one.group === group);
  return row?.perUser && `${row.prefix}_USER_RATE_LIMIT_MAX`;
}

const isComplete = (
  groups: Partial<Record<LimitGroup, LimitRule>>,
): groups is Record<LimitGroup, LimitRule> => GROUPS.every(({ group }) => groups[group]);
