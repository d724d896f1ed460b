// The settings alone: what the gateway warns of at start, and its limits.

import type { LimitRule } from '../../config/groups/limits.ts';
import { loginPolicySettings } from '../../config/groups/own-tokens.ts';
import { logStartWarnings } from '../../config/start-log.ts';
import { hasApprovalsPage } from '../../control/approvals/approvals.ts';
import { parseKeySet } from '../../logins/auth/jwk.ts';
import { createDocumentOffer } from '../../logins/client-id-metadata/document-offer.ts';
import { isOnThisMachine } from '../../platform/address.ts';
import { type Fetch, fetchWithLimits } from '../../platform/fetch-with-limits.ts';
import { isObject } from '../../platform/json.ts';
import { describeCause } from '../../platform/log.ts';
import { createPublicNetwork } from '../../platform/outbound/public-network.ts';
import { stripUri } from '../../platform/secret-texts.ts';

import { countNoun, shorten } from '../../platform/text.ts';
import { formatCount } from '../command-line/terminal.ts';
import { defineCheck, type Finding, failure, ok, warning } from './finding.ts';
import { createCollectingLog } from './instruments.ts';
import { findBrokerConfig, type SettingsAtHand } from './settings-at-hand.ts';

export const startCheck = defineCheck({
  section: 'Settings',
  async run({ config }: SettingsAtHand) {
    const { log, entries } = createCollectingLog();
    logStartWarnings(config, log);
    const { server, oauth } = config;
    const { pathname } = new URL(server.baseUrl);
    return [
      ok(
        'settings',
        `The settings are valid: OAUTH_MODE=${oauth.mode}, BASE_URL=${server.baseUrl}.`,
      ),
      // A line at info may well be intended; each begins with its variable, or with a sentence.
      ...entries.map(({ level, message }) =>
        warning(level === 'warn' ? 'settings.risk' : 'settings.mode', {
          what: message,
          setting: /^[A-Z][A-Z0-9]*_[A-Z0-9_]+\b/.exec(message)?.[0],
        }),
      ),
      pathname !== '/' &&
        warning('settings.base-url-path', {
          what: `BASE_URL has a path: ${pathname}.`,
          why: `The proxy in front has to pass on what comes below ${pathname}/, and three addresses at the start of the host, where clients look for metadata: /.well-known/oauth-protected-resource${pathname}, with all below it, /.well-known/oauth-authorization-server${pathname} and /.well-known/openid-configuration${pathname}. It may leave the path in all of them, or remove it.`,
          setting: 'BASE_URL',
          remedy: 'a host name of its own for the gateway is simpler.',
        }),
    ];
  },
});

const PEOPLE = 10;

/** The needs of one person: a model that works makes many calls, and people have several clients. */
const NEEDED = { callsPerMinute: 60, registrationsPerHour: 5 };

/** §8: what the limits per address leave for each of many users behind one address, as in an office. */
export const limitsCheck = defineCheck({
  section: 'Settings',
  async run({ config }: SettingsAtHand) {
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
    const what = `With these limits ${PEOPLE} people behind one address share ${describeLimit(mcp, 'calls of /mcp')} and ${describeLimit(dcr, 'registrations of clients')}.`;
    if (tight.length === 0) return ok('limits', what);
    return warning('limits', {
      what,

      why: 'Beyond that they get 429. In an office, or behind a NAT, all users have one address.',
      setting: tight.join(', '),
      remedy:
        'if that is too little: MCP_RATE_LIMIT_MAX=10000 with MCP_USER_RATE_LIMIT_MAX=300, and DCR_RATE_LIMIT_MAX=200.',
    });
  },
});

/** The share of one of them, where all ask alike. */
const computeShare = ({ max, windowMs }: LimitRule, perMs: number): number =>
  (Math.min(max.user ?? max.ip, max.ip / PEOPLE) * perMs) / windowMs;

function describeLimit({ max, windowMs }: LimitRule, what: string): string {
  const perUser = max.user === undefined ? '' : ` (${formatCount(max.user)} each at most)`;
  const window = WINDOWS[windowMs] ?? `in ${windowMs / 1000} s`;
  return `${formatCount(max.ip)} ${what} ${window}${perUser}`;
}

const WINDOWS: Readonly<Record<number, string>> = { 60000: 'a minute', 3600000: 'an hour' };

export const tokenKindCheck = defineCheck({
  section: 'Settings',
  async run({ config }: SettingsAtHand) {
    const oauth = findBrokerConfig(config);
    if (oauth === undefined) return [];
    const useless = oauth.tokens.acceptsProviderTokens ? '' : ', and the gateway no OIDC_AUDIENCE';
    return [
      ok('tokens', {
        what: "Clients get tokens of the gateway's own, which any OpenID provider allows.",
        why: 'A login ends at the next call once somebody ends it.',
      }),
      ok(
        'tokens.not-needed',
        `Own tokens: the provider need not issue JWT access tokens. It needs no API, audience, mapper or signing algorithm for them${useless}.`,
      ),
    ];
  },
});

// §13.3: who may log in at all, of those whom the provider knows.

