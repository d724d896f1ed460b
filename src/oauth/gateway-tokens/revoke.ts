// RFC 7009, where the gateway issues tokens of its own: whichever of the two a client revokes, its login ends.
import type { PendingReply, Reply, RequestBody } from '../../endpoint/message.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { Grants } from '../../grants/grants.ts';
import type { TokenCodec } from '../../grants/token-codec.ts';
import type { Clients } from '../clients/clients.ts';
import { parseBody } from '../request/parameters.ts';
import type { EndGrant } from './end-grant.ts';

export interface GatewayRevokeDeps {
  readonly clients: Clients;
  readonly codec: Pick<TokenCodec, 'readAccessToken' | 'readRefreshToken'>;
  readonly grants: Pick<Grants, 'read'>;
  readonly endGrant: EndGrant;
}

export const createGatewayRevoke = ({ clients, codec, grants, endGrant }: GatewayRevokeDeps) =>
  async function revoke(body: RequestBody): Promise<PendingReply> {
    const parameters = parseBody(body);
    const token = parameters.require('token');
    const clientId = parameters.require('client_id');
    const grantId = (codec.readRefreshToken(token) ?? codec.readAccessToken(token))?.grantId;
    const [stored] = await Promise.all([
      grantId === undefined ? undefined : grants.read(grantId),
      clients.requireWithoutFetch(clientId),
    ]);
    // RFC 7009 §2.2: what is none, or none any more, is revoked already.
    if (stored === undefined) return async () => REVOKED;
    const { id, client, user } = stored.grant;
    // RFC 7009 §2.1: a token of another client is refused.
    if (client.id !== clientId) {
      fail('invalid_grant', { details: 'The token was issued to another client.' });
    }
    return async function endAndAnswer() {
      await endGrant(id);
      return { ...REVOKED, facts: { user: user.sub, grantId: id } };
    };
  };

const REVOKED: Reply = { status: 200, headers: { 'Cache-Control': 'no-store' } };
