// Reads the local settings and builds the gateway's parts from them, or reports why they are unusable; checks the settings on
// their own.

import type { Config } from '../../config/config.ts';
import type { LimitRule } from '../../config/groups/limits.ts';
import type { BrokerConfig } from '../../config/groups/oauth.ts';
import { loginPolicySettings } from '../../config/groups/own-tokens.ts';
import { loadConfig } from '../../config/load.ts';
import {
  describeMisspelled,
  findMisspelledVariables,
  type MisspelledVariable,
} from '../../config/misspelled.ts';
import { ConfigError, formatProblem } from '../../config/problem.ts';
import { createServerUrls } from '../../config/server-urls.ts';
import type { Env } from '../../config/setting.ts';
import { logStartWarnings } from '../../config/start-log.ts';
import { hasApprovalsPage } from '../../control/approvals/approvals.ts';
import {
  createProviderEndpoints,
  openProviderMetadata,
  type ProviderDocument,
} from '../../http/oauth-client/provider-metadata.ts';
import { createProviderAccess } from '../../logins/auth/auth.ts';
import { parseKeySet } from '../../logins/auth/jwk.ts';
import { openKeySet } from '../../logins/auth/key-set.ts';
import { createDocumentOffer } from '../../logins/client-id-metadata/document-offer.ts';
import { isOnThisMachine } from '../../platform/address.ts';
import { type Fetch, fetchWithLimits } from '../../platform/fetch-with-limits.ts';
import { isObject } from '../../platform/json.ts';
import { describeCause } from '../../platform/log.ts';
import { createPublicNetwork } from '../../platform/outbound/public-network.ts';
import { stripUri } from '../../platform/secret-texts.ts';
import { countNoun, shorten } from '../../platform/text.ts';
import { noMetrics } from '../../telemetry/metrics/metrics.ts';
import { formatCount } from '../command-line/terminal.ts';
import { readSetup } from '../setup/read-setup.ts';
import {
  type Check,
  defineCheck,
  type Finding,
  type Found,
  failure,
  MISSPELLED,
  ok,
  type Report,
  type Row,
  warning,
} from './finding.ts';
import { createCollectingLog, type Instruments } from './instruments.ts';

export type SettingsAtHand = ReturnType<typeof openSettingsAtHand>;

/** Undefined if no login is required or possible. */
export type ProviderAtHand = NonNullable<SettingsAtHand['access']>;

export function openSettingsAtHand(usable: UsableSettings, instruments: Instruments) {
  const { config, setup } = usable;
  const { clocks, clock, log } = instruments;
  const { fetch } = clocks;
  const { provider } = config.oauth;
  /** Views also have paths. */
  const isServer = (name: string) =>
    [...(setup?.file.servers ?? []), ...(setup?.file.views ?? [])].some((one) => one.name === name);
  const serverUrls = createServerUrls(config.server.baseUrl, provider?.audience, isServer);
  const runtime = { config, fetch, clock, log, metrics: noMetrics };
  const metadata = provider && openProviderMetadata(runtime, provider);
  const keySet = metadata && openKeySet(runtime, { url: provider?.jwksUrl, metadata });
  const { auth } = createProviderAccess(runtime, isServer, {
    isServerAudience: serverUrls.isAudience,
    keySet,
  });
  return {
    ...usable,
    ...instruments,
    access: provider &&
      metadata &&
      keySet && {
        provider,
        metadata,
        keySet,
        auth,
        endpoints: createProviderEndpoints(config.oauth.endpoints, metadata),
      },
    close() {
      keySet?.close();
      auth.close();
    },
  };
}

/** Undefined in proxy mode, where clients get tokens from the provider. */
export const findBrokerConfig = ({ oauth }: Config): BrokerConfig | undefined =>
  oauth.mode === 'broker' ? oauth : undefined;

/** True if the discovery document could be read, or is not needed. */
export const isDiscovered = async ({ provider, metadata }: ProviderAtHand): Promise<boolean> =>
  provider.jwksUrl !== undefined ||
  metadata.get().then(
    () => true,
    () => false,
  );

/** A check that needs a discovered provider: the failure of the discovery has its own finding. */
export const defineProviderCheck = (
  section: string,
  run: (settings: SettingsAtHand, access: ProviderAtHand) => Promise<Found>,
): Check<SettingsAtHand> => ({
  section,
  async run(settings) {
    const { access } = settings;
    return access !== undefined && (await isDiscovered(access)) ? run(settings, access) : [];
  },
});

