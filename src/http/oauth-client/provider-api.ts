// §4.7: posts forms to the provider, with bounded concurrency and the client registered there, and parses its responses.

import type { ProviderClientConfig } from '../../config/groups/provider.ts';
import type { ProviderQuirks } from '../../config/provider-profiles.ts';
import { fail } from '../../errors/gateway-error.ts';
import {
  type Fetch,
  FetchError,
  type FetchedResponse,
  fetchWithLimits,
} from '../../platform/fetch-with-limits.ts';
import { parseObject } from '../../platform/json.ts';
import { quote, toSentence } from '../../platform/text.ts';
import type { Reply } from '../endpoint/message.ts';
import {
  type AuthenticatedForm,
  authenticateBySecret,
  createFormRequest,
  type FormPair,
  redactSent,
} from './client-authentication.ts';
import type { ProviderEndpoints } from './provider-metadata.ts';

type ProviderApi = ReturnType<typeof createProviderApi>;

const LIMITS = { timeoutMs: 10_000, maxBytes: 1_048_576 };
const MAX_IN_FLIGHT = 100;
/** Half of the request timeout. */
const RETRY_AFTER_SECONDS = 5;

/** `errorCodes` maps the provider's proprietary error codes to those of RFC 6749. */
export function createProviderApi(
  fetch: Fetch,
  errorCodes: NonNullable<ProviderQuirks['errorCodes']> = {},
) {
  let inFlight = 0;

  return {
    /**
     * Sends only the parameters of the caller's request: no cookies, no headers.
     *
     * @throws GatewayError `upstream_failed` if there is no response; `provider_busy` immediately if too many requests are in
     * flight, so that a stalling provider does not hold up every request.
     */
    async post(request: ProviderRequest): Promise<ProviderResponse> {
      if (inFlight >= MAX_IN_FLIGHT)
        fail('provider_busy', { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } });
      inFlight += 1;
      try {
        const { headers, ...post } = createFormRequest(request);
        const init = { ...post, headers: { ...headers, Accept: 'application/json' } };
        const answer = await fetchWithLimits(fetch, request.url, init, LIMITS);
        const contentType = answer.headers.get('content-type');
        return {
          status: answer.status,
          headers: contentType === null ? {} : { 'Content-Type': contentType },
          body: answer.body,
          refusal: readRefusal(answer, request, errorCodes),
        };
      } catch (cause) {
        if (cause instanceof FetchError) fail('upstream_failed', { cause });
        throw cause;
      } finally {
        inFlight -= 1;
      }
    },
  };
}

function readRefusal(
  { status, body }: FetchedResponse,
  { form, usesProviderClient }: ProviderRequest,
  errorCodes: Readonly<Record<string, string>>,
): ProviderRefusal | undefined {
  const { error, error_description: description, access_token: token } = parseObject(body) ?? {};
  // GitHub and Slack send errors with status 200.
  const isRefusal = status >= 400 || (typeof error === 'string' && token === undefined);
  if (!isRefusal) return undefined;
  const words = [error, description].filter((text) => typeof text === 'string').join(': ');
  const said = words === '' ? '' : ` ${redactSent(words, form).slice(0, 500)}`;
  const message = toSentence(`The provider answered ${status}${said}`);
  const code = typeof error === 'string' ? (errorCodes[error] ?? error) : undefined;
  const isProviderClientRefused = usesProviderClient && isClientError(code);
  return {
    code,
    message: isProviderClientRefused ? `${message} ${CHECK_PROVIDER_CLIENT}` : message,
    isProviderClientRefused,
  };
}

// Responses of the provider: as data for both modes, and as the reply for a client.

export interface ProviderResponse {
  readonly status: number;
  /** Only the content type: other headers of the provider do not concern a client. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Set for status 400 and above, and for an error with any other status. */
  readonly refusal: ProviderRefusal | undefined;
}

/** RFC 6749 §5.2. */
interface ProviderRefusal {
  /** The `error` of the response, if any, as a code of RFC 6749 §5.2. */
  readonly code: string | undefined;
  /** The provider's words as a sentence for the log, without secrets. */
  readonly message: string;
  /** True if the provider rejected the gateway's own client, which only an operator can fix. */
  readonly isProviderClientRefused: boolean;
}

export function renderProviderResponse(response: ProviderResponse): Reply {
  const { status, headers, body, refusal } = response;
  const isOurs = refusal?.isProviderClientRefused;
  const error: Reply['error'] | undefined = refusal && {
    key: isOurs ? 'gateway_refused_by_provider' : 'refused_by_provider',
    message: refusal.message,
    logLevel: isOurs ? 'warn' : undefined,
  };
  return {
    status,
    headers: { ...headers, 'Cache-Control': 'no-store' },
    body,
    ...(error && { error }),
  };
}

// §4.6, §4.7: the client registered with the provider is used for all clients of the gateway.

/** A form post to the provider. */
interface ProviderRequest extends AuthenticatedForm {
  readonly url: string;
  /** True if the request is authenticated as the gateway's client at the provider. */
  readonly usesProviderClient: boolean;
}

