// OpenID Connect Discovery §3: where the provider's endpoints are, unless a setting says it.
import type { OAuthConfig } from '../../config/groups/oauth.ts';
import { fail } from '../../errors/gateway-error.ts';
import { type ProviderMetadata, requireProviderDocument } from './provider-metadata.ts';

export interface ProviderEndpoints {
  /** @throws GatewayError `not_configured`, or `internal_error` while the provider is down. */
  findAuthorizationUrl(): Promise<string>;
  findTokenUrl(): Promise<string>;
  findRevocationUrl(): Promise<string>;
  /**
   * RFC 9207 §2.3: whether the provider names itself in its redirects; undefined when its discovery
   * document was never fetched and cannot be now.
   */
  sendsIssuer(): Promise<boolean | undefined>;
  readonly issuer: string;
}

type EndpointMember = 'authorization_endpoint' | 'token_endpoint' | 'revocation_endpoint';

export function createProviderEndpoints(
  configured: OAuthConfig['endpoints'],
  metadata: ProviderMetadata,
): ProviderEndpoints {
  async function findUrl(url: string | undefined, member: EndpointMember, variable: string) {
    return (
      url ??
      (await requireProviderDocument(metadata))[member] ??
      fail('not_configured', {
        details: `${variable} is not set on this gateway, and the provider's discovery document has no ${member}.`,
      })
    );
  }

  return {
    issuer: metadata.issuer,
    findAuthorizationUrl: () =>
      findUrl(configured.authorizationUrl, 'authorization_endpoint', 'OAUTH_AUTHORIZATION_URL'),
    findTokenUrl: () => findUrl(configured.tokenUrl, 'token_endpoint', 'OAUTH_TOKEN_URL'),
    findRevocationUrl: () =>
      findUrl(configured.revocationUrl, 'revocation_endpoint', 'OAUTH_REVOCATION_URL'),
    async sendsIssuer() {
      const document = await metadata.get().catch(() => undefined);
      return document && document.authorization_response_iss_parameter_supported === true;
    },
  };
}