/** A check of the discovery document for logins; skipped in proxy mode or without a document. */
export const defineDocumentCheck = (
  judge: (
    document: ProviderDocument,
    oauth: BrokerConfig,
    settings: SettingsAtHand,
  ) => readonly Row[],
): Check<SettingsAtHand> =>
  defineProviderCheck('Identity provider', async (settings, { metadata }) => {
    const oauth = findBrokerConfig(settings.config);
    const document = oauth && (await metadata.get().catch(() => undefined));
    return oauth && document && judge(document, oauth, settings);
  });

type UsableSettings = NonNullable<Awaited<ReturnType<typeof readSettings>>>;

/** Reads them as `postern start` does; undefined if they are unusable. */
export async function readSettings(env: Env, report: Report) {
  const tell = (...findings: readonly Finding[]) => {
    for (const finding of findings) report('Settings', finding);
  };
  try {
    const config = loadConfig(env);
    const { configFile: path } = config.server;
    const parsed = path === undefined ? undefined : await readSetup(path, config, env);
    if (parsed?.kind === 'problems') {
      tell(...parsed.problems.map(formatProblem).map(refuse));
      return undefined;
    }
    tell(...findMisspelledVariables(env).map((one) => tellMisspelled(warning, one)));
    tell(...(parsed?.warnings ?? []).map((text) => warning('settings.file', text)));
    /** `setup`: the servers and rules in the configuration file, if there is one. `env`: the environment of the settings. */
    return { config, setup: parsed?.setup, env };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    tell(...explainProblems(error.problems, env));
    return undefined;
  }
}

/** If a missing setting is misspelled, only the misspelling is reported, as the first finding. */
function explainProblems(problems: readonly string[], env: Env) {
  const misspelled = findMisspelledVariables(env);
  const told = misspelled.map(describeMisspelled);
  const isAbout = (problem: string, { nearest }: MisspelledVariable) =>
    problem.startsWith(describeMissing(nearest));
  const isCause = (one: MisspelledVariable) => problems.some((problem) => isAbout(problem, one));
  const others = problems.filter(
    (problem) => !told.includes(problem) && !misspelled.some((one) => isAbout(problem, one)),
  );
  return [
    ...misspelled.filter(isCause).map((one) => tellMisspelled(failure, one)),
    ...others.map(refuse).map(mentionUrl),
    ...misspelled.filter((one) => !isCause(one)).map((one) => tellMisspelled(warning, one)),
  ];
}

const describeMissing = (variable: string) => `${variable} is missing`;

const tellMisspelled = (judge: typeof failure, one: MisspelledVariable) =>
  judge(MISSPELLED, describeMisspelled(one), {
    setting: one.nearest,
    remedy: `rename it to ${one.nearest}, if that is what you meant.`,
  });

/** A problem begins with its variable, or with the file. */
const refuse = (problem: string) =>
  failure('settings', problem, { setting: /^([A-Z][A-Z0-9_]+)\b/.exec(problem)?.[1] });

/** Outside of the gateway's folder, the user probably wants to check a running gateway. */
const mentionUrl = (finding: Finding) => ({
  ...finding,
  ...(finding.what.startsWith(describeMissing('OIDC_ISSUER')) && {
    remedy:
      "run this in the folder that has the gateway's .env. To check a gateway that runs elsewhere, give its URL: postern doctor https://mcp.example.com",
  }),
});

// Checks of the settings alone: the gateway's start warnings, and its limits.

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
      // A line at info may be intended. Each line begins with its variable, or with a sentence.
      ...entries.map(({ level, message }) =>
        warning(level === 'warn' ? 'settings.risk' : 'settings.mode', message, {
          setting: /^[A-Z][A-Z0-9]*_[A-Z0-9_]+\b/.exec(message)?.[0],
        }),
      ),
      pathname !== '/' &&
        warning('settings.base-url-path', `BASE_URL has a path: ${pathname}.`, {
          why: `The proxy in front has to pass on requests below ${pathname}/, and to three addresses at the start of the host, where clients look for metadata: /.well-known/oauth-protected-resource${pathname}, with everything below it, /.well-known/oauth-authorization-server${pathname} and /.well-known/openid-configuration${pathname}. It may keep the path in all of them, or remove it.`,
          setting: 'BASE_URL',
          remedy: 'a separate host name for the gateway is simpler.',
        }),
    ];
  },
});

const PEOPLE = 10;

/** Requirements of one user: a model at work makes many calls, and users have several clients. */
const NEEDED = { callsPerMinute: 60, registrationsPerHour: 5 };

