// RFC 7009 in broker mode: whichever of its two tokens a client revokes, its login ends.

import { fail } from '../../errors/gateway-error.ts';
import type { JudgedRequest } from '../../http/endpoint/endpoint.ts';
import type { Reply, RequestBody } from '../../http/endpoint/message.ts';
import { parseBody } from '../../http/endpoint/parameters.ts';
import type {
  ClientAuthentication,
  ClientRequest,
  ProvenClient,
} from '../client-authentication/authenticate-client.ts';
import { hasCredentials } from '../client-authentication/read-credentials.ts';
import type { Clients } from '../clients/clients.ts';
import { type Grant, hasRefreshToken, nameUser } from '../grants/grant.ts';
import type { Grants } from '../grants/grants.ts';
import type { TokenCodec } from '../grants/token-codec.ts';
import type { EndGrant } from './end-grant.ts';

/** Who revokes, and what is left to do of its proof. */
interface RevokingClient {
  readonly id: string;
  useUp(): Promise<void>;
}

export interface BrokerRevokeDeps {
  readonly clients: Clients;
  readonly authentication: Pick<ClientAuthentication<ProvenClient>, 'authenticate'>;
  readonly codec: Pick<TokenCodec, 'readAccessToken' | 'readRefreshToken'>;
  readonly grants: Pick<Grants, 'read'>;
  readonly endGrant: EndGrant;
}

export function createBrokerRevoke(deps: BrokerRevokeDeps) {
  const { clients, authentication, codec, grants, endGrant } = deps;

  /** Who proved to be itself to get the token does so here, too (RFC 7009 §2.1); the others are public, and say who they are. */
  async function identify(
    request: ClientRequest,
    grant: Grant | undefined,
  ): Promise<RevokingClient> {
    const { parameters } = request;
    const named = parameters.get('client_id');
    const hasProof = grant !== undefined && !hasRefreshToken(grant);
    const isPublic = named !== undefined && clients.isKnownClient(named);
    if (!hasProof && (isPublic || !hasCredentials(request))) {
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
  ): Promise<JudgedRequest> {
    const parameters = parseBody(body);
    const token = parameters.require('token');
    const own = codec.readRefreshToken(token) ?? codec.readAccessToken(token);
    const stored = own && (await grants.read(own.grantId));
    const request = { body, parameters, authorization };
    const { id: clientId, useUp } = await identify(request, stored?.grant);
    // RFC 7009 §2.2: what is none, or none any more, is revoked already. Anybody could have made it up.
    if (stored === undefined)
      return {
        async runAnonymous() {
          await useUp();
          return { ...REVOKED, ...(own && { facts: { grantId: own.grantId } }) };
        },
      };
    const { id, client, user } = stored.grant;
    // RFC 7009 §2.1: a token of another client is refused.
    if (client.id !== clientId) {
      fail('invalid_grant', { details: 'The token was issued to another client.' });
    }
    return async function endAndAnswer() {
      await useUp();
      await endGrant(id, 'client');
      return { ...REVOKED, facts: { ...nameUser(user), grantId: id } };
    };
  };
}

const REVOKED: Reply = { status: 200, headers: { 'Cache-Control': 'no-store' } };
