// §5.11: what the gateway asks the provider for itself: who logged in, and later whether they still may. Nothing but what
// OpenID Connect promises is needed of its tokens.
import type { ProviderEndpoints } from '../../auth/provider-metadata.ts';
import type { BrokerConfig } from '../../config/groups/oauth.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { ProviderTokens } from '../../grants/grant.ts';
import type { Clock } from '../../platform/clock.ts';
import { parseObject } from '../../platform/json.ts';
import { forwardRefusal } from '../broker/provider-refusals.ts';
import {
  authenticateClient,
  failIfProviderClientRefused,
  type ProviderApi,
  type ProviderResponse,
} from '../provider/provider-api.ts';
import {
  buildCallbackUrl,
  buildRefreshParameters,
  type ProviderParametersConfig,
  type ProviderTokenResponse,
} from '../provider/provider-parameters.ts';

/** What the provider answered: its tokens are good, whoever they turn out to be of. */
export interface ProviderAnswer {
  readonly answer: ProviderTokenResponse;
  readonly tokens: ProviderTokens;
}

/** A code of the provider, and what goes with it. */
export interface ProviderCode {
  readonly code: string;
  readonly codeVerifier: string;
}

export interface ProviderLogins {
  /** @throws GatewayError where nobody logged in by it, or the provider cannot be asked. */
  redeem(code: ProviderCode): Promise<ProviderAnswer>;
  /**
   * Undefined where the provider says that the grant has ended.
   *
   * @throws GatewayError where it cannot be asked, or its answer does not say.
   */
  renew(refreshToken: string): Promise<ProviderAnswer | undefined>;
  /** RFC 7009. Never rejects: what is revoked here has ended here, whatever the provider says. */
  revoke(tokens: ProviderTokens): Promise<void>;
}

export interface ProviderLoginsDeps {
  readonly config: ProviderParametersConfig & Pick<BrokerConfig, 'providerClient'>;
  readonly api: ProviderApi;
  /** Of its own: a revocation endpoint that stalls must keep nobody from logging in. */
  readonly revocationApi: ProviderApi;
  readonly endpoints: ProviderEndpoints;
  readonly clock: Clock;
}

type Form = readonly (readonly [name: string, value: string])[];

export function createProviderLogins(deps: ProviderLoginsDeps): ProviderLogins {
  const { config, api, revocationApi, endpoints, clock } = deps;
  const { provider, providerClient } = config;

  const post = (url: string, form: Form, by = api): Promise<ProviderResponse> =>
    by.post(authenticateClient(providerClient, { url, form }));

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
      if (response.status !== 200) failRefused(response, undefined);
      const answer = readAnswer(response, askedAt, undefined);
      return 'error' in answer ? failAnswered(answer.error) : answer;
    },
    async renew(refreshToken) {
      const askedAt = clock.now();
      const response = await post(await endpoints.findTokenUrl(), [
        ['grant_type', 'refresh_token'],
        ['refresh_token', refreshToken],
        ...buildRefreshParameters(config, undefined, []),
      ]);
      failIfProviderClientRefused(response);
      const { spentRefreshTokenError } = provider.quirks;
      const hasEnded = (code: string | undefined) =>
        code !== undefined && (code === 'invalid_grant' || code === spentRefreshTokenError);
      if (response.status === 200) {
        const answer = readAnswer(response, askedAt, refreshToken);
        if (!('error' in answer)) return answer;
        return hasEnded(answer.error) ? undefined : failAnswered(answer.error);
      }
      return hasEnded(response.refusal?.code)
        ? undefined
        : failRefused(response, spentRefreshTokenError);
    },
    async revoke({ refreshToken, accessToken }) {
      const token = refreshToken ?? accessToken;
      if (token === undefined) return;
      try {
        const hint = refreshToken === undefined ? 'access_token' : 'refresh_token';
        const form: Form = [
          ['token', token],
          ['token_type_hint', hint],
        ];
        await post(await endpoints.findRevocationUrl(), form, revocationApi);
      } catch {
        // It may have no such endpoint, or be down: the token dies of age.
      }
    },
  };
}

/** `held` is the refresh token that stays where the answer brings none (RFC 6749 §6). */
function readAnswer(
  { body }: ProviderResponse,
  askedAt: number,
  held: string | undefined,
): ProviderAnswer | { readonly error: string } {
  const answer = parseObject(body) ?? failUnreadable();
  // GitHub and Slack refuse with 200. An answer without a token says nothing of anybody.
  if (typeof answer.error === 'string') return { error: answer.error };
  if (readText(answer.access_token) === undefined) failAnswered('no access token');
  const seconds = Number(answer.expires_in);
  return {
    answer,
    tokens: {
      accessToken: readText(answer.access_token),
      expiresAt: seconds > 0 ? askedAt + seconds * 1000 : undefined,
      refreshToken: readText(answer.refresh_token) ?? held,
    },
  };
}

const readText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

const failUnreadable = (): never =>
  fail('upstream_failed', {
    details: "The identity provider's answer is not a JSON object.",
    cause: new Error("the token endpoint's answer is not a JSON object"),
  });

function failAnswered(said: string): never {
  return fail('upstream_failed', {
    details: 'The identity provider gave no tokens.',
    cause: new Error(`The token endpoint answered 200, and ${said}`),
  });
}

/** @throws GatewayError always. */
function failRefused(
  response: ProviderResponse,
  spentRefreshTokenError: string | undefined,
): never {
  const { error } = forwardRefusal(response, spentRefreshTokenError);
  const said = error?.message ?? `The provider answered ${response.status}.`;
  return fail('upstream_failed', {
    details: `The identity provider refused the login. ${said}`,
    cause: new Error(said),
  });
}
