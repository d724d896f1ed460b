// §24.2, RFC 9700 §4.4.2: where authorization servers send the browser back to. Each server has an address of its own there, so that two
// authorization servers are told apart also where no `iss` comes back (RFC 9207).
import type { ConnectionServer } from '../../mcp/upstream/connection.ts';
import type { AuthorizationServer } from './authorization-server.ts';

export const CALLBACK_PATH = '/connections/callback';

type Server = Pick<ConnectionServer, 'name' | 'auth'>;

export const buildRedirectUri = (baseUrl: string, server: Server): string =>
  server.auth.redirectUri === 'common'
    ? baseUrl + CALLBACK_PATH
    : buildOwnRedirectUri(baseUrl, server);

/** The one that it has, or should have. */
export const buildOwnRedirectUri = (baseUrl: string, { name }: Pick<Server, 'name'>): string =>
  `${baseUrl}${CALLBACK_PATH}/${name}`;

/** Whether the server has the redirect URI of all, and nothing would say which authorization server sent the browser back there. */
export const isRedirectAmbiguous = (
  { auth }: Server,
  { sendsIssuer }: Pick<AuthorizationServer, 'sendsIssuer'>,
): boolean => auth.redirectUri === 'common' && !sendsIssuer;

export const adviseToCreate = (baseUrl: string, server: Server): string =>
  `Create a client there with the redirect URI ${buildRedirectUri(baseUrl, server)}, and set "clientId" (and "clientSecret" where it gives one).`;
