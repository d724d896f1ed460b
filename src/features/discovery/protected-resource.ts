// Spec §4.9, RFC 9728: protected resource metadata.
import { json, type Reply } from '../../core/message.ts';
import { METADATA_CACHING, SCOPES } from './shared.ts';

/**
 * `path` is that of the resource below BASE_URL: empty for the form of Spec §4.9, `/mcp` for the
 * form that clients derive from the endpoint (RFC 9728 §3.1, decisions 6).
 */
export function createProtectedResource(baseUrl: string, path: '' | '/mcp'): () => Reply {
  const reply = json(
    200,
    {
      resource: baseUrl + path,
      authorization_servers: [baseUrl],
      scopes_supported: SCOPES,
      bearer_methods_supported: ['header'],
      resource_documentation: `${baseUrl}/`,
    },
    METADATA_CACHING,
  );
  return () => reply;
}
