// Decisions 6, RFC 7009: revocation, forwarded to the provider.
import { fail } from '../../../core/errors/gateway-error.ts';
import type { PendingReply, RequestBody } from '../../../core/message.ts';
import type { Clients } from '../clients/clients.ts';
import type { ProviderClientSettings } from '../provider/provider-client.ts';
import type { Upstream } from '../provider/upstream.ts';
import { fromBody } from '../request/parameters.ts';
import { forward } from './forward.ts';

export interface RevokeSettings extends ProviderClientSettings {
  readonly oauthRevocationUrl: string | undefined;
}

export const createRevoke = (settings: RevokeSettings, clients: Clients, upstream: Upstream) =>
  async function revoke(
    body: RequestBody,
    authorization: string | undefined,
  ): Promise<PendingReply> {
    const parameters = fromBody(body);
    parameters.require('token');
    const clientId = parameters.get('client_id') ?? '';
    const isOurs = clients.isOurs(clientId);
    if (isOurs && !(await clients.find(clientId)).client) fail('unauthenticated_client');
    const url = settings.oauthRevocationUrl;
    if (url === undefined) {
      fail('not_configured', { details: 'OAUTH_REVOCATION_URL is not set on this service.' });
    }
    return () => forward(upstream, url, settings, parameters, authorization, isOurs);
  };
