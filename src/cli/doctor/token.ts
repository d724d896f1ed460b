// --token: what the gateway says of a user's access token, and what the user gets by it.

import type { BrokerConfig } from '../../config/groups/oauth.ts';
import { GatewayError } from '../../errors/gateway-error.ts';
import { isOwnToken } from '../../http/endpoint/bearer.ts';

import { inspectOwnToken } from '../../logins/grants/token-codec.ts';
import { createCheckTokenUser } from '../../logins/identity/login-policy.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { describeCause } from '../../platform/log.ts';
import { countNoun, quote } from '../../platform/text.ts';
import {
  type Advice,
  defineCheck,
  type Finding,
  failure,
  ok,
  unknown,
  warning,
} from './finding.ts';
import type { ProbeAnswer } from './instruments.ts';
import { adviseOnLimit, createCall, readErrorData, readReason } from './log-in.ts';
import {
  findBrokerConfig,
  isDiscovered,
  type ProviderAtHand,
  type SettingsAtHand,
} from './settings-at-hand.ts';
import {
  adviseOnToken,
  describeToken,
  describeTokenRefusal,
  judgeLifetime,
  readTokenParts,
  reportMissingToken,
} from './token-advice.ts';
import type { Walk } from './walk.ts';

const CHECK = 'token';

export const walkTokenCheck = defineCheck({
  section: 'Token',
  needsStore: 'whether a token is accepted',
  async run(walk: Walk) {
    const { token, clock } = walk;
    if (token === undefined) {
      if ((await walk.logIn())?.kind !== 'at-provider') return [];
      const report = (await walk.issuesOwnTokens()) ? reportUntriedLogin : reportMissingToken;
      return report(walk.baseUrl);
    }
    const call = (method: string, params: JsonObject, sessionId?: string) =>
      walk.probe(
        walk.endpoint,
        createCall(method, params, {
          Authorization: `Bearer ${token}`,
          'MCP-Protocol-Version': '2025-06-18',
          ...(sessionId !== undefined && { 'Mcp-Session-Id': sessionId }),
        }),
      );
    const opened = await call('initialize', INITIALIZE);
    if (opened.status === 429)
      return unknown(CHECK, {
        what: 'whether the gateway accepts the token: it has received too many calls (429).',
        ...adviseOnLimit(opened, 'MCP'),
      });
    if (opened.status !== 200) {
      const reason = readReason(opened);
      const { details } = readErrorData(opened);
      const said =
        typeof details === 'string' ? details : `${opened.status} ${opened.text.slice(0, 200)}`;
      if (isOwnToken(token)) return explainOwnTokenRefusal(token, reason, said);
      if (/its own tokens begin with pst_/.test(said)) return FOREIGN_TOKEN;
      const { check, ...advice } = adviseOnToken(reason, token);
      return failure(check ?? CHECK, {
        what: describeTokenRefusal('refuses', token, said),
        ...advice,
      });
    }
    const session = opened.headers.get('mcp-session-id') ?? undefined;
    const listed = await call('tools/list', {}, session);
    if (session !== undefined)
      await walk.probe(walk.endpoint, {
        method: 'DELETE',
        headers: { Authorization: `Bearer ${token}`, 'Mcp-Session-Id': session },
      });
    return [
      ok(CHECK, `The gateway accepts the token${describeToken(token, clock.now())}.`),
      judgeLifetime(token),
      judgeTools(listed),
    ];
  },
});

const INITIALIZE: JsonObject = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'postern doctor', version: '1' },
};

function judgeTools(answer: ProbeAnswer): Finding {
  const { status, json } = answer;
  const tools = isObject(json?.result) ? json.result.tools : undefined;
  if (status === 429)
    return unknown('tools', {
      what: 'what the user sees: the gateway has received too many calls (429).',
      ...adviseOnLimit(answer, 'MCP'),
    });
  if (status !== 200 || !Array.isArray(tools))
    return warning('tools', {
      what: `With the token, tools/list is answered ${status}.`,
      remedy: "the gateway's log says why.",
    });
  const names = tools
    .flatMap((tool: unknown) =>
      isObject(tool) && typeof tool.name === 'string' ? [tool.name] : [],
    )
    .slice(0, 8);
  return tools.length === 0
    ? warning('tools', {
        what: 'The user of the token sees no tool.',
        remedy:
          'check the rules (`postern rules test`), and that the servers behind the gateway run.',
      })
    : ok(
        'tools',
        `The user sees ${countNoun(tools.length, 'tool')}: ${names.join(', ')}${tools.length > names.length ? ' …' : ''}.`,
      );
}

/** --token: what the gateway would say of a user's access token. */
export const tokenCheck = defineCheck({
  section: 'Token',
  async run(settings: SettingsAtHand) {
    const { access, config, token, clock } = settings;
    if (access === undefined || !config.auth.required) return [];
    const hasKeys = await isDiscovered(access);
    const own = findBrokerConfig(config);
    if (token === undefined) {
      const report = own ? reportUntriedLogin : reportMissingToken;
      return hasKeys ? report(config.server.baseUrl) : [];
    }
    if (own && (!own.tokens.acceptsProviderTokens || isOwnToken(token)))
      return judgeOwnToken(token, own, settings);
    if (!hasKeys)
      return unknown('token', "whether the token is accepted, without the provider's keys.");
    try {
      const user = await access.auth.authenticate({
        headers: { authorization: `Bearer ${token}` },
        path: '/mcp',
        clientIp: 'unknown',
      });
      if (user && own) createCheckTokenUser(own.identity)(user);
      return [
        ok('token', `The gateway would accept the token${describeToken(token, clock.now())}.`),
        judgeLifetime(token),
      ];
    } catch (error) {
      return explainOwnRefusal(error, token, access);
    }
  },
});

