// What can be said of the settings alone: what the gateway warns of at start, and its limits.
import type { LimitRule } from '../../../config/groups/limits.ts';
import { logStartWarnings } from '../../../config/start-log.ts';
import { isOnThisMachine } from '../../../platform/address.ts';
import { type Finding, type Found, ok, warning } from '../finding.ts';
import { createCollectingLog, type LogEntry } from '../instruments.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

export async function checkStart({ config }: SettingsAtHand): Promise<Found> {
  const { log, entries } = createCollectingLog();
  logStartWarnings(config, log);
  const { server, oauth } = config;
  return [
    ok('settings', `The settings are valid: OAUTH_MODE=${oauth.mode}, BASE_URL=${server.baseUrl}.`),
    ...entries.map(toFinding),
    describePath(server.baseUrl),
  ];
}

/** What is at info may well be intended; each begins with its variable, or with a sentence. */
function toFinding({ level, message }: LogEntry): Finding {
  const [variable] = /^[A-Z][A-Z0-9]*_[A-Z0-9_]+\b/.exec(message) ?? [];
  const check = level === 'warn' ? 'settings.risk' : 'settings.mode';
  return warning(check, {
    what: message,
    ...(variable === undefined ? {} : { setting: variable }),
  });
}

function describePath(baseUrl: string): Finding | undefined {
  const { pathname } = new URL(baseUrl);
  if (pathname === '/') return undefined;
  return warning('settings.base-url-path', {
    what: `BASE_URL has a path: ${pathname}.`,
    why: `The proxy in front has to pass on what comes below ${pathname}/, and three addresses at the start of the host, where clients look for metadata: /.well-known/oauth-protected-resource${pathname}, with all below it, /.well-known/oauth-authorization-server${pathname} and /.well-known/openid-configuration${pathname}. It may leave the path in all of them, or remove it.`,
    setting: 'BASE_URL',
    remedy: 'a host name of its own for the gateway is simpler.',
  });
}

const PEOPLE = 10;

/** What one person easily needs: a model that works makes many calls, and people have several clients. */
const NEEDED = { callsPerMinute: 60, registrationsPerHour: 5 };

/** §8: what the limits per address leave for each of many users behind one address, as in an office. */
export async function checkLimits({ config }: SettingsAtHand): Promise<Found> {
  const { limits, server } = config;
  if (!limits.enabled || isOnThisMachine(new URL(server.baseUrl).hostname)) return [];
  const { mcp, dcr } = limits.groups;
  const callLimits =
    mcp.max.user === undefined
      ? 'MCP_USER_RATE_LIMIT_MAX, MCP_RATE_LIMIT_MAX'
      : 'MCP_RATE_LIMIT_MAX';
  const tight = [
    computeShare(mcp, 60_000) < NEEDED.callsPerMinute && callLimits,
    computeShare(dcr, 3_600_000) < NEEDED.registrationsPerHour && 'DCR_RATE_LIMIT_MAX',
  ].filter(Boolean);
  const what = `With these limits ${PEOPLE} people behind one address share ${describe(mcp, 'calls of /mcp')} and ${describe(dcr, 'registrations of clients')}.`;
  if (tight.length === 0) return ok('limits', what);
  return warning('limits', {
    what,

    why: 'Beyond that they get 429. In an office, or behind a NAT, all users have one address.',
    setting: tight.join(', '),
    remedy:
      'if that is too little: MCP_RATE_LIMIT_MAX=10000 with MCP_USER_RATE_LIMIT_MAX=300, and DCR_RATE_LIMIT_MAX=200.',
  });
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
