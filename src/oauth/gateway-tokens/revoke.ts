// RFC 7009, where the gateway issues tokens of its own: whichever of the two a client revokes, its login ends.

import type { PendingReply, Reply, RequestBody } from '../../endpoint/message.ts';
import { fail } from '../../errors/gateway-error.ts';
import { nameUser } from '../../grants/grant.ts';
import type { Grants } from '../../grants/grants.ts';
import type { TokenCodec } from '../../grants/token-codec.ts';
import type {
  ClientAuthentication,
  ClientRequest,
} from '../client-authentication/authenticate-client.ts';
import { hasCredentials } from '../client-authentication/read-credentials.ts';
import type { Clients } from '../clients/clients.ts';
import { parseBody } from '../request/parameters.ts';
import type { EarlierLogins } from './earlier-logins.ts';
import type { EndGrant } from './end-grant.ts';

/** Who revokes, and what is left to do of its proof. */
interface RevokingClient {
  readonly id: string;
  useUp(): Promise<void>;
}

export interface GatewayRevokeDeps {
  readonly clients: Clients;
  readonly authentication: Pick<ClientAuthentication, 'authenticate'>;
  readonly codec: Pick<TokenCodec, 'readAccessToken' | 'readRefreshToken'>;
  readonly grants: Pick<Grants, 'read'>;
  readonly earlierLogins: Pick<EarlierLogins, 'findToken' | 'findRecord' | 'revoke'>;
  readonly endGrant: EndGrant;
}

export function createGatewayRevoke(deps: GatewayRevokeDeps) {
  const { clients, authentication, codec, grants, earlierLogins, endGrant } = deps;

  /** A client of the configuration file proves that it is itself; the others are public, and say who they are. */
  async function identify(request: ClientRequest): Promise<RevokingClient> {
    const { parameters } = request;
    const named = parameters.get('client_id');
    const isPublic = named !== undefined && clients.isKnownClient(named);
    if (isPublic || !hasCredentials(request)) {
      const id = parameters.require('client_id');
      await clients.requireWithoutFetch(id);
      return { id, useUp: async () => {} };
    }
    const { client, useUp } = await authentication.authenticate(request);
    return { id: client.id, useUp };
  }

  return async function revoke(
    body: RequestBody,
    authorization: string | undefined,
  ): Promise<PendingReply> {
    const parameters = parseBody(body);
    const token = parameters.require('token');
    const own =
      codec.readRefreshToken(token) ??
      codec.readAccessToken(token) ??
      (await earlierLogins.findToken(token));
    const [stored, earlier, { id: clientId, useUp }] = await Promise.all([
      own && grants.read(own.grantId),
      own === undefined ? earlierLogins.findRecord(token) : undefined,
      // Nothing else is awaited meanwhile: nobody would hear that it is refused.
      identify({ body, parameters, authorization }),
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
      return async () => {
        await useUp();
        return { ...REVOKED, ...(own && { facts: { grantId: own.grantId } }) };
      };
    const { id, client, user } = stored.grant;
    requireOwner(client.id, clientId);
    return async function endAndAnswer() {
      await useUp();
      await endGrant(id, 'client');
      return { ...REVOKED, facts: { ...nameUser(user), grantId: id } };
    };
  };
}

/** RFC 7009 §2.1: a token of another client is refused. */
function requireOwner(owner: string, clientId: string): void {
  if (owner === clientId) return;
  fail('invalid_grant', { details: 'The token was issued to another client.' });
}

const REVOKED: Reply = { status: 200, headers: { 'Cache-Control': 'no-store' } };