/** @throws GatewayError `not_configured` if OAUTH_CLIENT_ID is not set. */
export const requireClientId = ({ id }: ProviderClientConfig): string =>
  id ?? fail('not_configured', { details: 'OAUTH_CLIENT_ID is not set on this gateway.' });

/** Members with a client's credentials; those of another client are never passed on. */
const CREDENTIALS = new Set([
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
]);

/** RFC 6749 §2.3: adds the credentials of the gateway's client at the provider. */
export function authenticateClient(
  client: ProviderClientConfig,
  { url, form }: Pick<ProviderRequest, 'url' | 'form'>,
): ProviderRequest {
  const { secret, authMethod } = client;
  const method = secret === undefined ? 'none' : authMethod;
  const own = form.filter(([name]) => !CREDENTIALS.has(name));
  const authenticated = authenticateBySecret(
    { id: requireClientId(client), secret, method },
    own,
    true,
  );
  return { url, ...authenticated, usesProviderClient: true };
}

/** RFC 6749 §4.1.2.1, §5.2: true if the error concerns the client, not the request. */
export const isClientError = (error: unknown): boolean =>
  error === 'invalid_client' || error === 'unauthorized_client';

/** For the client. */
export const MISCONFIGURED = "The gateway is misconfigured; this is not the user's fault.";

/** For the log. */
export const CHECK_PROVIDER_CLIENT =
  'Check OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET and OAUTH_CLIENT_AUTH, and the client at the provider.';

// RFC 7009: revokes the provider's tokens of a login, best effort.

/** Never rejects: here the login has ended, whatever the provider responds. */
export type RevokeTokens = (tokens: {
  readonly refreshToken?: string | undefined;
  readonly accessToken?: string | undefined;
}) => Promise<void>;

/** Needs a separate `api`: a stalling revocation endpoint must not block logins. */
export const createRevokeTokens = (
  client: ProviderClientConfig,
  api: ProviderApi,
  endpoints: ProviderEndpoints,
): RevokeTokens =>
  async function revokeTokens({ refreshToken, accessToken }) {
    const token = refreshToken ?? accessToken;
    if (token === undefined) return;
    const hint = refreshToken === undefined ? 'access_token' : 'refresh_token';
    try {
      const url = await endpoints.findRevocationUrl();
      const form: readonly FormPair[] = [
        ['token', token],
        ['token_type_hint', hint],
      ];
      await api.post(authenticateClient(client, { url, form }));
    } catch {
      // The provider may have no such endpoint, or be down: the token expires on its own.
    }
  };

// §18.6, RFC 8693: requests a token from the provider that lets the gateway call another service on behalf of a user.

interface TokenExchangeRequest {
  /** The caller's token, as `/mcp` accepts it. A secret. */
  readonly subjectToken: string;
  readonly audience: string;
  readonly scope: string | undefined;
}

export type TokenExchangeResult =
  | {
      readonly kind: 'issued';
      readonly token: string;
      /** Undefined if the provider does not say. */
      readonly expiresInSeconds: number | undefined;
    }
  /** `reason` is for the log, without secrets. */
  | { readonly kind: 'refused'; readonly reason: string };

export type ExchangeToken = ReturnType<typeof createExchangeToken>;

const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

export const createExchangeToken = (
  client: ProviderClientConfig,
  api: ProviderApi,
  endpoints: ProviderEndpoints,
) =>
  /** @throws GatewayError if the provider cannot be reached. */
  async function exchangeToken({
    subjectToken,
    audience,
    scope,
  }: TokenExchangeRequest): Promise<TokenExchangeResult> {
    const form: readonly FormPair[] = [
      ['grant_type', 'urn:ietf:params:oauth:grant-type:token-exchange'],
      ['subject_token', subjectToken],
      ['subject_token_type', ACCESS_TOKEN],
      ['requested_token_type', ACCESS_TOKEN],
      ['audience', audience],
      ...(scope === undefined ? [] : [['scope', scope] as const]),
    ];
    const url = await endpoints.findTokenUrl();
    const { status, body, refusal } = await api.post(authenticateClient(client, { url, form }));
    // A failing provider is not a refusal.
    if (status >= 500 || status === 429)
      throw new Error(refusal?.message ?? `The provider answered ${status}.`);
    if (refusal !== undefined) return { kind: 'refused', reason: refusal.message };
    // RFC 8693 §2.2.1.
    const response = parseObject(body);
    if (response === undefined) return refuseExchange('is not a JSON object');
    const { access_token: token, token_type: type, expires_in: expiresIn } = response;
    if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
      return refuseExchange(`has token_type ${quote(type, 40)}, and must have "Bearer"`);
    if (typeof token !== 'string' || !BEARER_TOKEN.test(token))
      return refuseExchange('has no access_token that can be sent');
    // Some providers send numbers as text.
    const seconds = Number(expiresIn);
    return {
      kind: 'issued',
      token,
      expiresInSeconds: expiresIn != null && Number.isFinite(seconds) ? seconds : undefined,
    };
  };

/** RFC 6750 §2.1: the characters allowed in the header. */
const BEARER_TOKEN = /^[A-Za-z0-9\-._~+/]{1,16384}=*$/;

const refuseExchange = (problem: string): TokenExchangeResult => ({
  kind: 'refused',
  reason: `The provider's answer to the token exchange ${problem}.`,
});
