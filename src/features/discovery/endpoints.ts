// §4.1, §4.9, §4.10: the metadata documents.
import type { Endpoint, OpenEndpoint } from '../../core/endpoint.ts';
import { type ErrorFormat, JSONRPC, OAUTH } from '../../core/errors/render.ts';
import {
  createResourceMetadataHandler,
  createServerResourceHandler,
  SERVER_DOCUMENT_PATH,
} from './resource-metadata.ts';
import type { ServerMetadata } from './server-metadata.ts';

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
