// §5.11: the gateway's own requests to the provider: redeeming its code, renewing, revoking. They rely only on what OpenID Connect
// guarantees about tokens.

import { catalogue } from '../../errors/catalogue.ts';
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { FormPair } from '../../http/oauth-client/client-authentication.ts';
import {
  authenticateClient,
  createProviderApi,
  createRevokeTokens,
  MISCONFIGURED,
  type ProviderResponse,
} from '../../http/oauth-client/provider-api.ts';
import type {
  ProviderEndpoints,
  ProviderMetadata,
} from '../../http/oauth-client/provider-metadata.ts';
import { type JsonObject, parseObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import type { IdTokenVerifier } from '../auth/id-token.ts';
import type { ProviderTokens } from '../grants/grant.ts';
import { createReadGithubIdentity, createRevokeGithubToken } from '../identity/github.ts';
import { readText } from '../identity/identity.ts';
import { createFindLoginRefusal } from '../identity/login-policy.ts';
import { createReadIdentity } from '../identity/read-identity.ts';
import { buildCallbackUrl, buildRefreshParameters } from './login.ts';
import type { BrokerRuntime } from './runtime.ts';

export type ProviderLogins = ReturnType<typeof createProviderLogins>;

export function createProviderLogins(
  runtime: BrokerRuntime,
  endpoints: ProviderEndpoints,
  metadata: ProviderMetadata,
  verifier: IdTokenVerifier,
) {
  const { oauth, baseUrl, fetch, clock } = runtime;
  const { provider, providerClient } = oauth;
  const { issuer } = provider;
  const { errorCodes, spentRefreshTokenError, accessTokensLast = false } = provider.quirks;
  const api = createProviderApi(fetch, errorCodes);

  /** Some providers identify users by an ID token, one by an API. */
  const sources = {
    openid: () => ({
      readIdentity: createReadIdentity(runtime, verifier, metadata),
      // A separate limit: a stalled revocation endpoint must not block logins.
      revoke: createRevokeTokens(providerClient, createProviderApi(fetch), endpoints),
    }),
    github: () => ({
      readIdentity: createReadGithubIdentity(runtime),
      revoke: createRevokeGithubToken(runtime),
    }),
  };

  async function post(form: readonly FormPair[]) {
    const askedAt = clock.now();
    const url = await endpoints.findTokenUrl();
    const response = await api.post(authenticateClient(providerClient, { url, form }));
    const { status, refusal } = response;
    // The gateway's credentials are not the client's concern: a client that gets `invalid_client` or a 401 discards its
    // registration and its valid tokens.
    if (status === 401 || refusal?.isProviderClientRefused)
      fail('gateway_refused_by_provider', { cause: refusal?.message });
    return { ...response, askedAt };
  }

  return {
    ...sources[provider.login](),
    findLoginRefusal: createFindLoginRefusal(oauth.identity, runtime.config.server.displayName),
    /** @throws GatewayError if the code is refused, or the provider cannot be reached. */
    async redeem(code: string, codeVerifier: string): Promise<ProviderAnswer> {
      const response = await post([
        ['grant_type', 'authorization_code'],
        ['code', code],
        ['redirect_uri', buildCallbackUrl(baseUrl)],
        ['code_verifier', codeVerifier],
      ]);
      const { tokens, ...rest } = readTokenAnswer(response, issuer);
      const isLasting =
        accessTokensLast && tokens.refreshToken === undefined && tokens.expiresAt === undefined;
      return { ...rest, tokens: isLasting ? { ...tokens, isLasting } : tokens };
    },
    /**
     * Undefined if the provider says that the grant has ended. Without a refresh token, returns the held tokens: reading the
     * identity asks the provider.
     *
     * @throws GatewayError if the provider cannot be reached, or its answer is inconclusive.
     */
    async renew(held: ProviderTokens): Promise<ProviderAnswer | undefined> {
      const { refreshToken, accessToken } = held;
      if (refreshToken === undefined)
        return { answer: { access_token: accessToken }, tokens: held, problem: undefined };
      const response = await post([
        ['grant_type', 'refresh_token'],
        ['refresh_token', refreshToken],
        ...buildRefreshParameters(oauth),
      ]);
      const code = response.refusal?.code;
      if (code === 'invalid_grant' || (code !== undefined && code === spentRefreshTokenError))
        return undefined;
      const { tokens, ...rest } = readTokenAnswer(response, issuer);
      return { ...rest, tokens: { ...tokens, refreshToken: tokens.refreshToken ?? refreshToken } };
    },
  };
}

/** @throws GatewayError always. */
function failRefused({ status, refusal }: ProviderResponse, issuer: string): never {
  const code = refusal?.code;
  const isKnown = code !== undefined && OF_CLIENT_OR_USER.has(code);
  if (status < 400 && !isKnown)
    throw createUnusableAnswer(
      issuer,
      refusal === undefined ? 'status' : 'error',
      code ?? status,
      refusal === undefined ? '200' : 'tokens, or an error of RFC 6749',
    );
  if (code !== undefined && !isKnown) {
    // Clients influence only scopes and hints for the login page: they cannot cause this.
    fail('gateway_request_refused', { details: `${MISCONFIGURED} ${refusal?.message}` });
  }
  const said = refusal?.message ?? `The provider answered ${status}.`;
  return fail('upstream_failed', {
    details: `The identity provider refused the login. ${said}`,
    cause: new Error(said),
  });
}

/** RFC 6749 §4.1.2.1 and §5.2, OpenID Connect Core §3.1.2.6: temporary errors, and those that a new login solves. */
const OF_CLIENT_OR_USER = new Set([
  'invalid_grant',
  'invalid_scope',
  'access_denied',
  'login_required',
  'interaction_required',
  'consent_required',
  'account_selection_required',
  'temporarily_unavailable',
  'server_error',
]);

// RFC 6749 §5.1: validates the provider's token response, member by member. Errors name the member, for the person who has to fix
// it.

/** The provider's response: its tokens are valid, whatever user they belong to. */
export interface ProviderAnswer {
  /** RFC 6749 §5.1. */
  readonly answer: JsonObject;
  readonly tokens: ProviderTokens;
  /** Why the response is unusable. Its refresh token is valid all the same, and the former one may be worthless. */
  readonly problem: GatewayError | undefined;
}

/** `askedAt` in epoch milliseconds. @throws GatewayError without tokens, or for an unreadable response. */
function readTokenAnswer(
  response: ProviderResponse & { readonly askedAt: number },
  issuer: string,
): ProviderAnswer {
  const { status, refusal, body, askedAt } = response;
  if (status !== 200 || refusal !== undefined) return failRefused(response, issuer);
  const answer = parseObject(body);
  if (answer === undefined) throw createUnusableAnswer(issuer, 'body', undefined, 'a JSON object');
  const unusable = MEMBERS.find(([name, isGood]) => !isGood(answer[name]));
  const seconds = Number(answer.expires_in);
  return {
    answer,
    tokens: {
      accessToken: readText(answer.access_token),
      expiresAt: seconds > 0 ? askedAt + seconds * 1000 : undefined,
      refreshToken: readText(answer.refresh_token),
    },
    problem: unusable && describeProblem(unusable, answer, issuer),
  };
}

const isAbsent = (found: unknown) => found === undefined || found === null || found === '';

const isText = (found: unknown) => readText(found) !== undefined;

const isTextIfThere = (found: unknown) => isAbsent(found) || isText(found);

/** Some providers write numbers as text. */
const isSecondsIfThere = (found: unknown) =>
  isAbsent(found) ||
  (typeof found === 'number' && Number.isFinite(found)) ||
  (typeof found === 'string' && /^\s*\d+(\.\d+)?\s*$/.test(found));

type Member = readonly [name: string, isGood: (found: unknown) => boolean, expected: string];

const MEMBERS: readonly Member[] = [
  ['access_token', isText, 'a text'],
  ['expires_in', isSecondsIfThere, 'a number of seconds'],
  ['refresh_token', isTextIfThere, 'a text'],
  ['id_token', isTextIfThere, 'a text'],
];

function describeProblem([name, , expected]: Member, answer: JsonObject, issuer: string) {
  const { [name]: found } = answer;
  // Never shows a token.
  const shown = name === 'expires_in' || found === undefined ? found : `a ${typeof found}`;
  return createUnusableAnswer(issuer, name, shown, expected);
}

function createUnusableAnswer(issuer: string, member: string, found: unknown, expected: string) {
  const what = found === undefined ? 'is missing' : `is ${quote(found)}`;
  return new GatewayError('unusable_provider_answer', {
    details: `${catalogue.unusable_provider_answer.details} In the answer of ${issuer}, ${member} ${what}; it must be ${expected}.`,
    facts: { member, found: quote(found), expected },
  });
}
