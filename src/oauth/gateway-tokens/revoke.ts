// RFC 7009, where the gateway issues tokens of its own: whichever of the two a client revokes, its login ends.
import type { PendingReply, Reply, RequestBody } from '../../endpoint/message.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { Grants } from '../../grants/grants.ts';
import type { TokenCodec } from '../../grants/token-codec.ts';
import type { Clients } from '../clients/clients.ts';
import { parseBody } from '../request/parameters.ts';
import type { EarlierLogins } from './earlier-logins.ts';
import type { EndGrant } from './end-grant.ts';

export interface GatewayRevokeDeps {
  readonly clients: Clients;
  readonly codec: Pick<TokenCodec, 'readAccessToken' | 'readRefreshToken'>;
  readonly grants: Pick<Grants, 'read'>;
  readonly earlierLogins: Pick<EarlierLogins, 'findToken' | 'findRecord' | 'revoke'>;
  readonly endGrant: EndGrant;
}

export function createGatewayRevoke(deps: GatewayRevokeDeps) {
  const { clients, codec, grants, earlierLogins, endGrant } = deps;

  return async function revoke(body: RequestBody): Promise<PendingReply> {
    const parameters = parseBody(body);
    const token = parameters.require('token');
    const clientId = parameters.require('client_id');
    const own =
      codec.readRefreshToken(token) ??
      codec.readAccessToken(token) ??
      (await earlierLogins.findToken(token));
    const [stored, earlier] = await Promise.all([
      own && grants.read(own.grantId),
      own === undefined ? earlierLogins.findRecord(token) : undefined,
      clients.requireWithoutFetch(clientId),
    ]);
    if (earlier !== undefined) {
      requireOwner(earlier.owner, clientId);
      return async function revokeEarlier() {
        await earlierLogins.revoke(token);
        return REVOKED;
      };
    }
    // RFC 7009 §2.2: what is none, or none any more, is revoked already.
    if (stored === undefined)
      return async () => ({ ...REVOKED, ...(own && { facts: { grantId: own.grantId } }) });
    const { id, client, user } = stored.grant;
    requireOwner(client.id, clientId);
    return async function endAndAnswer() {
      await endGrant(id, 'client');
      return { ...REVOKED, facts: { user: user.sub, grantId: id } };
    };
  };
}

/** RFC 7009 §2.1: a token of another client is refused. */
function requireOwner(owner: string, clientId: string): void {
  if (owner === clientId) return;
  fail('invalid_grant', { details: 'The token was issued to another client.' });
}

const REVOKED: Reply = { status: 200, headers: { 'Cache-Control': 'no-store' } };
