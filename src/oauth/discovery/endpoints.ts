// §4.1, §4.9, §4.10: the metadata documents.

import { DEFAULT_SCOPES } from '../../config/scope.ts';
import type { Endpoint, OpenEndpoint } from '../../endpoint/endpoint.ts';
import type { GatewayRequest, Reply } from '../../endpoint/message.ts';
import { type ErrorFormat, JSONRPC, OAUTH } from '../../endpoint/render-error.ts';
import { fail } from '../../errors/gateway-error.ts';
import { renderMetadata, type ServerMetadata } from './server-metadata.ts';

export const createDiscoveryEndpoints = (
  baseUrl: string,
  serverMetadata: ServerMetadata,
  isServer: (name: string) => boolean,
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
    hasParameter: isServer,
    errors: JSONRPC,
    handle: createServerResourceHandler(baseUrl, isServer),
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

/** Where `/mcp/<server>` has its document, and the path of the endpoint that serves them all (§18.2). */
const SERVER_DOCUMENTS = '/.well-known/oauth-protected-resource/mcp/';
const SERVER_DOCUMENT_PATH = `${SERVER_DOCUMENTS}:server`;

/**
 * §18.2: of `/mcp/<server>`, whose URL is the resource: clients compare it with the one that they called
 * (RFC 9728 §3.3).
 */
const createServerResourceHandler = (baseUrl: string, isServer: (name: string) => boolean) =>
  function serveServerResource({ path }: Pick<GatewayRequest, 'path'>): Reply {
    const name = path.slice(SERVER_DOCUMENTS.length);
    return isServer(name) ? renderResourceMetadata(baseUrl, `/mcp/${name}`) : fail('not_found');
  };

const renderResourceMetadata = (baseUrl: string, path: string): Reply =>
  renderMetadata({
    resource: baseUrl + path,
    authorization_servers: [baseUrl],
    scopes_supported: DEFAULT_SCOPES,
    bearer_methods_supported: ['header'],
    resource_documentation: `${baseUrl}/`,
  });
