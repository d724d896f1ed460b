// Checks a user's access token (--token): whether the gateway accepts it, and what the user can do with it.

import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { Provider } from '../../config/provider-profiles.ts';
import { GatewayError } from '../../errors/gateway-error.ts';
import { isOwnToken } from '../../http/endpoint/bearer.ts';
import { FOREIGN_TOKEN } from '../../logins/auth/own-tokens.ts';
import { inspectOwnToken } from '../../logins/grants/token-codec.ts';
import { createCheckTokenUser } from '../../logins/identity/login-policy.ts';
import { isObject, type JsonObject, parseObject } from '../../platform/json.ts';
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
      return unknown(
        CHECK,
        'whether the gateway accepts the token: it has received too many calls (429).',
        adviseOnLimit(opened, 'MCP'),
      );
    if (opened.status !== 200) {
      const reason = readReason(opened);
      const { details } = readErrorData(opened);
      const said =
        typeof details === 'string' ? details : `${opened.status} ${opened.text.slice(0, 200)}`;
      if (isOwnToken(token)) {
        if (inspectOwnToken(token).kind === 'refresh') return REFRESH_TOKEN;
        const what = `The gateway refuses the token: ${said}`;
        const { check, ...advice } = REFUSALS.get(reason) ?? { check: 'token.unknown', ...UNKNOWN };
        return failure(check, what, advice);
      }
      if (said === FOREIGN_TOKEN) return NOT_OWN_TOKEN;
      const { check, ...advice } = adviseOnToken(reason, token);
      return failure(check ?? CHECK, describeTokenRefusal('refuses', token, said), advice);
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

function judgeTools(answer: ProbeAnswer) {
  const { status, json } = answer;
  const tools = isObject(json?.result) ? json.result.tools : undefined;
  if (status === 429)
    return unknown(
      'tools',
      'what the user sees: the gateway has received too many calls (429).',
      adviseOnLimit(answer, 'MCP'),
    );
  if (status !== 200 || !Array.isArray(tools))
    return warning('tools', `With the token, tools/list is answered ${status}.`, {
      remedy: "see the gateway's log.",
    });
  const names = tools
    .flatMap((tool: unknown) =>
      isObject(tool) && typeof tool.name === 'string' ? [tool.name] : [],
    )
    .slice(0, 8);
  return tools.length === 0
    ? warning('tools', 'The user of the token sees no tool.', {
        remedy:
          'check the rules (`postern rules test`), and that the servers behind the gateway run.',
      })
    : ok(
        'tools',
        `The user sees ${countNoun(tools.length, 'tool')}: ${names.join(', ')}${tools.length > names.length ? ' …' : ''}.`,
      );
}

/** --token: the gateway's verdict on a user's access token. */
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

function explainOwnRefusal(error: unknown, token: string, { provider, keySet }: ProviderAtHand) {
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
    return failure('token.key', what, {
      why: `The key set of the provider has no key ${quote(header?.kid)}: another provider, tenant or realm issued the token, or one of the provider's own services for itself.`,
      setting: 'OIDC_ISSUER, OIDC_JWKS_URL',
      remedy: 'get a token that this provider issued for the gateway.',
    });
  return failure(check ?? 'token', what, advice);
}

// --token for tokens issued by the gateway (§5.11): their content, for holders of the secret, and advice on a rejected one. The
// token itself is never printed.

/** Evaluates the token by the local settings. Only the gateway knows whether its login still exists. */
function judgeOwnToken(
  token: string,
  { stateSecret }: BrokerConfig,
  { config: { server }, clock }: SettingsAtHand,
) {
  const url = server.baseUrl;
  const secrets = stateSecret.kind === 'given' ? stateSecret.secrets : undefined;
  const found = inspectOwnToken(token, secrets, url);
  switch (found.kind) {
    case 'foreign':
      return NOT_OWN_TOKEN;
    case 'refresh':
      return REFRESH_TOKEN;
    // The file with the secret belongs to the gateway, which creates it at its first start.
    case 'sealed':
      return unknown(CHECK, 'the content of this gateway token: its secret is in DATA_DIR.', {
        remedy: `check with the running gateway: postern doctor ${url} --token-file FILE`,
      });
    case 'unknown':
      return failure(
        'token.unknown',
        'This token of a gateway was made with none of the secrets configured here.',
        UNKNOWN,
      );
    case 'access': {
      const now = clock.now() / 1000;
      const { grantId, expiresAt } = found;
      const what = `an access token of this gateway, of the login (grant) ${grantId}`;
      if (now >= expiresAt)
        return failure('token.expired', `This is ${what}, and has expired.`, {
          remedy: 'have the client refresh, or log in again.',
        });
      return ok(CHECK, `This is ${what}, with ${Math.round((expiresAt - now) / 60)} min left.`, {
        why: `To see whether its login still exists, check with the running gateway: postern doctor ${url} --token-file FILE`,
      });
    }
  }
}

const UNKNOWN: Advice = {
  why: 'It was altered, or a gateway with a different BASE_URL or secret issued it.',
  setting: 'OAUTH_STATE_SECRET, BASE_URL',
  remedy:
    'copy it once more. If the secret was changed, its users log in again; to change it without that, list the old one, too.',
};

const NOT_OWN_TOKEN = failure(
  'token.not-own',
  'The token was not issued by the gateway, whose tokens begin with pst_.',
  {
    why: "Clients get the gateway's own tokens, and it accepts no others.",
    setting: 'OAUTH_ACCEPT_PROVIDER_TOKENS',
    remedy:
      'log in through the gateway, for example at /playground. For tokens that service accounts get directly from the provider, set OAUTH_ACCEPT_PROVIDER_TOKENS=true, and OIDC_AUDIENCE to their audience.',
  },
);

const REFRESH_TOKEN = failure(
  'token.refresh',
  'This is a refresh token of the gateway, not an access token.',
  {
    remedy: 'pass the access token, which begins with pst_.',
  },
);

/** Findings by the `reason` (§7.1) that a running gateway gave for rejecting the token. */
const REFUSALS: ReadonlyMap<string | undefined, Pick<Finding, 'check' | 'remedy'>> = new Map([
  [
    'token_revoked',
    {
      check: 'token.revoked',
      remedy:
        'log in again. The client, the user, an operator or the provider ended this login; the gateway log names the grant.',
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

/** Reports checks that require a login. */
const reportUntriedLogin = (baseUrl: string) =>
  unknown(CHECK, 'whether a login works to the end: this requires a user.', {
    remedy: `log in at ${baseUrl}/playground, which says what is wrong, or pass an access token of a user: --token-file FILE`,
  });

// Advice about a token: its content, why it is rejected, and what to change. The token itself is never printed.

/** `reason` is the gateway's reason for the refusal (§7.1), `expected` the audience that the token should have. */
function adviseOnToken(
  reason: string | undefined,
  token: string,
  provider: Provider = 'generic',
  [expected = 'what the gateway expects']: readonly string[] = [],
) {
  const parts = readTokenParts(token);
  if (parts === undefined)
    return {
      check: 'token.opaque',
      setting: 'OAUTH_MODE, OIDC_AUDIENCE',
      remedy: `${OPAQUE[provider] ?? 'have the provider issue JWTs as access tokens for this API (RFC 9068; in Ory Hydra: strategies.access_token=jwt).'} Or have the gateway issue its own tokens, so that the provider's may be opaque: OAUTH_MODE=broker.`,
    };
  const { aud, iss } = parts.claims;
  const found: unknown = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  switch (reason) {
    case 'invalid_audience':
      return {
        check: aud === undefined ? 'token.audience-missing' : 'token.audience',
        ...(aud === undefined && {
          why: 'It has no audience: the mapper, or the API, that adds one is missing at the provider.',
        }),
        setting: 'OIDC_AUDIENCE',
        remedy: ADVICE[provider](expected, typeof found === 'string' ? found : undefined),
      };
    case 'invalid_issuer':
      return {
        check: 'token.issuer',
        why: 'Issuers are compared character by character; a slash at the end counts.',
        setting: 'OIDC_ISSUER',
        remedy: `set OIDC_ISSUER=${String(iss)} if this is the right provider.`,
      };
    case 'expired_token':
      return {
        check: 'token.expired',
        remedy:
          'get a new token. If this one is new, a clock is wrong: compare the clocks of the provider and of the gateway.',
      };
    case 'missing_claim':
      return {
        check: 'token.sub',
        remedy: 'have the provider put sub into access tokens (Keycloak: client scope basic).',
      };
    case 'user_not_allowed':
      return {
        setting: 'LOGIN_ALLOWED_EMAILS, LOGIN_ALLOWED_GROUPS, LOGIN_ALLOWED_CLAIMS',
        remedy:
          'compare the claims of the token with these settings. If it belongs to a service account, name its client in LOGIN_EXEMPT_CLIENTS.',
      };
    default:
      return { remedy: 'send the access token that this provider issued for the gateway.' };
  }
}

/** Follows "The token was issued for a different audience": the cause and the fix. docs/provider-*.md have the details. */
const ADVICE: Readonly<Record<Provider, (expected: string, found: string | undefined) => string>> =
  {
    generic: (expected, found) =>
      `register ${expected} as an API (audience, resource) at the provider, or ${
        found === undefined
          ? "set OIDC_AUDIENCE to the audience in the provider's tokens that stands for this gateway only."
          : `set OIDC_AUDIENCE=${found} if that stands for this gateway only.`
      }`,
    entra: () =>
      'set OIDC_AUDIENCE to the application (client) ID of the API whose scope is in OAUTH_ADDED_SCOPES. An aud of 00000003-0000-0000-c000-000000000000 is Microsoft Graph: no scope of your API was requested.',
    okta: () =>
      'set OIDC_AUDIENCE to the Audience of the custom authorization server (Security → API).',
    auth0: (expected) =>
      `create an API whose identifier is ${expected} (Applications → APIs), or set OIDC_AUDIENCE to the identifier of the one that you have.`,
    keycloak: (expected) =>
      `add an Audience mapper with the Included Custom Audience ${expected} to the client (Client scopes → <client>-dedicated → Add mapper). An aud of "account", or none, means that this mapper is missing.`,
    google: () => 'set OAUTH_CLIENT_ID to the client whose ID tokens these are.',
    cognito: () => 'set OAUTH_CLIENT_ID to the app client that the token was issued to.',
    authentik: () => 'set OAUTH_CLIENT_ID to the client ID of the provider in authentik.',
    dex: () => 'set OAUTH_CLIENT_ID to the id of the static client that the gateway uses.',
    github: () => OWN_TOKENS_ONLY,
    gitlab: () => OWN_TOKENS_ONLY,
    slack: () => OWN_TOKENS_ONLY,
  };

const OWN_TOKENS_ONLY = 'send a token of the gateway: tokens from this provider are not accepted.';

/** The reason why a provider's access tokens are opaque. */
const OPAQUE: Partial<Readonly<Record<Provider, string>>> = {
  auth0:
    'Auth0 issues opaque tokens if no API was requested: create an API and set OIDC_AUDIENCE to its identifier.',
  okta: 'The org authorization server issues tokens that only Okta can read: use a custom one (OIDC_ISSUER=https://<org>.okta.com/oauth2/<id>).',
  google: "Google's access tokens are opaque: send its ID token instead.",
};

/** Undefined for an opaque token. Verifies nothing. */
function readTokenParts(token: string) {
  const parts = token.split('.');
  const [header, claims] = parts.map((part) => parseObject(Buffer.from(part, 'base64url')));
  return parts.length === 3 && header !== undefined && claims !== undefined
    ? { header, claims }
    : undefined;
}

/** `says` is the gateway's own sentence. For an opaque token it repeats the advice, so it is left out. */
const describeTokenRefusal = (verb: 'refuses' | 'would refuse', token: string, says: string) =>
  readTokenParts(token) === undefined
    ? `The gateway ${verb} the token, which is not a JWT but opaque: only the provider can read it.`
    : `The gateway ${verb} the token: ${says}`;

/** Describes the token; completes "the token …". Empty if it is unreadable. */
function describeToken(token: string, now: number) {
  if (isOwnToken(token)) return ", which is one of the gateway's own";
  const parts = readTokenParts(token);
  if (parts === undefined) return '';
  const { sub, aud, exp, scope, scp, groups } = parts.claims;
  const minutes = typeof exp === 'number' ? Math.round((exp - now / 1000) / 60) : undefined;
  const facts = [
    `sub ${quote(sub, 80)}`,
    `aud ${quote(aud, 160)}`,
    minutes !== undefined && `${minutes} min left`,
    `scope ${quote(scope ?? scp, 120)}`,
    // Rules and the operators' page use groups, so a token without any explains missing access.
    groups === undefined ? 'no groups' : `groups ${quote(groups, 160)}`,
  ];
  return `: ${facts.filter(Boolean).join(', ')}`;
}

/**
 * Some clients refresh whenever less than five minutes of an access token are left. With twice that lifetime, half of it passes
 * without a refresh.
 */
const MIN_SECONDS = 600;

/** No finding for a token without an issue time. */
function judgeLifetime(token: string) {
  const { iat, exp } = readTokenParts(token)?.claims ?? {};
  if (typeof iat !== 'number' || typeof exp !== 'number' || exp - iat >= MIN_SECONDS)
    return undefined;
  const seconds = exp - iat;
  const span = seconds % 60 === 0 && seconds >= 120 ? `${seconds / 60} minutes` : `${seconds} s`;
  return warning('token.lifetime', `Access tokens are valid for only ${span}.`, {
    why: 'VS Code and others refresh continuously once less than five minutes are left.',
    remedy:
      'have the provider issue access tokens that are valid for 10 minutes or longer (in Keycloak: Realm settings, Tokens, Access Token Lifespan).',
  });
}

/** Reports checks that require a provider token. */
const reportMissingToken = (baseUrl: string) =>
  unknown(
    'token',
    "whether the provider's tokens are accepted (audience, issuer, JWT or opaque), without one.",
    {
      remedy: `log in at ${baseUrl}/playground, which says what is wrong with the token, or pass one of a user: --token-file FILE`,
    },
  );
