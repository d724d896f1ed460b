// §24.2, OAuth Client ID Metadata Document (draft): by which the gateway is known where documents are taken.
import { isIP } from 'node:net';
import type { ConnectionServer } from '../../mcp/upstream/connections.ts';
import { isOnThisMachine, normalizeHost } from '../../platform/address.ts';
import { isPublicAddress } from '../../platform/outbound/public-network.ts';
import type { ClientSource } from '../connection-record.ts';
import type { AuthorizationServer } from './authorization-server.ts';

/** Members that a registration and the document share (RFC 7591 §2). */
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

/** Undefined where BASE_URL is no public https: nobody could fetch it. */
export function findDocumentUrl(baseUrl: string): string | undefined {
  const { protocol, hostname } = new URL(baseUrl);
  const host = normalizeHost(hostname);
  if (protocol !== 'https:' || isOnThisMachine(host)) return undefined;
  // Others on the internet can fetch what lies there, as far as its name says.
  const isPublic =
    isIP(host) === 0 ? host.includes('.') && !INNER_NAMES.test(host) : isPublicAddress(host);
  return isPublic ? baseUrl + DOCUMENT_PATH : undefined;
}

/**
 * OAuth Client ID Metadata Document (draft) §4. Every authorization server that takes documents knows its redirect URI, also one
 * where the gateway is another client: so it is none that a login without `iss` comes back to.
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

/** RFC 6762, RFC 8375, RFC 9476, and what companies use. */
const INNER_NAMES = /\.(local|internal|lan|corp|home|intranet|alt|home\.arpa)$/;

// RFC 9700 §4.4.2: where authorization servers send the browser back to. Each server has an address of its own there, so that two
// authorization servers are told apart also where no `iss` comes back (RFC 9207). The one of all serves only where `iss` is promised.

export const CALLBACK_PATH = '/connections/callback';

type Server = Pick<ConnectionServer, 'name' | 'auth'>;

export const buildRedirectUri = (baseUrl: string, server: Server, source?: ClientSource): string =>
  source === 'document' || server.auth.redirectUri === 'common'
    ? baseUrl + CALLBACK_PATH
    : buildOwnRedirectUri(baseUrl, server);

/** The one that it has, or should have. */
export const buildOwnRedirectUri = (baseUrl: string, { name }: Server): string =>
  `${baseUrl}${CALLBACK_PATH}/${name}`;

/** True if the server has the redirect URI of all, and nothing would say which authorization server sent the browser back there. */
export const isRedirectAmbiguous = ({ auth }: Server, { sendsIssuer }: AuthorizationServer) =>
  auth.redirectUri === 'common' && !sendsIssuer;

export const adviseToCreate = (baseUrl: string, server: Server): string =>
  `Create a client there with the redirect URI ${buildRedirectUri(baseUrl, server)}, and set "clientId" (and "clientSecret" where it gives one).`;
