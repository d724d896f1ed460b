// §24: a connection was made for a server as the configuration file had it then. An operator may give its name to another host,
// or name another authorization server: what was made for the one before goes to neither.
import type { ConnectionServer } from '../connection.ts';
import { isSameIssuer } from '../servers/authorization-server.ts';
import type { ConnectionRecord } from './connection-record.ts';

export type MadeFor = Pick<ConnectionRecord, 'serverOrigin' | 'issuer' | 'tokenUrl' | 'client'>;

export function isMadeFor({ serverOrigin, ...record }: MadeFor, { url, auth }: ConnectionServer) {
  return (
    serverOrigin === new URL(url).origin &&
    isAtNamed(record, auth) &&
    // Its tokens are of no use to another client, and that one's secret is not for whoever made them.
    (record.client.source !== 'configured' || record.client.id === auth.clientId)
  );
}

function isAtNamed(
  { issuer, tokenUrl }: Pick<MadeFor, 'issuer' | 'tokenUrl'>,
  { authorizationServer: named }: ConnectionServer['auth'],
): boolean {
  if (named === undefined) return true;
  return 'issuer' in named ? isSameIssuer(named.issuer, issuer) : named.tokenUrl === tokenUrl;
}

/** Where it was made for another. */
export const describeChanged = ({ name }: Pick<ConnectionServer, 'name'>): string =>
  `${name} was set up anew, at another address or with another login, since its user logged in: log in again`;
