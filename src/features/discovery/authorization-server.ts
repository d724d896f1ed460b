// Spec §4.10, RFC 8414: authorization server metadata.
import { fail } from '../../core/errors/gateway-error.ts';
import type { Reply } from '../../core/message.ts';
import type { ProviderDocument, ProviderMetadata } from '../../core/provider/provider-metadata.ts';
import { DEFAULT_SCOPES } from '../../core/scope.ts';
import { metadataReply } from './metadata-reply.ts';

export interface AuthorizationServerSettings {
  readonly baseUrl: string;
  readonly oidcIssuer: string | undefined;
  readonly oidcJwksUrl: string | undefined;
  readonly oauthRevocationUrl: string | undefined;
  readonly oauthMode: 'proxy' | 'broker';
  readonly oauthMetadataIssuer: 'self' | 'upstream';
}

export interface AuthorizationServer {
  metadata(): Promise<Reply>;
  openidConfiguration(): Promise<Reply>;
}

/** What OpenID providers sign with unless they say otherwise (OpenID Connect Core §3.1.3.7). */
const DEFAULT_ID_TOKEN_ALGORITHMS = ['RS256'] as const;

/**
 * The two documents that name this service's endpoints. `metadata` is the provider's discovery
 * document, itself cached for five minutes and served stale; undefined without an issuer.
 * `areDocumentsOffered` says whether clients may be known by a metadata document.
 */
export function createAuthorizationServer(
  settings: AuthorizationServerSettings,
  metadata: ProviderMetadata | undefined,
  areDocumentsOffered: () => Promise<boolean>,
): AuthorizationServer {
  async function provider() {
    if (metadata === undefined) fail('not_found', { details: 'OIDC_ISSUER is not set.' });
    try {
      return await metadata.get();
    } catch (cause) {
      // With OIDC_JWKS_URL nothing in the documents depends on the provider's answer.
      if (settings.oidcJwksUrl !== undefined) return undefined;
      return fail('internal_error', {
        details:
          "The provider's discovery document cannot be used now; the gateway's log says why.",
        cause,
      });
    }
  }

  async function members() {
    const [document, documentsOffered] = await Promise.all([provider(), areDocumentsOffered()]);
    return { document, metadata: serverMetadata(settings, document, documentsOffered) };
  }

  return {
    async metadata() {
      return metadataReply((await members()).metadata);
    },
    // OpenID clients insist on the two further members.
    async openidConfiguration() {
      const { document, metadata } = await members();
      const body = {
        ...metadata,
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported:
          document?.id_token_signing_alg_values_supported ?? DEFAULT_ID_TOKEN_ALGORITHMS,
      };
      return metadataReply(body);
    },
  };
}

function serverMetadata(
  settings: AuthorizationServerSettings,
  document: ProviderDocument | undefined,
  documentsOffered: boolean,
) {
  const { baseUrl, oauthMode } = settings;
  const isBroker = oauthMode === 'broker';
  const revokes =
    settings.oauthRevocationUrl ?? (isBroker ? document?.revocation_endpoint : undefined);
  return {
    issuer: isBroker || settings.oauthMetadataIssuer === 'self' ? baseUrl : settings.oidcIssuer,
    authorization_endpoint: `${baseUrl}/oauth/authorize`,
    token_endpoint: `${baseUrl}/oauth/token`,
    registration_endpoint: `${baseUrl}/oauth/register`,
    ...(revokes && { revocation_endpoint: `${baseUrl}/oauth/revoke` }),
    jwks_uri: settings.oidcJwksUrl ?? document?.jwks_uri,
    scopes_supported: DEFAULT_SCOPES,
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    // RFC 9207 §3: the callback is ours, and so is what it sends to clients.
    ...(isBroker && { authorization_response_iss_parameter_supported: true }),
    ...(documentsOffered && { client_id_metadata_document_supported: true }),
  };
}
