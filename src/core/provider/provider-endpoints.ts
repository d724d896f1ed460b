// OpenID Connect Discovery §3: where the provider's endpoints are, unless a setting says it.
import type { OAuthConfig } from '../config/groups/oauth.ts';
import { fail } from '../errors/gateway-error.ts';
import type { ProviderDocument, ProviderMetadata } from './provider-metadata.ts';

export interface ProviderEndpoints {
  /** @throws GatewayError `not_configured`, or `internal_error` while the provider is down. */
  authorization(): Promise<string>;
  token(): Promise<string>;
  revocation(): Promise<string>;
  /**
   * RFC 9207 §2.3: whether the provider names itself in its redirects; undefined when its discovery
   * document was never fetched and cannot be now.
   */
  sendsIssuer(): Promise<boolean | undefined>;
  readonly issuer: string;
}

type Endpoint = 'authorization_endpoint' | 'token_endpoint' | 'revocation_endpoint';

export function createProviderEndpoints(
  configured: OAuthConfig['endpoints'],
  metadata: ProviderMetadata,
): ProviderEndpoints {
  async function document(): Promise<ProviderDocument> {
    try {
      return await metadata.get();
    } catch (cause) {
      return fail('internal_error', {
        details:
          "The provider's discovery document cannot be used now; the gateway's log says why.",
        cause,
      });
    }
  }

  async function find(url: string | undefined, member: Endpoint, variable: string) {
    return (
      url ??
      (await document())[member] ??
      fail('not_configured', {
        details: `${variable} is not set on this service, and the provider's discovery document has no ${member}.`,
      })
    );
  }

  return {
    issuer: metadata.issuer,
    authorization: () =>
      find(configured.authorizationUrl, 'authorization_endpoint', 'OAUTH_AUTHORIZATION_URL'),
    token: () => find(configured.tokenUrl, 'token_endpoint', 'OAUTH_TOKEN_URL'),
    revocation: () => find(configured.revocationUrl, 'revocation_endpoint', 'OAUTH_REVOCATION_URL'),
    sendsIssuer: async () => {
      const known = await metadata.get().catch(() => undefined);
      return known && known.authorization_response_iss_parameter_supported === true;
    },
  };
}
