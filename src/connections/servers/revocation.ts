// §24, RFC 7009: what is over here is over at its authorization server, too, where that can be told.

import type { ServerTokens } from '../../http/oauth-client/token-answer.ts';
import type { ConnectionServer } from '../../mcp/upstream/connections.ts';
import { type ConnectionPlace, type ConnectionRecord, isMadeFor } from '../connection-record.ts';
import type { TokenEndpoint } from '../tokens/token-endpoint.ts';
import type { OAuthClients } from './clients.ts';

export type Revocation = ReturnType<typeof createRevocation>;

export function createRevocation(clients: OAuthClients, tokenEndpoint: TokenEndpoint) {
  /** Undefined where it was done, or cannot be: then there is no revocation endpoint. Else what failed. Never rejects. */
  async function revokeTokens(
    server: ConnectionServer,
    at: Pick<ConnectionRecord, 'issuer' | 'client' | 'revocationUrl'>,
    { accessToken, refreshToken }: Pick<ServerTokens, 'accessToken'> & Partial<ServerTokens>,
  ): Promise<string | undefined> {
    const { revocationUrl } = at;
    if (revocationUrl === undefined) return undefined;
    // With a refresh token goes what was made by it (§2.1).
    const token =
      refreshToken === undefined
        ? ({ value: accessToken, hint: 'access_token' } as const)
        : ({ value: refreshToken, hint: 'refresh_token' } as const);
    const client = clients.findForRecord(server, at);
    return tokenEndpoint.revoke(revocationUrl, client, token, server);
  }

  /**
   * Resolves to what was not done, in words for people. `server` is undefined for one that is not configured any more, `record` for
   * one that could not be read. Never rejects.
   */
  async function revokeConnection(
    place: Pick<ConnectionPlace, 'server'>,
    server: ConnectionServer | undefined,
    record: ConnectionRecord | undefined,
  ): Promise<string | undefined> {
    if (record === undefined)
      return `the connection to ${place.server} could not be read, so nothing was revoked there`;
    const advice = advise(record);
    if (server === undefined)
      return `${place.server} is not configured any more, so nothing was revoked there: ${advice}`;
    // The secret that there is now is another's.
    if (record.client.source === 'configured' && !isMadeFor(record, server))
      return `${place.server} was set up anew since, so nothing was revoked there: ${advice}`;
    if (record.revocationUrl === undefined)
      return `the authorization server of ${place.server} revokes no tokens (RFC 7009): ${advice}`;
    const said = await revokeTokens(server, record, record);
    return said && `${place.server}’s revocation endpoint ${said}: ${advice}`;
  }

  return {
    revokeTokens,
    revokeConnection,
    /**
     * Of a login that another one has replaced. Many servers take all that one account let one client do for one grant (Google,
     * Keycloak): there, to revoke the former login of the same account would end the present one.
     */
    async revokeFormer(
      server: ConnectionServer,
      former: ConnectionRecord,
      current: ConnectionRecord,
    ): Promise<string | undefined> {
      const isSame = isSameAccount(former, current);
      if (isSame === true) return undefined;
      const problem =
        isSame === false
          ? await revokeConnection({ server: server.name }, server, former)
          : `the authorization server of ${server.name} does not say whose it was, so nothing was revoked there. If it was another account’s, ${advise(former)}`;
      return problem && `The login before this one was replaced, but ${problem}`;
    },
  };
}

const advise = ({ issuer }: ConnectionRecord): string => `end it at ${issuer}, too`;

/** Tokens of another client are other tokens, whosever. Undefined where nothing says whose they are. */
export function isSameAccount(one: ConnectionRecord, other: ConnectionRecord): boolean | undefined {
  if (one.issuer !== other.issuer || one.client.id !== other.client.id) return false;
  return one.subject === undefined || other.subject === undefined
    ? undefined
    : one.subject === other.subject;
}
