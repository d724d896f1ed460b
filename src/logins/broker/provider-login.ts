// §5.11: what the gateway asks the provider for itself: who logged in, and later whether they still may. Nothing but what
// OpenID Connect promises is needed of its tokens.

import type { BrokerConfig } from '../../config/groups/oauth.ts';
import { fail } from '../../errors/gateway-error.ts';
import {
  authenticateClient,
  failIfProviderClientRefused,
  MISCONFIGURED,
  type ProviderApi,
  type ProviderResponse,
  type RevokeTokens,
} from '../../http/oauth-client/provider-api.ts';
import type { ProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ProviderTokens } from '../grants/grant.ts';
import {
  buildCallbackUrl,
  buildRefreshParameters,
  type ProviderParametersConfig,
} from '../provider/provider-parameters.ts';
import { failUnusableAnswer, type ProviderAnswer, readTokenAnswer } from './token-answer.ts';

/** A code of the provider, and what goes with it. */
export interface ProviderCode {
  readonly code: string;
  readonly codeVerifier: string;
}

export interface ProviderLogins {
  /** @throws GatewayError where nobody logged in by it, or the provider cannot be asked. */
  redeem(code: ProviderCode): Promise<ProviderAnswer>;
  /**
   * Undefined where the provider says that the grant has ended. Where there is no refresh token, it is what is held: whoever
   * reads whose it is asks the provider.
   *
   * @throws GatewayError where it cannot be asked, or its answer does not say.
   */
  renew(held: ProviderTokens): Promise<ProviderAnswer | undefined>;
  readonly revoke: RevokeTokens;
}

export interface ProviderLoginsDeps {
  readonly config: ProviderParametersConfig &
    Pick<BrokerConfig, 'providerClient'> & { readonly baseUrl: string };
  readonly api: ProviderApi;
  readonly revoke: RevokeTokens;
  readonly endpoints: ProviderEndpoints;
  readonly clock: Clock;
}

type Form = readonly (readonly [name: string, value: string])[];

export function createProviderLogins(deps: ProviderLoginsDeps): ProviderLogins {
  const { config, api, endpoints, clock } = deps;
  const { provider, providerClient } = config;
  const { spentRefreshTokenError, accessTokensLast = false } = provider.quirks;

  const post = (url: string, form: Form): Promise<ProviderResponse> =>
    api.post(authenticateClient(providerClient, { url, form }));

  return {
    async redeem({ code, codeVerifier }) {
      const askedAt = clock.now();
      const response = await post(await endpoints.findTokenUrl(), [
        ['grant_type', 'authorization_code'],
        ['code', code],
        ['redirect_uri', buildCallbackUrl(config.baseUrl)],
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
        ...buildRefreshParameters(config),
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
    revoke: deps.revoke,
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
    // Of what a client sends nothing reaches the provider but scopes and wishes for its page: it can do nothing about this.
    fail('gateway_request_refused', { details: `${MISCONFIGURED} ${refusal.message}` });
  }
  const said = refusal?.message ?? `The provider answered ${status}.`;
  return fail('upstream_failed', {
    details: `The identity provider refused the login. ${said}`,
    cause: new Error(said),
  });
}

/** Whether it is a code of which the specifications say what it means for a client or a user. */
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
