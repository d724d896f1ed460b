// §4.9, RFC 9728: protected resource metadata.
import type { Reply } from '../../core/message.ts';
import { DEFAULT_SCOPES } from '../../core/scope.ts';
import { renderMetadata } from './render-metadata.ts';

/**
 * `path` is that of the resource below BASE_URL: empty for the form of §4.9, `/mcp` for the
 * form that clients derive from the endpoint (RFC 9728 §3.1).
 */
export function createResourceMetadataHandler(baseUrl: string, path: '' | '/mcp'): () => Reply {
  const reply = renderMetadata({
    resource: baseUrl + path,
    authorization_servers: [baseUrl],
    scopes_supported: DEFAULT_SCOPES,
    bearer_methods_supported: ['header'],
    resource_documentation: `${baseUrl}/`,
  });
  return () => reply;
}
