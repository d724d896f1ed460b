// --token: what the gateway says of a user's access token, and what the user gets by it.

import { GatewayError } from '../../../errors/gateway-error.ts';
import { isOwnToken } from '../../../http/endpoint/own-token.ts';
import { createCheckTokenUser } from '../../../logins/identity/login-policy.ts';
import { isObject, type JsonObject } from '../../../platform/json.ts';
import { describeCause } from '../../../platform/log.ts';
import { countNoun, quote } from '../../../platform/text.ts';
import { type Finding, type Found, failure, ok, unknown, warning } from '../finding.ts';
import type { ProbeAnswer } from '../instruments.ts';
import { isDiscovered } from '../settings/check-discovery.ts';
import { findBrokerConfig } from '../settings/check-own-tokens.ts';
import type { ProviderAtHand, SettingsAtHand } from '../settings/settings-at-hand.ts';
import { adviseOnLimit, createCall, readErrorData, readReason } from '../walk/read-answer.ts';
import type { Walk } from '../walk/walk.ts';
import {
  adviseOnToken,
  describeToken,
  describeTokenRefusal,
  judgeLifetime,
  readTokenParts,
  reportMissingToken,
} from './advise.ts';
import {
  explainOwnTokenRefusal,
  judgeOwnToken,
  refuseForeignToken,
  reportUntriedLogin,
} from './own-token.ts';

const CHECK = 'token';

export async function checkWalkToken(walk: Walk): Promise<Found> {
  const { token, clock } = walk;
  if (token === undefined) {
    if ((await walk.logIn())?.kind !== 'at-provider') return [];
    const report = (await walk.issuesOwnTokens()) ? reportUntriedLogin : reportMissingToken;
    return [report(walk.baseUrl)];
  }
  const opened = await call(walk, token, 'initialize', INITIALIZE);
  if (opened.status === 429)
    return unknown(CHECK, {
      what: 'whether the gateway accepts the token: it has received too many calls (429).',
      ...adviseOnLimit(opened, 'MCP'),
    });
  if (opened.status !== 200) return explainRefusal(opened, token);
  const session = opened.headers.get('mcp-session-id') ?? undefined;
  const listed = await call(walk, token, 'tools/list', {}, session);
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
}

const INITIALIZE: JsonObject = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'postern doctor', version: '1' },
};

const call = (
  { endpoint, probe }: Walk,
  token: string,
  method: string,
  params: JsonObject,
  session?: string,
): Promise<ProbeAnswer> =>
  probe(endpoint, createCall(method, params, createHeaders(token, session)));

const createHeaders = (token: string, session: string | undefined) => ({
  Authorization: `Bearer ${token}`,
  'MCP-Protocol-Version': '2025-06-18',
  ...(session !== undefined && { 'Mcp-Session-Id': session }),
});

function explainRefusal(answer: ProbeAnswer, token: string): Finding {
  const reason = readReason(answer);
  const { details } = readErrorData(answer);
  const said =
    typeof details === 'string' ? details : `${answer.status} ${answer.text.slice(0, 200)}`;
  if (isOwnToken(token)) return explainOwnTokenRefusal(token, reason, said);
  if (/its own tokens begin with pst_/.test(said)) return refuseForeignToken();
  const { check, ...advice } = adviseOnToken(reason, token);
  return failure(check ?? CHECK, { what: describeTokenRefusal('refuses', token, said), ...advice });
}

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
  if (tools.length === 0)
    return warning('tools', {
      what: 'The user of the token sees no tool.',
      remedy:
        'check the rules (`postern rules test`), and that the servers behind the gateway run.',
    });
  return ok(
    'tools',
    `The user sees ${countNoun(tools.length, 'tool')}: ${names.join(', ')}${tools.length > names.length ? ' …' : ''}.`,
  );
}

/** --token: what the gateway would say of a user's access token. */
export async function checkToken(settings: SettingsAtHand): Promise<Found> {
  const { access, config, token, clock } = settings;
  if (access === undefined || !config.auth.required) return [];
  const hasKeys = await isDiscovered(access);
  const own = findBrokerConfig(config);
  if (own !== undefined) {
    if (token === undefined) return hasKeys ? [reportUntriedLogin(config.server.baseUrl)] : [];
    const isOfProvider = own.tokens.acceptsProviderTokens && !isOwnToken(token);
    if (!isOfProvider) return judgeOwnToken(token, own, settings);
  }
  if (token === undefined) return hasKeys ? [reportMissingToken(config.server.baseUrl)] : [];
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
}

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
