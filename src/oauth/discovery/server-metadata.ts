// §4.10, RFC 8414: authorization server metadata.

import {
  type ProviderDocument,
  type ProviderMetadata,
  requireProviderDocument,
} from '../../auth/provider/provider-metadata.ts';
import type { Config } from '../../config/config.ts';
import { DEFAULT_SCOPES } from '../../config/scope.ts';
import { createJsonReply, type Reply } from '../../endpoint/message.ts';
import { fail } from '../../errors/gateway-error.ts';

export interface ServerMetadata {
  getMetadata(): Promise<Reply>;
  getOpenidConfiguration(): Promise<Reply>;
}

/** What OpenID providers sign with unless they say otherwise (OpenID Connect Core §3.1.3.7). */
const DEFAULT_ID_TOKEN_ALGORITHMS = ['RS256'] as const;

/**
 * The two documents that name this service's endpoints. `providerMetadata` is the provider's discovery
 * document, itself cached for five minutes and served stale; undefined without an issuer.
 * `isOffered` says whether clients may be known by a metadata document.
 */
export function createServerMetadata(
  { server, oauth }: Pick<Config, 'server' | 'oauth'>,
  providerMetadata: ProviderMetadata | undefined,
  isOffered: () => Promise<boolean>,
): ServerMetadata {
  async function loadProviderDocument(): Promise<ProviderDocument | undefined> {
    if (providerMetadata === undefined) fail('not_found', { details: 'OIDC_ISSUER is not set.' });
    // With OIDC_JWKS_URL nothing in the documents depends on the provider's answer.
    return oauth.provider?.jwksUrl === undefined
      ? requireProviderDocument(providerMetadata)
      : providerMetadata.get().catch(() => undefined);
  }

  async function load() {
    const [document, areDocumentsOffered] = await Promise.all([
      loadProviderDocument(),
      isOffered(),
    ]);
    return {
      document,
      members: buildServerMetadata(server.baseUrl, oauth, document, areDocumentsOffered),
    };
  }

  return {
    async getMetadata() {
      return renderMetadata((await load()).members);
    },
    // OpenID clients insist on the two further members.
    async getOpenidConfiguration() {
      const { document, members } = await load();
      const body = {
        ...members,
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported:
          document?.id_token_signing_alg_values_supported ?? DEFAULT_ID_TOKEN_ALGORITHMS,
      };
      return renderMetadata(body);
    },
  };
}

function buildServerMetadata(
  baseUrl: string,
  oauth: Config['oauth'],
  document: ProviderDocument | undefined,
  areDocumentsOffered: boolean,
) {
  const { provider, endpoints } = oauth;
  const isBroker = oauth.mode === 'broker';
  const revokes = endpoints.revocationUrl ?? (isBroker ? document?.revocation_endpoint : undefined);
  return {
    issuer: isBroker || oauth.metadataIssuer === 'self' ? baseUrl : provider?.issuer,
    authorization_endpoint: `${baseUrl}/oauth/authorize`,
    token_endpoint: `${baseUrl}/oauth/token`,
    registration_endpoint: `${baseUrl}/oauth/register`,
    ...(revokes && { revocation_endpoint: `${baseUrl}/oauth/revoke` }),
    jwks_uri: provider?.jwksUrl ?? document?.jwks_uri,
    scopes_supported: DEFAULT_SCOPES,
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    // RFC 9207 §3: the callback is ours, and so is what it sends to clients.
    ...(isBroker && { authorization_response_iss_parameter_supported: true }),
    ...(areDocumentsOffered && { client_id_metadata_document_supported: true }),
  };
}

/** A metadata document, which clients and caches may keep for five minutes. */
export const renderMetadata = (document: unknown): Reply =>
  createJsonReply(200, document, { 'Cache-Control': 'public, max-age=300' });
