// §24, RFC 7009: tokens that are of no use to anybody any more.
import type { ConnectionServer } from '../connection.ts';
import type { ConnectionRecord } from '../records/connection-record.ts';
import type { IssuedTokens } from '../tokens/token-answer.ts';
import type { TokenEndpoint } from '../tokens/token-endpoint.ts';
import type { OAuthClients } from './clients.ts';

/** Undefined where it was done, or cannot be: then there is no revocation endpoint. Else what failed. Never rejects. */
export type RevokeTokens = (
  server: ConnectionServer,
  at: Pick<ConnectionRecord, 'issuer' | 'client' | 'revocationUrl'>,
  tokens: Pick<IssuedTokens, 'accessToken'> & Partial<Pick<IssuedTokens, 'refreshToken'>>,
) => Promise<string | undefined>;

export const createRevokeTokens = (
  clients: Pick<OAuthClients, 'findForRecord'>,
  tokenEndpoint: Pick<TokenEndpoint, 'revoke'>,
): RevokeTokens =>
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
