// RFC 7009: revocation in broker mode, forwarded and remembered.
import type { ProviderClientConfig } from '../../../core/config/groups/provider-client.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import type { PendingReply, Reply, RequestBody } from '../../../core/message.ts';
import type { ProviderEndpoints } from '../../../core/provider/provider-endpoints.ts';
import type { Clients } from '../clients/clients.ts';
import type { ProviderApi } from '../provider/provider-api.ts';
import { authenticateClient } from '../provider/provider-client.ts';
import { renderProviderResponse } from '../provider/provider-response.ts';
import type { RecentAnswers } from '../refresh/recent-answers.ts';
import { parseBody } from '../request/parameters.ts';
import { failIfProviderClientRefused } from './provider-refusals.ts';
import type { RefreshTokens } from './refresh-tokens.ts';

export interface BrokerRevokeDeps {
  readonly providerClient: ProviderClientConfig;
  readonly clients: Clients;
  readonly api: ProviderApi;
  readonly endpoints: ProviderEndpoints;
  readonly refreshTokens: RefreshTokens;
  readonly recentAnswers: RecentAnswers;
}

export const createBrokerRevoke = (deps: BrokerRevokeDeps) =>
  async function revoke(body: RequestBody): Promise<PendingReply> {
    const { providerClient, clients, api, endpoints, refreshTokens, recentAnswers } = deps;
    const parameters = parseBody(body);
    const token = parameters.require('token');
    const clientId = parameters.require('client_id');
    const [{ owner, isRevoked, grantId }, grant] = await Promise.all([
      refreshTokens.find(token),
      recentAnswers.findGrant(token),
      clients.requireWithoutFetch(clientId),
    ]);
    // RFC 7009 §2.1: a token of another client is refused.
    if (owner !== undefined && owner !== clientId) {
      fail('invalid_grant', { details: 'The token was issued to another client.' });
    }
    // RFC 7009 §2.2: revoking once more is no error.
    if (isRevoked) return async () => REVOKED;
    const hint = parameters.get('token_type_hint');
    return async function forward() {
      const latest = (await refreshTokens.findSuccessor(token)) ?? token;
      const form = [
        ['token', latest] as const,
        ...(hint === undefined ? [] : [['token_type_hint', hint] as const]),
      ];
      const url = await endpoints.findRevocationUrl();
      const response = await api.post(authenticateClient(providerClient, { url, form }));
      failIfProviderClientRefused(response);
      if (response.status >= 200 && response.status < 300) {
        const wasBound = owner !== undefined;
        const ended = grantId ?? grant?.grantId;
        await Promise.all([
          ...[token, latest].map((one) => refreshTokens.revoke(one, wasBound)),
          ended !== undefined && recentAnswers.end(ended),
        ]);
      }
      return renderProviderResponse(response);
    };
  };

const REVOKED: Reply = { status: 200, headers: { 'Cache-Control': 'no-store' } };
