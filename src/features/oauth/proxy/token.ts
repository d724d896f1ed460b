// §4.7, RFC 6749 §4.1.3 and §6: the token endpoint of proxy mode, forwarded to the provider.
import type { ProxyConfig } from '../../../core/config/groups/oauth.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import { generateSecret } from '../../../core/ids.ts';
import { parseObject } from '../../../core/json.ts';
import type { PendingReply, RequestBody } from '../../../core/message.ts';
import type { Client, Clients } from '../clients/clients.ts';
import type { LogLogin } from '../provider/login-log.ts';
import type { NoteClient } from '../provider/note-client.ts';
import type { ProviderApi } from '../provider/provider-api.ts';
import { renderProviderResponse } from '../provider/provider-response.ts';
import { readAskedTokens } from '../refresh/asked-tokens.ts';
import type { RecentAnswers } from '../refresh/recent-answers.ts';
import { parseBody, type RequestParameters } from '../request/parameters.ts';
import { forwardToProvider } from './forward.ts';

/** RFC 6749 §4.1.3, §6: by grant type. */
const REQUIRED = new Map<string, readonly string[]>([
  ['authorization_code', ['code', 'redirect_uri', 'client_id', 'code_verifier']],
  ['refresh_token', ['refresh_token', 'client_id']],
]);

export interface ProxyTokenDeps {
  readonly clients: Clients;
  readonly api: ProviderApi;
  readonly recentAnswers: RecentAnswers;
  readonly logLogin: LogLogin;
  readonly noteClient: NoteClient;
}

export const createProxyToken = (
  config: ProxyConfig,
  { clients, api, recentAnswers, logLogin, noteClient }: ProxyTokenDeps,
) =>
  async function token(
    body: RequestBody,
    authorization: string | undefined,
  ): Promise<PendingReply> {
    const parameters = parseBody(body);
    const grantType = parameters.require('grant_type');
    const required = REQUIRED.get(grantType) ?? fail('unsupported_grant_type');
    for (const name of required) parameters.require(name);
    const clientId = parameters.require('client_id');
    const isKnownClient = clients.isKnownClient(clientId);
    const client = isKnownClient ? await requireClient(clientId, parameters, clients) : undefined;
    const url = config.endpoints.tokenUrl;
    if (url === undefined) {
      fail('not_configured', { details: 'OAUTH_TOKEN_URL is not set on this gateway.' });
    }
    const isRefresh = grantType === 'refresh_token';
    const used = isRefresh ? parameters.require('refresh_token') : undefined;
    const asked = readAskedTokens(parameters, clientId);
    // A client of the provider may have credentials of its own there, which only the provider can check.
    const canRecall = client !== undefined && client.kind !== 'own';
    return async function forward() {
      const [kept, grant] = used
        ? await Promise.all([
            canRecall ? recentAnswers.find(used, clientId) : undefined,
            recentAnswers.findGrant(used),
          ])
        : [];
      const recalled = used && kept && (await recentAnswers.recall(used, kept, asked));
      if (recalled) {
        const { access_token: accessToken } = kept.tokens;
        const issued = { clientId, clientName: client?.name, accessToken };
        logLogin({ ...issued, isRefresh: true, isLastAnswer: true });
        return recalled;
      }
      const request = { url, parameters, authorization, isKnownClient };
      const response = await forwardToProvider(api, config.providerClient, request);
      if (response.status >= 400)
        await recentAnswers.endAfterRefusal(grant?.grantId, response.status);
      if (response.status === 200) {
        const tokens = parseObject(response.body) ?? {};
        const { access_token: accessToken } = tokens;
        if (client) await clients.recordUse(client);
        // A code is bound to its redirect URI, and so to its client. A refresh token may be any client's.
        if (client && !isRefresh) await noteClient(accessToken, client.id);
        if (canRecall) {
          const grantId = grant?.grantId ?? generateSecret();
          await recentAnswers.keep({ asked, grantId, used, tokens });
        }
        logLogin({ clientId, clientName: client?.name, accessToken, isRefresh });
      }
      return renderProviderResponse(response);
    };
  };

async function requireClient(
  clientId: string,
  parameters: RequestParameters,
  clients: Clients,
): Promise<Client> {
  const client = await clients.require(clientId, 'unauthenticated_client');
  const isCode = parameters.get('grant_type') === 'authorization_code';
  if (isCode && !clients.allowsRedirectUri(client, parameters.require('redirect_uri')))
    fail('invalid_grant');
  return client;
}
