// §4.1, §4.9, §4.10: the metadata documents.
import type { Endpoint, OpenEndpoint } from '../../core/endpoint.ts';
import { type ErrorFormat, JSONRPC, OAUTH } from '../../core/errors/render.ts';
import type { AuthorizationServer } from './authorization-server.ts';
import { createProtectedResource } from './protected-resource.ts';

export const createDiscoveryEndpoints = (
  baseUrl: string,
  authorizationServer: AuthorizationServer,
): readonly Endpoint[] => [
  documentEndpoint('oauth-protected-resource', JSONRPC, createProtectedResource(baseUrl, '')),
  documentEndpoint(
    'oauth-protected-resource/mcp',
    JSONRPC,
    createProtectedResource(baseUrl, '/mcp'),
  ),
  documentEndpoint('oauth-authorization-server', OAUTH, authorizationServer.metadata),
  documentEndpoint('openid-configuration', OAUTH, authorizationServer.openidConfiguration),
];

const documentEndpoint = (
  name: string,
  errors: ErrorFormat,
  handle: OpenEndpoint['handle'],
): OpenEndpoint => ({ kind: 'open', method: 'GET', path: `/.well-known/${name}`, errors, handle });
