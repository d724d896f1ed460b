// RFC 7009: revocation in proxy mode, forwarded to the provider.
import { fail } from '../../../core/errors/gateway-error.ts';
import type { PendingReply, RequestBody } from '../../../core/message.ts';
import type { Clients } from '../clients/clients.ts';
import type { ProviderApi } from '../provider/provider-api.ts';
import type { ProviderClientSettings } from '../provider/provider-client.ts';
import { providerReply } from '../provider/provider-response.ts';
import { fromBody } from '../request/parameters.ts';
import { forwardToProvider } from './forward.ts';

export interface RevokeSettings extends ProviderClientSettings {
  readonly oauthRevocationUrl: string | undefined;
}

export const createRevoke = (settings: RevokeSettings, clients: Clients, api: ProviderApi) =>
  async function revoke(
    body: RequestBody,
    authorization: string | undefined,
  ): Promise<PendingReply> {
    const parameters = fromBody(body);
    parameters.require('token');
    const clientId = parameters.get('client_id') ?? '';
    const isGatewayClient = clients.isGatewayClient(clientId);
    if (isGatewayClient) await clients.require(clientId, 'unauthenticated_client');
    const url = settings.oauthRevocationUrl;
    if (url === undefined) {
      fail('not_configured', { details: 'OAUTH_REVOCATION_URL is not set on this service.' });
    }
    return async () =>
      providerReply(
        await forwardToProvider(api, settings, { url, parameters, authorization, isGatewayClient }),
      );
  };
