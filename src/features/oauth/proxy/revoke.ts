// RFC 7009: revocation in proxy mode, forwarded to the provider.
import type { ProxyConfig } from '../../../core/config/groups/oauth.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import type { PendingReply, RequestBody } from '../../../core/message.ts';
import type { Clients } from '../clients/clients.ts';
import type { ProviderApi } from '../provider/provider-api.ts';
import { renderProviderResponse } from '../provider/provider-response.ts';
import type { RecentAnswers } from '../refresh/recent-answers.ts';
import { parseBody } from '../request/parameters.ts';
import { forwardToProvider } from './forward.ts';

export interface ProxyRevokeDeps {
  readonly clients: Clients;
  readonly api: ProviderApi;
  readonly recentAnswers: RecentAnswers;
}

export const createProxyRevoke = (
  config: ProxyConfig,
  { clients, api, recentAnswers }: ProxyRevokeDeps,
) =>
  async function revoke(
    body: RequestBody,
    authorization: string | undefined,
  ): Promise<PendingReply> {
    const parameters = parseBody(body);
    const token = parameters.require('token');
    const clientId = parameters.get('client_id') ?? '';
    const isKnownClient = clients.isKnownClient(clientId);
    if (isKnownClient) await clients.require(clientId, 'unauthenticated_client');
    const url = config.endpoints.revocationUrl;
    if (url === undefined) {
      fail('not_configured', { details: 'OAUTH_REVOCATION_URL is not set on this gateway.' });
    }
    const request = { url, parameters, authorization, isKnownClient };
    return async function forward() {
      const [response, grant] = await Promise.all([
        forwardToProvider(api, config.providerClient, request),
        recentAnswers.findGrant(token),
      ]);
      if (response.status < 300 && grant) await recentAnswers.end(grant.grantId);
      return renderProviderResponse(response);
    };
  };