function explainOwnRefusal(
  error: unknown,
  token: string,
  { provider, keySet }: ProviderAtHand,
): Finding {
  if (!(error instanceof GatewayError)) return failure('token', describeCause(error));
  const { name, audience } = provider;
  const { check, ...advice } = adviseOnToken(error.key, token, name, audience);
  const what = describeTokenRefusal('would refuse', token, error.message);
  const header = readTokenParts(token)?.header;
  const isUnknownKey =
    keySet.isFetched &&
    error.key === 'invalid_token' &&
    typeof header?.alg === 'string' &&
    typeof header.kid === 'string' &&
    keySet.find({ alg: header.alg, kid: header.kid }).every(({ kid }) => kid !== header.kid);
  if (isUnknownKey)
    return failure('token.key', {
      what,

      why: `The key set of the provider has no key ${quote(header?.kid)}: another provider, tenant or realm issued the token, or one of the provider's own services for itself.`,
      setting: 'OIDC_ISSUER, OIDC_JWKS_URL',
      remedy: 'get a token that this provider issued for the gateway.',
    });
  return failure(check ?? 'token', { what, ...advice });
}

// --token, where clients get tokens of the gateway's own (§5.11): what one says to those who have the secret, and what to
// do about one that is refused. The token itself is never printed.

/** Judges by the settings at hand. Whether its login still stands, only the gateway knows. */
function judgeOwnToken(
  token: string,
  { stateSecret }: BrokerConfig,
  { config: { server }, clock }: SettingsAtHand,
): Finding {
  const url = server.baseUrl;
  const secrets = stateSecret.kind === 'given' ? stateSecret.secrets : undefined;
  const found = inspectOwnToken(token, secrets, url);
  switch (found.kind) {
    case 'foreign':
      return FOREIGN_TOKEN;
    case 'refresh':
      return REFRESH_TOKEN;
    // Its file is the gateway's, which makes it at its first start.
    case 'sealed':
      return unknown(CHECK, {
        what: 'what this token of the gateway says: its secret is in DATA_DIR.',
        remedy: `give it to the gateway that runs: postern doctor ${url} --token-file FILE`,
      });
    case 'unknown':
      return failure('token.unknown', {
        what: 'No secret at hand made this token of a gateway.',
        ...UNKNOWN,
      });
    case 'access': {
      const now = clock.now() / 1000;
      const { grantId, expiresAt } = found;
      const what = `an access token of this gateway, of the login (grant) ${grantId}`;
      if (now >= expiresAt) {
        return failure('token.expired', {
          what: `This is ${what}, and has expired.`,
          remedy: 'have the client refresh, or log in again.',
        });
      }
      return ok(CHECK, {
        what: `This is ${what}, with ${Math.round((expiresAt - now) / 60)} min left.`,
        why: `Whether its login still stands, the gateway that runs says: postern doctor ${url} --token-file FILE`,
      });
    }
  }
}

const UNKNOWN: Advice = {
  why: 'It was changed on its way, or a gateway with another BASE_URL or another secret issued it.',
  setting: 'OAUTH_STATE_SECRET, BASE_URL',
  remedy:
    'copy it once more. If the secret was changed, its users log in again; to change it without that, list the old one, too.',
};

const FOREIGN_TOKEN = failure('token.not-own', {
  what: 'The token is none of the gateway, whose own begin with pst_.',
  why: "Clients get tokens of the gateway's own, and it accepts no others.",
  setting: 'OAUTH_ACCEPT_PROVIDER_TOKENS',
  remedy:
    'log in by way of the gateway, for example at /playground. For tokens that service accounts get at the provider itself, set OAUTH_ACCEPT_PROVIDER_TOKENS=true, and OIDC_AUDIENCE to what they name.',
});

const REFRESH_TOKEN = failure('token.refresh', {
  what: 'This is a refresh token of the gateway, not an access token.',
  remedy: 'give the access token, which begins with pst_.',
});

/** Findings by the `reason` (§7.1) for which a gateway that runs refused it. */
const REFUSALS: ReadonlyMap<string | undefined, Pick<Finding, 'check' | 'remedy'>> = new Map([
  [
    'token_revoked',
    {
      check: 'token.revoked',
      remedy:
        'log in again. The client, the user, an operator or the provider ended this login; the log of the gateway names the grant.',
    },
  ],
  [
    'expired_token',
    { check: 'token.expired', remedy: 'have the client refresh, or log in again.' },
  ],
  [
    'invalid_audience',
    {
      check: 'token.resource',
      remedy: 'call the address that the token is for, or log in with <BASE_URL>/mcp as resource.',
    },
  ],
]);

/** `said` is the gateway's own sentence. */
function explainOwnTokenRefusal(token: string, reason: string | undefined, said: string): Finding {
  if (inspectOwnToken(token).kind === 'refresh') return REFRESH_TOKEN;
  const what = `The gateway refuses the token: ${said}`;
  const { check, ...advice } = REFUSALS.get(reason) ?? { check: 'token.unknown', ...UNKNOWN };
  return failure(check, { what, ...advice });
}

/** Reports what only a login can show. */
const reportUntriedLogin = (baseUrl: string): Finding =>
  unknown(CHECK, {
    what: 'whether a login works to its end, which takes a person.',
    remedy: `log in at ${baseUrl}/playground, which says what is wrong, or give an access token of a user: --token-file FILE`,
  });
