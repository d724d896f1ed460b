// RFC 6749 §5.1: the token response, made of the grant alone: whoever makes it again makes the same.
import { createJsonReply, type Reply } from '../../http/endpoint/message.ts';
import { type Grant, hasRefreshToken } from '../grants/grant.ts';
import { hashResource, hashUser, maskScopes, type TokenCodec } from '../grants/token-codec.ts';

export type WriteTokens = (grant: Grant, now: number) => Reply;

/** `now` in epoch milliseconds. */
export const createWriteTokens =
  (codec: Pick<TokenCodec, 'writeAccessToken' | 'writeRefreshToken'>): WriteTokens =>
  (grant, now) => {
    const { id, user, scopes: granted, issued } = grant;
    const { generation, issuedAt, expiresAt, scopes, resources } = issued;
    return createJsonReply(
      200,
      {
        access_token: codec.writeAccessToken({
          grantId: id,
          userKey: hashUser(user),
          generation,
          issuedAt: Math.floor(issuedAt / 1000),
          expiresAt: Math.floor(expiresAt / 1000),
          scopeMask: maskScopes(granted, scopes),
          resourceHashes: resources.map(hashResource),
        }),
        token_type: 'Bearer',
        expires_in: Math.max(0, Math.floor((expiresAt - now) / 1000)),
        ...(hasRefreshToken(grant) && {
          refresh_token: codec.writeRefreshToken({ grantId: id, generation }),
        }),
        ...(scopes.length > 0 && { scope: scopes.join(' ') }),
      },
      { 'Cache-Control': 'no-store' },
    );
  };
