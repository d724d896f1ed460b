// Spec §4.10, RFC 8414: authorization server metadata.
import { fail } from '../../core/errors/gateway-error.ts';
import { json, type Reply } from '../../core/message.ts';
import type { ProviderMetadata } from '../auth/provider-metadata.ts';
import { METADATA_CACHING, SCOPES } from './shared.ts';

export interface AuthorizationServerSettings {
  readonly baseUrl: string;
  readonly oidcIssuer: string | undefined;
  readonly oidcJwksUrl: string | undefined;
  readonly oauthRevocationUrl: string | undefined;
}

/** What OpenID providers sign with unless they say otherwise (OpenID Connect Core §3.1.3.7). */
const DEFAULT_ID_TOKEN_ALGORITHMS = ['RS256'] as const;

/**
 * The two documents that name this service's endpoints. `metadata` is the provider's discovery
 * document, itself cached for five minutes and served stale; undefined without an issuer.
 */
export function createAuthorizationServer(
  settings: AuthorizationServerSettings,
  metadata: ProviderMetadata | undefined,
): { metadata(): Promise<Reply>; openidConfiguration(): Promise<Reply> } {
  async function provider() {
    if (metadata === undefined) fail('not_found', { details: 'OIDC_ISSUER is not set.' });
    try {
      return await metadata.get();
    } catch (cause) {
      // With OIDC_JWKS_URL nothing in the documents depends on the provider's answer.
      if (settings.oidcJwksUrl !== undefined) return undefined;
      return fail('internal_error', {
        details: "The provider's discovery document cannot be fetched now.",
        cause,
      });
    }
  }

  return {
    async metadata() {
      const document = await provider();
      return json(200, serverMetadata(settings, document?.jwks_uri), METADATA_CACHING);
    },
    // Decisions 6: OpenID clients insist on the two further members.
    async openidConfiguration() {
      const document = await provider();
      const body = {
        ...serverMetadata(settings, document?.jwks_uri),
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported:
          document?.id_token_signing_alg_values_supported ?? DEFAULT_ID_TOKEN_ALGORITHMS,
      };
      return json(200, body, METADATA_CACHING);
    },
  };
}

const serverMetadata = (
  { baseUrl, oidcIssuer, oidcJwksUrl, oauthRevocationUrl }: AuthorizationServerSettings,
  discoveredJwksUri: string | undefined,
) => ({
  issuer: oidcIssuer,
  authorization_endpoint: `${baseUrl}/oauth/authorize`,
  token_endpoint: `${baseUrl}/oauth/token`,
  registration_endpoint: `${baseUrl}/oauth/register`,
  ...(oauthRevocationUrl && { revocation_endpoint: `${baseUrl}/oauth/revoke` }),
  jwks_uri: oidcJwksUrl ?? discoveredJwksUri,
  scopes_supported: SCOPES,
  response_types_supported: ['code'],
  grant_types_supported: ['authorization_code', 'refresh_token'],
  token_endpoint_auth_methods_supported: ['none'],
  code_challenge_methods_supported: ['S256'],
});
