// §8: what the limits per address leave for each of many users behind one address, as in an office.
import type { LimitRule } from '../../../config/groups/limits.ts';
import { isOnThisMachine } from '../../../platform/address.ts';
import { type Finding, ok, warning } from '../finding.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

const PEOPLE = 10;

/** What one person easily needs: a model that works makes many calls, and people have several clients. */
const NEEDED = { callsPerMinute: 60, registrationsPerHour: 5 };

export async function checkLimits({ config }: SettingsAtHand): Promise<readonly Finding[]> {
  const { limits, server } = config;
  if (!limits.enabled || isOnThisMachine(new URL(server.baseUrl).hostname)) return [];
  const { mcp, dcr } = limits.groups;
  const tight = [
    ...(computeShare(mcp, 60_000) < NEEDED.callsPerMinute
      ? [
          mcp.max.user === undefined
            ? 'MCP_USER_RATE_LIMIT_MAX, MCP_RATE_LIMIT_MAX'
            : 'MCP_RATE_LIMIT_MAX',
        ]
      : []),
    ...(computeShare(dcr, 3_600_000) < NEEDED.registrationsPerHour ? ['DCR_RATE_LIMIT_MAX'] : []),
  ];
  const what = `With these limits ${PEOPLE} people behind one address share ${describe(mcp, 'calls of /mcp')} and ${describe(dcr, 'registrations of clients')}.`;
  if (tight.length === 0) return [ok('limits', what)];
  return [
    warning('limits', what, {
      why: 'Beyond that they get 429. In an office, or behind a NAT, all users have one address.',
      setting: tight.join(', '),
      remedy:
        'if that is too little: MCP_RATE_LIMIT_MAX=10000 with MCP_USER_RATE_LIMIT_MAX=300, and DCR_RATE_LIMIT_MAX=200.',
    }),
  ];
}

/** Of one of them, where all ask alike. */
const computeShare = ({ max, windowMs }: LimitRule, perMs: number): number =>
  (Math.min(max.user ?? max.ip, max.ip / PEOPLE) * perMs) / windowMs;

function describe({ max, windowMs }: LimitRule, what: string): string {
  const perUser = max.user === undefined ? '' : ` (${format(max.user)} each at most)`;
  return `${format(max.ip)} ${what} ${describeWindow(windowMs)}${perUser}`;
}

const format = (count: number): string => count.toLocaleString('en');

function describeWindow(windowMs: number): string {
  if (windowMs === 60_000) return 'a minute';
  if (windowMs === 3_600_000) return 'an hour';
  return `in ${windowMs / 1000} s`;
}
