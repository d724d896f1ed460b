// §24, RFC 7009: what is over here is over at its authorization server, too, where that can be told.

import type { ServerTokens } from '../../http/oauth-client/token-answer.ts';
import type { ConnectionServer } from '../../mcp/upstream/connection.ts';
import { type ConnectionPlace, type ConnectionRecord, isMadeFor } from '../connection-record.ts';
import type { TokenEndpoint } from '../tokens/token-endpoint.ts';
import type { OAuthClients } from './clients.ts';

/** Undefined where it was done, or cannot be: then there is no revocation endpoint. Else what failed. Never rejects. */
export type RevokeServerTokens = (
  server: ConnectionServer,
  at: Pick<ConnectionRecord, 'issuer' | 'client' | 'revocationUrl'>,
  tokens: Pick<ServerTokens, 'accessToken'> & Partial<Pick<ServerTokens, 'refreshToken'>>,
) => Promise<string | undefined>;

export const createRevokeServerTokens = (
  clients: Pick<OAuthClients, 'findForRecord'>,
  tokenEndpoint: Pick<TokenEndpoint, 'revoke'>,
): RevokeServerTokens =>
  async function revokeTokens(server, at, { accessToken, refreshToken }) {
    const { revocationUrl } = at;
    if (revocationUrl === undefined) return undefined;
    // With a refresh token goes what was made by it (§2.1).
    const token =
      refreshToken === undefined
        ? ({ value: accessToken, hint: 'access_token' } as const)
        : ({ value: refreshToken, hint: 'refresh_token' } as const);
    const client = clients.findForRecord(server, at);
    return tokenEndpoint.revoke(revocationUrl, client, token, server);
  };

/**
 * What was not done, in words for people. `server` is undefined for one that is not configured any more, `record` for one that could
 * not be read. Never rejects.
 */
export type RevokeConnection = (
  place: Pick<ConnectionPlace, 'server'>,
  server: ConnectionServer | undefined,
  record: ConnectionRecord | undefined,
) => Promise<string | undefined>;

export const createRevokeConnection = (revokeTokens: RevokeServerTokens): RevokeConnection =>
  async function revokeConnection(place, server, record) {
    if (record === undefined)
      return `the connection to ${place.server} could not be read, so nothing was revoked there`;
    const { revocationUrl } = record;
    const advice = advise(record);
    if (server === undefined)
      return `${place.server} is not configured any more, so nothing was revoked there: ${advice}`;
    // The secret that there is now is another's.
    if (record.client.source === 'configured' && !isMadeFor(record, server))
      return `${place.server} was set up anew since, so nothing was revoked there: ${advice}`;
    if (revocationUrl === undefined)
      return `the authorization server of ${place.server} revokes no tokens (RFC 7009): ${advice}`;
    const said = await revokeTokens(server, record, record);
    return said && `${place.server}’s revocation endpoint ${said}: ${advice}`;
  };

const advise = ({ issuer }: Pick<ConnectionRecord, 'issuer'>): string => `end it at ${issuer}, too`;

type Account = Pick<ConnectionRecord, 'issuer' | 'client' | 'subject'>;

/** Tokens of another client are other tokens, whosever. Undefined where nothing says whose they are. */
export function isSameAccount(one: Account, other: Account): boolean | undefined {
  if (one.issuer !== other.issuer || one.client.id !== other.client.id) return false;
  return one.subject === undefined || other.subject === undefined
    ? undefined
    : one.subject === other.subject;
}

/**
 * Of a login that another one has replaced. Many servers take all that one account let one client do for one grant (Google,
 * Keycloak): there, to revoke the former login of the same account would end the present one.
 */
export async function revokeFormer(
  revokeConnection: RevokeConnection,
  server: ConnectionServer,
  { former, current }: { readonly former: ConnectionRecord; readonly current: ConnectionRecord },
): Promise<string | undefined> {
  const isSame = isSameAccount(former, current);
  if (isSame === true) return undefined;
  const problem =
    isSame === false
      ? await revokeConnection({ server: server.name }, server, former)
      : `the authorization server of ${server.name} does not say whose it was, so nothing was revoked there. If it was another account’s, ${advise(former)}`;
  return problem && `The login before this one was replaced, but ${problem}`;
}
