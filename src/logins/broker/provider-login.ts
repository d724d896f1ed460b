// §5.11: what the gateway asks the provider for itself: who logged in, and later whether they still may. Nothing but what
// OpenID Connect promises is needed of its tokens.

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
import {
  buildCallbackUrl,
  buildRefreshParameters,
  type ProviderTokenResponse,
} from '../provider/provider-parameters.ts';
import type { BrokerRuntime } from './runtime.ts';

export type ProviderLogins = ReturnType<typeof createProviderLogins>;

export function createProviderLogins(
  runtime: BrokerRuntime,
  endpoints: ProviderEndpoints,
  metadata: ProviderMetadata,
  verifier: IdTokenVerifier,
) {
  const { oauth, baseUrl, fetch, clock } = runtime;
  const { listNamedClaims } = runtime.servers;
  const { provider, providerClient } = oauth;
  const { issuer } = provider;
  const { errorCodes, spentRefreshTokenError, accessTokensLast = false } = provider.quirks;
  const api = createProviderApi(fetch, errorCodes);

  /** Some providers say who logs in by an ID token, and one has an API for it. */
  const sources = {
    openid: () => ({
      readIdentity: createReadIdentity(runtime, verifier, metadata, listNamedClaims),
      // An API of its own: a revocation endpoint that stalls must keep nobody from logging in.
      revoke: createRevokeTokens(providerClient, createProviderApi(fetch), endpoints),
    }),
    github: () => ({
      readIdentity: createReadGithubIdentity(runtime, listNamedClaims),
      revoke: createRevokeGithubToken(runtime),
    }),
  };

  async function post(form: readonly FormPair[]) {
    const url = await endpoints.findTokenUrl();
    const response = await api.post(authenticateClient(providerClient, { url, form }));
    const { status, refusal } = response;
    // The gateway's credentials are no client's matter: clients that get `invalid_client` or a 401 throw away their registration and
    // their tokens, which are good.
    if (status === 401 || refusal?.isProviderClientRefused)
      fail('gateway_refused_by_provider', { cause: refusal?.message });
    return response;
  }

  return {
    ...sources[provider.login](),
    findLoginRefusal: createFindLoginRefusal(oauth.identity, runtime.config.server.displayName),
    /** @throws GatewayError where nobody logged in by it, or the provider cannot be asked. */
    async redeem(code: string, codeVerifier: string): Promise<ProviderAnswer> {
      const askedAt = clock.now();
      const response = await post([
        ['grant_type', 'authorization_code'],
        ['code', code],
        ['redirect_uri', buildCallbackUrl(baseUrl)],
        ['code_verifier', codeVerifier],
      ]);
      const { tokens, ...rest } = readTokenAnswer(response, issuer, askedAt);
      const isLasting =
        accessTokensLast && tokens.refreshToken === undefined && tokens.expiresAt === undefined;
      return { ...rest, tokens: isLasting ? { ...tokens, isLasting } : tokens };
    },
    /**
     * Undefined where the provider says that the grant has ended. Where there is no refresh token, it is what is held: whoever
     * reads whose it is asks the provider.
     *
     * @throws GatewayError where it cannot be asked, or its answer does not say.
     */
    async renew(held: ProviderTokens): Promise<ProviderAnswer | undefined> {
      const { refreshToken, accessToken } = held;
      if (refreshToken === undefined)
        return { answer: { access_token: accessToken }, tokens: held, problem: undefined };
      const askedAt = clock.now();
      const response = await post([
        ['grant_type', 'refresh_token'],
        ['refresh_token', refreshToken],
        ...buildRefreshParameters(oauth),
      ]);
      const code = response.refusal?.code;
      if (code === 'invalid_grant' || (code !== undefined && code === spentRefreshTokenError))
        return undefined;
      const { tokens, ...rest } = readTokenAnswer(response, issuer, askedAt);
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
    // Nothing that a client sends reaches the provider but scopes and wishes for its page: it can do nothing about this.
    fail('gateway_request_refused', { details: `${MISCONFIGURED} ${refusal?.message}` });
  }
  const said = refusal?.message ?? `The provider answered ${status}.`;
  return fail('upstream_failed', {
    details: `The identity provider refused the login. ${said}`,
    cause: new Error(said),
  });
}

/** RFC 6749 §4.1.2.1 and §5.2, OpenID Connect Core §3.1.2.6: these pass, or a new login helps. */
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

// RFC 6749 §5.1: what the provider's token endpoint answered, member by member. What cannot be used is named, for whoever has
// to have it mended.

/** The provider's answer: its tokens are good, whoever they turn out to be of. */
export interface ProviderAnswer {
  readonly answer: ProviderTokenResponse;
  readonly tokens: ProviderTokens;
  /** Why nothing can be done with it. Its refresh token is good all the same, and the one before may be worthless. */
  readonly problem: GatewayError | undefined;
}

/** `askedAt` in epoch milliseconds. @throws GatewayError where there are no tokens, or there is nothing to read. */
function readTokenAnswer(
  response: ProviderResponse,
  issuer: string,
  askedAt: number,
): ProviderAnswer {
  const { status, refusal, body } = response;
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

/** Some write numbers as text. */
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
  // A token is never shown.
  const shown = name === 'expires_in' || found === undefined ? found : `a ${typeof found}`;
  return createUnusableAnswer(issuer, name, shown, expected);
}

function createUnusableAnswer(issuer: string, member: string, found: unknown, expected: string) {
  const what = found === undefined ? 'is missing' : `is ${quote(found)}`;
  return new GatewayError('unusable_provider_answer', {
    details: `${catalogue.unusable_provider_answer.details} Of the answer of ${issuer}, ${member} ${what}; it must be ${expected}.`,
    facts: { member, found: quote(found), expected },
  });
}
