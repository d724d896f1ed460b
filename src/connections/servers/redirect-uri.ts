// §24.2, RFC 9700 §4.4.2: where authorization servers send the browser back to. Each server has an address of its own there, so that two
// authorization servers are told apart also where no `iss` comes back (RFC 9207).
import type { ConnectionServer } from '../connection.ts';
import type { AuthorizationServer } from './authorization-server.ts';

export const CALLBACK_PATH = '/connections/callback';

export const buildRedirectUri = (
  baseUrl: string,
  { name, auth }: Pick<ConnectionServer, 'name' | 'auth'>,
): string =>
  auth.redirectUri === 'common' ? baseUrl + CALLBACK_PATH : `${baseUrl}${CALLBACK_PATH}/${name}`;

/** Whether the server has the redirect URI of all, and nothing would say which authorization server sent the browser back there. */
export const isRedirectAmbiguous = (
  { auth }: Pick<ConnectionServer, 'auth'>,
  { sendsIssuer }: Pick<AuthorizationServer, 'sendsIssuer'>,
): boolean => auth.redirectUri === 'common' && !sendsIssuer;
