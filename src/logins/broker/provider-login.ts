// §5.11: what the gateway asks the provider for itself: who logged in, and later whether they still may. Nothing but what
// OpenID Connect promises is needed of its tokens.

import { catalogue } from '../../errors/catalogue.ts';
import { fail, type GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import {
  authenticateClient,
  createProviderApi,
  createRevokeTokens,
  failIfProviderClientRefused,
  MISCONFIGURED,
  type ProviderResponse,
  type RevokeTokens,
} from '../../http/oauth-client/provider-api.ts';
import type {
  ProviderEndpoints,
  ProviderMetadata,
} from '../../http/oauth-client/provider-metadata.ts';
import { parseObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import type { IdTokenVerifier } from '../auth/id-token.ts';
import type { ProviderTokens } from '../grants/grant.ts';
import { createReadGithubIdentity, createRevokeGithubToken } from '../identity/github.ts';
import { createReadIdentity, type ReadIdentity } from '../identity/read-identity.ts';
import {
  buildCallbackUrl,
  buildRefreshParameters,
  type ProviderTokenResponse,
} from '../provider/provider-parameters.ts';
import type { BrokerRuntime } from './runtime.ts';

export interface ProviderLogins {
  /** @throws GatewayError where nobody logged in by it, or the provider cannot be asked. */
  redeem(code: { readonly code: string; readonly codeVerifier: string }): Promise<ProviderAnswer>;
  /**
   * Undefined where the provider says that the grant has ended. Where there is no refresh token, it is what is held: whoever
   * reads whose it is asks the provider.
   *
   * @throws GatewayError where it cannot be asked, or its answer does not say.
   */
  renew(held: ProviderTokens): Promise<ProviderAnswer | undefined>;
  readonly readIdentity: ReadIdentity;
  readonly revoke: RevokeTokens;
}

type Form = readonly (readonly [name: string, value: string])[];

/** `listNamedClaims` has those that rules name, as they stand now. */
export function createProviderLogins(
  runtime: BrokerRuntime,
  endpoints: ProviderEndpoints,
  metadata: ProviderMetadata,
  verifier: IdTokenVerifier,
  listNamedClaims: () => readonly string[],
): ProviderLogins {
  const { oauth, baseUrl, fetch, clock } = runtime;
  const { provider, providerClient } = oauth;
  const { errorCodes, spentRefreshTokenError, accessTokensLast = false } = provider.quirks;
  const api = createProviderApi(fetch, errorCodes);

  const post = (url: string, form: Form): Promise<ProviderResponse> =>
    api.post(authenticateClient(providerClient, { url, form }));

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

  return {
    ...sources[provider.login](),
    async redeem({ code, codeVerifier }) {
      const askedAt = clock.now();
      const response = await post(await endpoints.findTokenUrl(), [
        ['grant_type', 'authorization_code'],
        ['code', code],
        ['redirect_uri', buildCallbackUrl(baseUrl)],
        ['code_verifier', codeVerifier],
      ]);
      failIfProviderClientRefused(response);
      if (!isGranted(response)) return failRefused(response, provider.issuer);
      const { answer, tokens, problem } = readTokenAnswer(response, provider.issuer, askedAt);
      const isLasting =
        accessTokensLast && tokens.refreshToken === undefined && tokens.expiresAt === undefined;
      return { answer, tokens: isLasting ? { ...tokens, isLasting } : tokens, problem };
    },
    async renew(held) {
      const { refreshToken, accessToken } = held;
      if (refreshToken === undefined) {
        return { answer: { access_token: accessToken }, tokens: held, problem: undefined };
      }
      const askedAt = clock.now();
      const response = await post(await endpoints.findTokenUrl(), [
        ['grant_type', 'refresh_token'],
        ['refresh_token', refreshToken],
        ...buildRefreshParameters(oauth),
      ]);
      failIfProviderClientRefused(response);
      if (isGranted(response)) {
        const { tokens, ...rest } = readTokenAnswer(response, provider.issuer, askedAt);
        return {
          ...rest,
          tokens: { ...tokens, refreshToken: tokens.refreshToken ?? refreshToken },
        };
      }
      const code = response.refusal?.code;
      const hasEnded =
        code !== undefined && (code === 'invalid_grant' || code === spentRefreshTokenError);
      return hasEnded ? undefined : failRefused(response, provider.issuer);
    },
  };
}

const isGranted = ({ status, refusal }: ProviderResponse): boolean =>
  status === 200 && refusal === undefined;

/** @throws GatewayError always. */
function failRefused({ status, refusal }: ProviderResponse, issuer: string): never {
  if (status < 400 && !isKnownRefusal(refusal?.code)) {
    failUnusableAnswer(issuer, {
      member: refusal === undefined ? 'status' : 'error',
      found: refusal?.code ?? status,
      expected: refusal === undefined ? '200' : 'tokens, or an error of RFC 6749',
    });
  }
  if (refusal?.code !== undefined && !isKnownRefusal(refusal.code)) {
    // Nothing that a client sends reaches the provider but scopes and wishes for its page: it can do nothing about this.
    fail('gateway_request_refused', { details: `${MISCONFIGURED} ${refusal.message}` });
  }
  const said = refusal?.message ?? `The provider answered ${status}.`;
  return fail('upstream_failed', {
    details: `The identity provider refused the login. ${said}`,
    cause: new Error(said),
  });
}

/** True for a code of which the specifications say what it means for a client or a user. */
const isKnownRefusal = (code: string | undefined): boolean =>
  code !== undefined && OF_CLIENT_OR_USER.has(code);

/** RFC 6749 §4.1.2.1 and §5.2, OpenID Connect Core §3.1.2.6: these pass, or a new login helps. */
const OF_CLIENT_OR_USER: ReadonlySet<string> = new Set([
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
interface ProviderAnswer {
  readonly answer: ProviderTokenResponse;
  readonly tokens: ProviderTokens;
  /** Why nothing can be done with it. Its refresh token is good all the same, and the one before may be worthless. */
  readonly problem: GatewayError | undefined;
}

/** `askedAt` in epoch milliseconds. @throws GatewayError `unusable_provider_answer` where there is nothing to read. */
function readTokenAnswer(
  { body }: ProviderResponse,
  issuer: string,
  askedAt: number,
): ProviderAnswer {
  const answer =
    parseObject(body) ??
    failUnusableAnswer(issuer, { member: 'body', found: undefined, expected: 'a JSON object' });
  const unusable = MEMBERS.find(({ name, isGood }) => !isGood(answer[name]));
  const seconds = Number(answer.expires_in);
  return {
    answer,
    tokens: {
      accessToken: readText(answer.access_token),
      expiresAt: seconds > 0 ? askedAt + seconds * 1000 : undefined,
      refreshToken: readText(answer.refresh_token),
    },
    problem: unusable && describeProblem(unusable, answer[unusable.name], issuer),
  };
}

interface Member {
  readonly name: string;
  readonly isGood: (found: unknown) => boolean;
  readonly expected: string;
}

const isAbsent = (found: unknown): boolean => found === undefined || found === null || found === '';

const isText = (found: unknown): boolean => typeof found === 'string' && found !== '';

/** Some write numbers as text. */
const isSeconds = (found: unknown): boolean =>
  (typeof found === 'number' && Number.isFinite(found)) ||
  (typeof found === 'string' && /^\s*\d+(\.\d+)?\s*$/.test(found));

const MEMBERS: readonly Member[] = [
  { name: 'access_token', isGood: isText, expected: 'a text' },
  {
    name: 'expires_in',
    isGood: (found) => isAbsent(found) || isSeconds(found),
    expected: 'a number of seconds',
  },
  {
    name: 'refresh_token',
    isGood: (found) => isAbsent(found) || isText(found),
    expected: 'a text',
  },
  { name: 'id_token', isGood: (found) => isAbsent(found) || isText(found), expected: 'a text' },
];

const readText = (found: unknown): string | undefined =>
  typeof found === 'string' && found !== '' ? found : undefined;

function describeProblem(
  { name: member, expected }: Member,
  found: unknown,
  issuer: string,
): GatewayError {
  // A token is never shown.
  const shown = member === 'expires_in' || found === undefined ? found : `a ${typeof found}`;
  try {
    return failUnusableAnswer(issuer, { member, found: shown, expected });
  } catch (error) {
    return toGatewayError(error);
  }
}

interface FoundInAnswer {
  readonly member: string;
  readonly found: unknown;
  readonly expected: string;
}

/** @throws GatewayError `unusable_provider_answer`. */
function failUnusableAnswer(issuer: string, { member, found, expected }: FoundInAnswer): never {
  const what = found === undefined ? 'is missing' : `is ${quote(found)}`;
  return fail('unusable_provider_answer', {
    details: `${catalogue.unusable_provider_answer.details} Of the answer of ${issuer}, ${member} ${what}; it must be ${expected}.`,
    facts: { member, found: quote(found), expected },
  });
}
