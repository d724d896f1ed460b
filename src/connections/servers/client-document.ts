// §24.2, OAuth Client ID Metadata Document (draft): the gateway's own document, for authorization servers that accept documents.
import { isIP } from 'node:net';
import type { ConnectionServer } from '../../mcp/upstream/connections.ts';
import { isOnThisMachine, normalizeHost } from '../../platform/address.ts';
import { isPublicAddress } from '../../platform/outbound/public-network.ts';
import type { ClientSource } from '../connection-record.ts';
import type { AuthorizationServer } from './authorization-server.ts';

/** Members of both a registration and the document (RFC 7591 §2). */
export const describeClient = (
  baseUrl: string,
  displayName: string,
  redirectUris: readonly string[],
) => ({
  client_name: displayName,
  client_uri: baseUrl,
  redirect_uris: redirectUris,
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  application_type: 'web',
});

const DOCUMENT_PATH = '/oauth/connections-client.json';

/** Undefined if BASE_URL is not a public https URL: no server could fetch it. */
export function findDocumentUrl(baseUrl: string): string | undefined {
  const { protocol, hostname } = new URL(baseUrl);
  const host = normalizeHost(hostname);
  if (protocol !== 'https:' || isOnThisMachine(host)) return undefined;
  // The host's name must be public.
  const isPublic =
    isIP(host) === 0 ? host.includes('.') && !INNER_NAMES.test(host) : isPublicAddress(host);
  return isPublic ? baseUrl + DOCUMENT_PATH : undefined;
}

/**
 * OAuth Client ID Metadata Document (draft) §4. Every authorization server that accepts documents knows its redirect URI, even
 * one where the gateway uses a different client: so no login without `iss` comes back to it.
 */
export function createClientDocument(baseUrl: string, displayName: string) {
  const client_id = findDocumentUrl(baseUrl);
  if (client_id === undefined) return undefined;
  return {
    client_id,
    ...describeClient(baseUrl, displayName, [baseUrl + CALLBACK_PATH]),
    token_endpoint_auth_method: 'none',
  };
}

/** RFC 6762, RFC 8375, RFC 9476, and common private names. */
const INNER_NAMES = /\.(local|internal|lan|corp|home|intranet|alt|home\.arpa)$/;

// RFC 9700 §4.4.2: redirect URIs. Each server has its own, so that two authorization servers are told apart even without `iss` (RFC
// 9207). The common one is used only if `iss` is promised.

export const CALLBACK_PATH = '/connections/callback';

type Server = Pick<ConnectionServer, 'name' | 'auth'>;

export const buildRedirectUri = (baseUrl: string, server: Server, source?: ClientSource): string =>
  source === 'document' || server.auth.redirectUri === 'common'
    ? baseUrl + CALLBACK_PATH
    : buildOwnRedirectUri(baseUrl, server);

/** The server's own redirect URI, whether or not it uses the common one at present. */
export const buildOwnRedirectUri = (baseUrl: string, { name }: Server): string =>
  `${baseUrl}${CALLBACK_PATH}/${name}`;

/** True if the server uses the common redirect URI, and nothing would tell which authorization server sent the browser back. */
export const isRedirectAmbiguous = ({ auth }: Server, { sendsIssuer }: AuthorizationServer) =>
  auth.redirectUri === 'common' && !sendsIssuer;

export const adviseToCreate = (baseUrl: string, server: Server): string =>
  `Create a client there with the redirect URI ${buildRedirectUri(baseUrl, server)}, and set "clientId" (and "clientSecret" if it issues one).`;