/** In proxy mode there is no choice. */
export const loginPolicyCheck = defineCheck({
  section: 'Settings',
  async run({ config }: SettingsAtHand) {
    const oauth = findBrokerConfig(config);
    if (oauth === undefined) return [];
    const { allowedEmails, allowedGroups, allowedClaims } = oauth.identity;
    // Those that are set: all of them have to hold.
    const lists = [
      { setting: loginPolicySettings.allowedEmails, values: allowedEmails },
      { setting: loginPolicySettings.allowedGroups, values: allowedGroups },
      {
        setting: loginPolicySettings.allowedClaims,
        values: allowedClaims.map((pair) => pair.join('=')),
      },
    ]
      .filter(({ values }) => values.length > 0)
      .map(({ setting, values }) => `${setting.variable}=${shorten(values.join(','), MAX_LIST)}`);
    return ok(
      'login-policy',
      lists.length === 0
        ? 'Everybody whom the provider lets in may log in: no LOGIN_ALLOWED setting says who may.'
        : `Of those whom the provider lets in, only these may log in: ${lists.join(' and ')}.`,
    );
  },
});

/** Characters. */
const MAX_LIST = 200;

// §27.6: rules that ask before a call runs: how many, and whom they cannot reach.

const APPROVALS_CHECK = 'approvals';

/** Nothing where no rule asks. That nobody could decide at all keeps the gateway from starting. */
export const approvalsCheck = defineCheck({
  section: 'Approvals',
  async run({ config, setup }: SettingsAtHand) {
    const asking = (setup?.file.rules ?? []).filter(({ ask }) => ask !== undefined);
    if (asking.length === 0) return undefined;
    const asksUsers = asking.some(({ ask }) => ask === 'user');
    return [
      ok(
        APPROVALS_CHECK,
        `${countNoun(asking.length, 'rule')} ${asking.length === 1 ? 'asks' : 'ask'} before a call runs.`,
      ),
      asksUsers &&
        !hasApprovalsPage(config) &&
        warning(APPROVALS_CHECK, {
          what: 'Clients that cannot ask their user (without elicitation) can make none of the calls that "ask": "user" is about: this gateway has no page where users could decide.',
          remedy: 'set OAUTH_MODE=broker.',
        }),
    ];
  },
});

// §13.6: the clients of the configuration file that log in as themselves: how many, and whether their keys can be fetched.

const MACHINE_CHECK = 'machine-clients';
const KEYS_LIMITS = { timeoutMs: 5000, maxBytes: 1_048_576 };

/** Nothing without any. */
export const machineClientsCheck = defineCheck({
  section: 'Machine clients',
  async run({ setup, clocks: { fetch } }: SettingsAtHand) {
    const clients = setup?.file.clients ?? [];
    if (clients.length === 0) return undefined;
    const ids = clients.map(({ id }) => id).join(', ');
    const checks = clients.flatMap(({ id, credentials }) =>
      credentials.kind === 'keysUrl' ? [checkKeys(id, credentials.url, fetch)] : [],
    );
    return [
      ok(MACHINE_CHECK, `${countNoun(clients.length, 'client')} can log in as themselves: ${ids}.`),
      ...(await Promise.all(checks)),
    ];
  },
});

async function checkKeys(id: string, url: string, fetch: Fetch): Promise<Finding> {
  try {
    const { status, body } = await fetchWithLimits(fetch, url, {}, KEYS_LIMITS);
    if (status !== 200) throw new Error(`it answered ${status}`);
    const { usable } = parseKeySet(body);
    return ok(
      MACHINE_CHECK,
      `The keys of client ${id} can be fetched (${countNoun(usable.length, 'key')}).`,
    );
  } catch (error) {
    return failure(MACHINE_CHECK, {
      what: `The keys of client ${id} cannot be fetched from ${stripUri(url)}, so it cannot log in.`,
      why: describeCause(error),
      remedy: 'correct its "jwksUri" in the configuration file, or let the gateway reach it.',
    });
  }
}

// §4.6: client ID metadata documents.

const DOCUMENTS_CHECK = 'client-documents';

/** Tries whether metadata documents of clients can be fetched, as the gateway tries it. */
export const documentsCheck = defineCheck({
  section: 'Client documents',
  async run({ config: { oauth }, clock, tunnel }: SettingsAtHand) {
    const { allowedHosts } = oauth.clientIdMetadata;
    if (allowedHosts.length === 0)
      return ok(
        DOCUMENTS_CHECK,
        'Client ID metadata documents are switched off: clients register instead.',
      );
    const { log, entries } = createCollectingLog();
    const network = createPublicNetwork({ clock, tunnel });
    const offer = createDocumentOffer({ clock, log }, network, allowedHosts);
    offer.start();
    const isOffered = await offer.isOffered();
    offer.close();
    if (isOffered)
      return ok(
        DOCUMENTS_CHECK,
        `Client ID metadata documents can be fetched (${allowedHosts.join(', ')}).`,
      );
    const reasons = entries.map(({ facts }) => facts.reasons).find(isObject) ?? {};
    const [host, reason] = Object.entries(reasons)[0] ?? [];
    return warning(DOCUMENTS_CHECK, {
      what: 'None of the hosts in CIMD_ALLOWED_HOSTS can be reached, so clients register instead.',
      why: host && `${host}: ${String(reason)}`,
      setting: 'CIMD_ALLOWED_HOSTS',
      remedy:
        'let the gateway reach them on port 443, set HTTPS_PROXY=http://host:port if only a proxy leads out, or set CIMD_ALLOWED_HOSTS=none.',
    });
  },
});
