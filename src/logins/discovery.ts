// §4.1, §4.9, §4.10: the metadata documents.

import type { Config } from '../config/config.ts';
import { DEFAULT_SCOPES } from '../config/scope.ts';
import { fail } from '../errors/gateway-error.ts';
import type { Endpoint, NamedPaths, OpenEndpoint } from '../http/endpoint/endpoint.ts';
import { createJsonReply, type GatewayRequest, type Reply } from '../http/endpoint/message.ts';

import { type ErrorFormat, JSONRPC, OAUTH } from '../http/endpoint/render-error.ts';
import {
  type ProviderDocument,
  type ProviderMetadata,
  requireProviderDocument,
} from '../http/oauth-client/provider-metadata.ts';
import { algorithms } from './auth/jwk.ts';
import { JWT_BEARER } from './request/login-facts.ts';

export const createDiscoveryEndpoints = (
  baseUrl: string,
  serverMetadata: ReturnType<typeof createServerMetadata>,
  paths: NamedPaths,
): readonly Endpoint[] => [
  createMetadataEndpoint(
    'oauth-protected-resource',
    JSONRPC,
    createResourceMetadataHandler(baseUrl, ''),
  ),
  createMetadataEndpoint(
    'oauth-protected-resource/mcp',
    JSONRPC,
    createResourceMetadataHandler(baseUrl, '/mcp'),
  ),
  {
    kind: 'open',
    method: 'GET',
    path: SERVER_DOCUMENT_PATH,
    hasParameter: paths.has,
    errors: JSONRPC,
    handle: createServerResourceHandler(baseUrl, paths),
  },
  createMetadataEndpoint('oauth-authorization-server', OAUTH, serverMetadata.getMetadata),
  createMetadataEndpoint('openid-configuration', OAUTH, serverMetadata.getOpenidConfiguration),
];

const createMetadataEndpoint = (
  name: string,
  errors: ErrorFormat,
  handle: OpenEndpoint['handle'],
): OpenEndpoint => ({ kind: 'open', method: 'GET', path: `/.well-known/${name}`, errors, handle });

// §4.9, RFC 9728: protected resource metadata.

/**
 * `path` is that of the resource below BASE_URL: empty for the form of §4.9, `/mcp` for the
 * form that clients derive from the endpoint (RFC 9728 §3.1).
 */
function createResourceMetadataHandler(baseUrl: string, path: '' | '/mcp'): () => Reply {
  const reply = renderResourceMetadata(baseUrl, path);
  return () => reply;
}

/** The place of the documents of `/mcp/<server>` and `/mcp/<view>`, and the path of the endpoint that serves them all. */
const SERVER_DOCUMENTS = '/.well-known/oauth-protected-resource/mcp/';
const SERVER_DOCUMENT_PATH = `${SERVER_DOCUMENTS}:server`;

/**
 * §18.2, §25.1: of `/mcp/<server>` or `/mcp/<view>`, whose URL is the resource: clients compare it with the one that they called
 * (RFC 9728 §3.3).
 */
const createServerResourceHandler = (baseUrl: string, { has, getTitle }: NamedPaths) =>
  function serveServerResource({ path }: Pick<GatewayRequest, 'path'>): Reply {
    const name = path.slice(SERVER_DOCUMENTS.length);
    return has(name)
      ? renderResourceMetadata(baseUrl, `/mcp/${name}`, getTitle(name))
      : fail('not_found');
  };

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

/** The algorithms of OpenID providers that name none (OpenID Connect Core §3.1.3.7). */
const DEFAULT_ID_TOKEN_ALGORITHMS = ['RS256'] as const;

/**
 * The two documents that name this service's endpoints. `providerMetadata` is the provider's discovery
 * document, itself cached for five minutes and served stale; undefined without an issuer.
 * `isOffered` says whether clients may be known by a metadata document, `hasMachineClients` whether one may log in as itself.
 */
export function createServerMetadata(
  { server, oauth }: Pick<Config, 'server' | 'oauth'>,
  providerMetadata: ProviderMetadata | undefined,
  isOffered: () => Promise<boolean>,
  hasMachineClients: () => boolean = () => false,
) {
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
      members: {
        ...buildServerMetadata(server.baseUrl, oauth, document, areDocumentsOffered),
        ...describeProvenClients({
          hasMachineClients: hasMachineClients(),
          takesAssertions: oauth.mode === 'broker' && oauth.idJag.isEnabled,
        }),
      },
    };
  }

  return {
    async getMetadata(): Promise<Reply> {
      return renderMetadata((await load()).members);
    },
    // OpenID clients insist on the two further members.
    async getOpenidConfiguration(): Promise<Reply> {
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
  const revokes = isBroker || endpoints.revocationUrl !== undefined;
  return {
    issuer: isBroker || oauth.metadataIssuer === 'self' ? baseUrl : provider?.issuer,
    authorization_endpoint: `${baseUrl}/oauth/authorize`,
    token_endpoint: `${baseUrl}/oauth/token`,
    registration_endpoint: `${baseUrl}/oauth/register`,
    ...(revokes && { revocation_endpoint: `${baseUrl}/oauth/revoke` }),
    jwks_uri: provider?.jwksUrl ?? document?.jwks_uri,
    scopes_supported: DEFAULT_SCOPES,
    response_types_supported: ['code'],
    ...PUBLIC_CLIENTS,
    code_challenge_methods_supported: ['S256'],
    // RFC 9207 §3: the callback is ours, and so is what it sends to clients.
    ...(isBroker && { authorization_response_iss_parameter_supported: true }),
    ...(areDocumentsOffered && { client_id_metadata_document_supported: true }),
  };
}

const PUBLIC_CLIENTS = {
  grant_types_supported: ['authorization_code', 'refresh_token'],
  token_endpoint_auth_methods_supported: ['none'],
} as const;

/** Grants and methods of clients that prove who they are. `none` stays the first method: it is what clients take that register. */
function describeProvenClients({
  hasMachineClients,
  takesAssertions,
}: {
  readonly hasMachineClients: boolean;
  readonly takesAssertions: boolean;
}) {
  if (!hasMachineClients && !takesAssertions) return {};
  return {
    grant_types_supported: [
      ...PUBLIC_CLIENTS.grant_types_supported,
      ...(hasMachineClients ? ['client_credentials'] : []),
      ...(takesAssertions ? [JWT_BEARER] : []),
    ],
    token_endpoint_auth_methods_supported: [
      ...PUBLIC_CLIENTS.token_endpoint_auth_methods_supported,
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
