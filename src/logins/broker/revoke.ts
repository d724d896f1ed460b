// RFC 7009 in broker mode: a client revokes an access or a refresh token, and the login behind it ends.

import type { JudgedRequest } from '../../http/endpoint/endpoint.ts';
import {
  type GatewayRequest,
  getHeader,
  type Reply,
  type RequestBody,
} from '../../http/endpoint/message.ts';
import { parseBody } from '../../http/endpoint/parameters.ts';
import type {
  ClientAuthentication,
  ProvenClient,
} from '../client-authentication/authenticate-client.ts';
import { hasCredentials } from '../client-authentication/read-credentials.ts';
import type { Clients } from '../clients/clients.ts';
import { hasRefreshToken, nameUser } from '../grants/grant.ts';
import type { Broker } from './open-broker.ts';
import { failGrant } from './token.ts';

export function createBrokerRevoke(
  { ownTokens: { codec, grants }, ends }: Broker,
  clients: Clients,
  { authenticate }: ClientAuthentication<ProvenClient>,
) {
  return async function revoke(request: GatewayRequest, body: RequestBody): Promise<JudgedRequest> {
    const authorization = getHeader(request, 'authorization');
    const parameters = parseBody(body);
    // RFC 7009 §2.1: `token_type_hint` is not needed.
    const token = parameters.require('token');
    const own = codec.readRefreshToken(token) ?? codec.readAccessToken(token);
    const stored = own && (await grants.read(own.grantId));
    // RFC 7009 §2.1: a client that authenticated to get the token authenticates here, too; the others are public, and name themselves.
    const named = parameters.get('client_id');
    const isPublic = named !== undefined && clients.isKnownClient(named);
    const hasProved = stored !== undefined && !hasRefreshToken(stored.grant);
    const proves = hasProved || (!isPublic && hasCredentials(parameters, authorization));
    const proven = proves ? await authenticate({ body, parameters, authorization }) : undefined;
    const clientId = proven?.client.id ?? parameters.require('client_id');
    if (proven === undefined) await clients.requireWithoutFetch(clientId);
    // RFC 7009 §2.2: an unknown token counts as revoked already. Any stranger could have made it up.
    if (stored === undefined)
      return {
        async runAnonymous() {
          await proven?.useUp();
          return { ...REVOKED, ...(own && { facts: { grantId: own.grantId } }) };
        },
      };
    const { id, client, user } = stored.grant;
    // RFC 7009 §2.1: a token of another client is refused.
    if (client.id !== clientId) failGrant('The token was issued to another client.');
    return async function endAndAnswer() {
      await proven?.useUp();
      await ends.endGrant(id, 'client');
      return { ...REVOKED, facts: { ...nameUser(user), grantId: id } };
    };
  };
}

const REVOKED: Reply = { status: 200, headers: { 'Cache-Control': 'no-store' } };
