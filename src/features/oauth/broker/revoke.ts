// RFC 7009: revocation in broker mode, forwarded and unbound.
import { fail } from '../../../core/errors/gateway-error.ts';
import type { PendingReply, RequestBody } from '../../../core/message.ts';
import type { Clients } from '../clients.ts';
import { fromBody } from '../parameters.ts';
import { asService, type ProviderClientSettings } from '../provider-client.ts';
import type { Upstream } from '../upstream.ts';
import type { ProviderEndpoints } from './provider-endpoints.ts';
import type { RefreshBindings } from './refresh-bindings.ts';

export interface BrokerRevokeDeps {
  readonly settings: ProviderClientSettings;
  readonly clients: Clients;
  readonly upstream: Upstream;
  readonly endpoints: ProviderEndpoints;
  readonly bindings: RefreshBindings;
}

export const createBrokerRevoke = (deps: BrokerRevokeDeps) =>
  async function revoke(body: RequestBody): Promise<PendingReply> {
    const { settings, clients, upstream, endpoints, bindings } = deps;
    const parameters = fromBody(body);
    const token = parameters.require('token');
    const clientId = parameters.require('client_id');
    const isKnown =
      clients.isAllowedDocument(clientId) || (await clients.find(clientId)).client !== undefined;
    if (!isKnown) fail('unauthenticated_client');
    const owner = await bindings.ownerOf(token);
    // RFC 7009 §2.1: a token of another client is refused.
    if (owner !== undefined && owner !== clientId) {
      fail('invalid_grant', { details: 'The token was issued to another client.' });
    }
    const hint = parameters.get('token_type_hint');
    const form = [
      ['token', token] as const,
      ...(hint === undefined ? [] : [['token_type_hint', hint] as const]),
    ];
    return async function forward() {
      const url = await endpoints.revocation();
      const reply = await upstream({ url, ...asService(settings, form) });
      if (reply.status === 200) await bindings.unbind(token);
      return reply;
    };
  };
