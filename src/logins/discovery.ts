// §4.1, §4.9, §4.10: the metadata documents.

import type { Config } from '../config/config.ts';
import { DEFAULT_SCOPES } from '../config/rules.ts';
import { fail } from '../errors/gateway-error.ts';
import type { Endpoint, NamedPaths, OpenEndpoint } from '../http/endpoint/endpoint.ts';
import { createJsonReply, type Reply } from '../http/endpoint/message.ts';
import { type ErrorFormat, JSONRPC, OAUTH } from '../http/endpoint/render-error.ts';
import {
  type ProviderMetadata,
  requireProviderDocument,
} from '../http/oauth-client/provider-metadata.ts';
import { algorithms } from './auth/jwk.ts';
import { JWT_BEARER } from './request/login-facts.ts';

export function createDiscoveryEndpoints(
  baseUrl: string,
  { getMetadata, getOpenidConfiguration }: ReturnType<typeof createServerMetadata>,
  { has, getTitle }: NamedPaths,
): readonly Endpoint[] {
  // Clients derive the path of the second from the endpoint (RFC 9728 §3.1).
  const ofGateway = renderResourceMetadata(baseUrl, '');
  const ofEndpoint = renderResourceMetadata(baseUrl, '/mcp');
  return [
    createMetadataEndpoint('oauth-protected-resource', JSONRPC, () => ofGateway),
    createMetadataEndpoint('oauth-protected-resource/mcp', JSONRPC, () => ofEndpoint),
    // §18.2, §25.1: of `/mcp/<server>` or `/mcp/<view>`, whose URL is the resource: clients compare it with the one that they called
    // (RFC 9728 §3.3).
    {
      ...createMetadataEndpoint('oauth-protected-resource/mcp/:server', JSONRPC, ({ path }) => {
        const name = path.slice(path.lastIndexOf('/') + 1);
        return has(name)
          ? renderResourceMetadata(baseUrl, `/mcp/${name}`, getTitle(name))
          : fail('not_found');
      }),
      hasParameter: has,
    },
    createMetadataEndpoint('oauth-authorization-server', OAUTH, getMetadata),
    createMetadataEndpoint('openid-configuration', OAUTH, getOpenidConfiguration),
  ];
}

const createMetadataEndpoint = (
  name: string,
  errors: ErrorFormat,
  handle: OpenEndpoint['handle'],
): OpenEndpoint => ({ kind: 'open', method: 'GET', path: `/.well-known/${name}`, errors, handle });

// §4.9, RFC 9728: protected resource metadata.

/** `path` is that of the resource below BASE_URL: empty for the gateway itself. */
const renderResourceMetadata = (baseUrl: string, path: string, title?: string): Reply =>
  renderMetadata({
    resource: baseUrl + path,
    ...(title !== undefined && { resource_name: title }),
    authorization_servers: [baseUrl],
    scopes_supported: DEFAULT_SCOPES,
    bearer_methods_supported: ['header'],
    resource_documentation: `${baseUrl}/`,
  });

// §4.10, RFC 8414: authorization server metadata.

/**
 * The two documents that name this service's endpoints. `providerMetadata` is the provider's discovery
 * document, itself cached for five minutes and served stale; undefined without an issuer.
 * `isOffered` says whether clients may be known by a metadata document, `hasMachineClients` whether one may log in as itself.
 */
export function createServerMetadata(
  { server, oauth }: Config,
  providerMetadata: ProviderMetadata | undefined,
  isOffered: () => Promise<boolean>,
  hasMachineClients: () => boolean = () => false,
) {
  const { baseUrl } = server;
  const { provider, endpoints } = oauth;
  const isBroker = oauth.mode === 'broker';

  async function load() {
    if (providerMetadata === undefined) fail('not_found', { details: 'OIDC_ISSUER is not set.' });
    const [document, areDocumentsOffered] = await Promise.all([
      // With OIDC_JWKS_URL nothing in the documents depends on the provider's answer.
      provider?.jwksUrl === undefined
        ? requireProviderDocument(providerMetadata)
        : providerMetadata.get().catch(() => undefined),
      isOffered(),
    ]);
    const members = {
      issuer: isBroker || oauth.metadataIssuer === 'self' ? baseUrl : provider?.issuer,
      authorization_endpoint: `${baseUrl}/oauth/authorize`,
      token_endpoint: `${baseUrl}/oauth/token`,
      registration_endpoint: `${baseUrl}/oauth/register`,
      ...((isBroker || endpoints.revocationUrl !== undefined) && {
        revocation_endpoint: `${baseUrl}/oauth/revoke`,
      }),
      jwks_uri: provider?.jwksUrl ?? document?.jwks_uri,
      scopes_supported: DEFAULT_SCOPES,
      response_types_supported: ['code'],
      grant_types_supported: PUBLIC_GRANTS,
      token_endpoint_auth_methods_supported: PUBLIC_METHODS,
      code_challenge_methods_supported: ['S256'],
      // RFC 9207 §3: the callback is ours, and so is what it sends to clients.
      ...(isBroker && { authorization_response_iss_parameter_supported: true }),
      ...(areDocumentsOffered && { client_id_metadata_document_supported: true }),
      ...describeProvenClients(hasMachineClients(), isBroker && oauth.idJag.isEnabled),
    };
    return { document, members };
  }

  return {
    async getMetadata() {
      return renderMetadata((await load()).members);
    },
    // OpenID clients insist on the two further members.
    async getOpenidConfiguration() {
      const { document, members } = await load();
      return renderMetadata({
        ...members,
        subject_types_supported: ['public'],
        // RS256 for providers that name none (OpenID Connect Core §3.1.3.7).
        id_token_signing_alg_values_supported: document?.id_token_signing_alg_values_supported ?? [
          'RS256',
        ],
      });
    },
  };
}

const PUBLIC_GRANTS = ['authorization_code', 'refresh_token'] as const;

/** Registered clients are public. `none` stays the first method: it is what clients take that register. */
const PUBLIC_METHODS = ['none'] as const;

/** Grants and methods of clients that prove who they are. */
function describeProvenClients(hasMachineClients: boolean, takesAssertions: boolean) {
  if (!hasMachineClients && !takesAssertions) return {};
  return {
    grant_types_supported: [
      ...PUBLIC_GRANTS,
      ...(hasMachineClients ? ['client_credentials'] : []),
      ...(takesAssertions ? [JWT_BEARER] : []),
    ],
    token_endpoint_auth_methods_supported: [
      ...PUBLIC_METHODS,
      ...(hasMachineClients ? ['client_secret_basic', 'client_secret_post'] : []),
      'private_key_jwt',
    ],
    token_endpoint_auth_signing_alg_values_supported: [...algorithms.keys()],
    // draft-ietf-oauth-identity-assertion-authz-grant §7.2.
    ...(takesAssertions && { authorization_grant_profiles_supported: [ID_JAG_PROFILE] }),
  };
}

const ID_JAG_PROFILE = 'urn:ietf:params:oauth:grant-profile:id-jag';

/** A metadata document, which clients and caches may keep for five minutes. */
const renderMetadata = (document: unknown): Reply =>
  createJsonReply(200, document, { 'Cache-Control': 'public, max-age=300' });
