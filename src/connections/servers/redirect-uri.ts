// §24.2, RFC 9700 §4.4.2: where authorization servers send the browser back to. Each server has an address of its own there, so that two
// authorization servers are told apart also where no `iss` comes back (RFC 9207).
import type { ConnectionServer } from '../connection.ts';
import type { AuthorizationServer } from './authorization-server.ts';

export const CALLBACK_PATH = '/connections/callback';
export const DOCUMENT_CALLBACK_PATH = '/connections/document-callback';

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

/**
 * Where the gateway is known by its client document. Whoever takes documents takes this one from anybody, and sends the browser back
 * to any address in it: at these, `iss` is insisted on.
 */
export const buildDocumentRedirectUri = (baseUrl: string, { name }: Pick<Server, 'name'>): string =>
  `${baseUrl}${DOCUMENT_CALLBACK_PATH}/${name}`;

export const adviseToCreate = (baseUrl: string, server: Server): string =>
  `Create a client there with the redirect URI ${buildRedirectUri(baseUrl, server)}, and set "clientId" (and "clientSecret" where it gives one).`;