/** §8: the share of the limits per address for each of many users behind one address, as in an office. */
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
    return warning('limits', what, {
      why: 'Beyond that they get 429. In an office, or behind a NAT, all users have one address.',
      setting: tight.join(', '),
      remedy:
        'if that is too little: MCP_RATE_LIMIT_MAX=10000 with MCP_USER_RATE_LIMIT_MAX=300, and DCR_RATE_LIMIT_MAX=200.',
    });
  },
});

/** The share of one user, if all make equally many requests. */
const computeShare = ({ max, windowMs }: LimitRule, perMs: number) =>
  (Math.min(max.user ?? max.ip, max.ip / PEOPLE) * perMs) / windowMs;

function describeLimit({ max, windowMs }: LimitRule, what: string) {
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
      ok('tokens', "Clients get the gateway's own tokens, which work with any OpenID provider.", {
        why: 'When a login is ended, the next call is refused.',
      }),
      ok(
        'tokens.not-needed',
        `Own tokens: the provider need not issue JWT access tokens. It needs no API, audience, mapper or signing algorithm for them${useless}.`,
      ),
    ];
  },
});

// §13.3: which of the provider's users may log in.

/** Proxy mode has no such settings. */
export const loginPolicyCheck = defineCheck({
  section: 'Settings',
  async run({ config }: SettingsAtHand) {
    const oauth = findBrokerConfig(config);
    if (oauth === undefined) return [];
    // The lists that are set; a user has to satisfy all of them.
    const lists = (['allowedEmails', 'allowedGroups', 'allowedClaims'] as const)
      .filter((name) => oauth.identity[name].length > 0)
      .map((name) => {
        const values = oauth.identity[name].map((value) => [value].flat().join('='));
        return `${loginPolicySettings[name].variable}=${shorten(values.join(','), MAX_LIST)}`;
      });
    return ok(
      'login-policy',
      lists.length === 0
        ? 'All users at the provider may log in: no LOGIN_ALLOWED setting restricts them.'
        : `Of the users at the provider, only these may log in: ${lists.join(' and ')}.`,
    );
  },
});

/** In characters. */
const MAX_LIST = 200;

// §27.6: rules that require approval: how many, and which callers they cannot reach.

const APPROVALS_CHECK = 'approvals';

/** No findings without such rules. If no approver exists at all, the gateway does not start. */
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
        warning(
          APPROVALS_CHECK,
          'Clients that cannot ask their user (without elicitation) cannot make calls with "ask": "user": this gateway has no page where users could decide.',
          {
            remedy: 'set OAUTH_MODE=broker.',
          },
        ),
    ];
  },
});

// §13.6: clients in the configuration file that authenticate as themselves: how many, and whether their keys can be fetched.

const MACHINE_CHECK = 'machine-clients';
const KEYS_LIMITS = { timeoutMs: 5000, maxBytes: 1_048_576 };

/** No findings without such clients. */
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

async function checkKeys(id: string, url: string, fetch: Fetch) {
  try {
    const { status, body } = await fetchWithLimits(fetch, url, {}, KEYS_LIMITS);
    if (status !== 200) throw new Error(`it answered ${status}`);
    const { usable } = parseKeySet(body);
    return ok(
      MACHINE_CHECK,
      `The keys of client ${id} can be fetched (${countNoun(usable.length, 'key')}).`,
    );
  } catch (error) {
    return failure(
      MACHINE_CHECK,
      `The keys of client ${id} cannot be fetched from ${stripUri(url)}, so it cannot log in.`,
      {
        why: describeCause(error),
        remedy: 'correct its "jwksUri" in the configuration file, or let the gateway reach it.',
      },
    );
  }
}

// §4.6: client ID metadata documents.

const DOCUMENTS_CHECK = 'client-documents';

/** Tests whether metadata documents of clients can be fetched, as the gateway does. */
export const documentsCheck = defineCheck({
  section: 'Client documents',
  async run({ config: { oauth }, clock, tunnel }: SettingsAtHand) {
    const { allowedHosts } = oauth.clientIdMetadata;
    if (allowedHosts.length === 0)
      return ok(
        DOCUMENTS_CHECK,
        'Client ID metadata documents are turned off: clients register instead.',
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
    return warning(
      DOCUMENTS_CHECK,
      'None of the hosts in CIMD_ALLOWED_HOSTS can be reached, so clients register instead.',
      {
        why: host && `${host}: ${String(reason)}`,
        setting: 'CIMD_ALLOWED_HOSTS',
        remedy:
          'let the gateway reach them on port 443, set HTTPS_PROXY=http://host:port if internet access requires a proxy, or set CIMD_ALLOWED_HOSTS=none.',
      },
    );
  },
});
