// §18.6, RFC 8693: the gateway asks the provider for a token by which it may call another service for a user.

import type { ProviderClientConfig } from '../../config/groups/provider.ts';
import { parseObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import type { ProviderEndpoints } from '../auth/provider-metadata.ts';
import { authenticateClient, type ProviderApi } from './provider-api.ts';

export interface TokenExchangeRequest {
  /** The caller's token, as `/mcp` accepts it. A secret. */
  readonly subjectToken: string;
  readonly audience: string;
  readonly scope: string | undefined;
}

export type TokenExchangeResult =
  | {
      readonly kind: 'issued';
      readonly token: string;
      /** Undefined where the provider does not say. */
      readonly expiresInSeconds: number | undefined;
    }
  /** `reason` is for the log: no secret is in it. */
  | { readonly kind: 'refused'; readonly reason: string };

/** @throws GatewayError when the provider cannot be asked. */
export type ExchangeToken = (request: TokenExchangeRequest) => Promise<TokenExchangeResult>;

export interface ExchangeTokenDeps {
  readonly providerClient: ProviderClientConfig;
  readonly endpoints: ProviderEndpoints;
  readonly api: ProviderApi;
}

const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

export function createExchangeToken(deps: ExchangeTokenDeps): ExchangeToken {
  const { providerClient, endpoints, api } = deps;

  return async function exchangeToken({ subjectToken, audience, scope }) {
    const url = await endpoints.findTokenUrl();
    const { status, body, refusal } = await api.post(
      authenticateClient(providerClient, {
        url,
        form: [
          ['grant_type', 'urn:ietf:params:oauth:grant-type:token-exchange'],
          ['subject_token', subjectToken],
          ['subject_token_type', ACCESS_TOKEN],
          ['requested_token_type', ACCESS_TOKEN],
          ['audience', audience],
          ...(scope === undefined ? [] : [['scope', scope] as const]),
        ],
      }),
    );
    // A provider in trouble is not one that refuses.
    if (status >= 500 || status === 429)
      throw new Error(refusal?.message ?? `The provider answered ${status}.`);
    if (refusal !== undefined) return { kind: 'refused', reason: refusal.message };
    return readResponse(body);
  };
}

/** RFC 6750 §2.1: what may stand in a header. */
const BEARER_TOKEN = /^[A-Za-z0-9\-._~+/]{1,16384}=*$/;

/** RFC 8693 §2.2.1. */
function readResponse(body: Uint8Array): TokenExchangeResult {
  const response = parseObject(body);
  if (response === undefined) return refuse('is not a JSON object');
  const { access_token: token, token_type: type, expires_in: expiresIn } = response;
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') {
    return refuse(`has token_type ${quote(type, 40)}, and must have "Bearer"`);
  }
  if (typeof token !== 'string' || !BEARER_TOKEN.test(token)) {
    return refuse('has no access_token that can be sent');
  }
  // Some write numbers as text.
  const seconds = Number(expiresIn);
  return {
    kind: 'issued',
    token,
    expiresInSeconds: expiresIn != null && Number.isFinite(seconds) ? seconds : undefined,
  };
}

const refuse = (problem: string): TokenExchangeResult => ({
  kind: 'refused',
  reason: `The provider's answer to the token exchange ${problem}.`,
});
