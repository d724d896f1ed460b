// Spec §4.7, RFC 6749 §4.1.3 and §6: the token endpoint, forwarded to the provider.
import { fail } from '../../../core/errors/gateway-error.ts';
import { parseObject } from '../../../core/json.ts';
import type { PendingReply, RequestBody } from '../../../core/message.ts';
import type { Clients, KnownClient } from '../clients/clients.ts';
import type { ProviderClientSettings } from '../provider/provider-client.ts';
import type { TokenLog } from '../provider/token-log.ts';
import type { Upstream } from '../provider/upstream.ts';
import { fromBody, type Parameters } from '../request/parameters.ts';
import { forward } from './forward.ts';

export interface TokenSettings extends ProviderClientSettings {
  readonly oauthTokenUrl: string | undefined;
}

const REQUIRED = new Map<string, readonly string[]>([
  ['authorization_code', ['code', 'redirect_uri', 'client_id', 'code_verifier']],
  ['refresh_token', ['refresh_token', 'client_id']],
]);

export interface TokenDeps {
  readonly clients: Clients;
  readonly upstream: Upstream;
  readonly logTokens: TokenLog;
}

export const createToken = (settings: TokenSettings, { clients, upstream, logTokens }: TokenDeps) =>
  async function token(
    body: RequestBody,
    authorization: string | undefined,
  ): Promise<PendingReply> {
    const parameters = fromBody(body);
    const grantType = parameters.require('grant_type');
    const required = REQUIRED.get(grantType) ?? fail('unsupported_grant_type');
    for (const name of required) parameters.require(name);
    const clientId = parameters.require('client_id');
    const isOurs = clients.isOurs(clientId);
    const client = isOurs ? await findClient(clientId, parameters, clients) : undefined;
    const url = settings.oauthTokenUrl;
    if (url === undefined) {
      fail('not_configured', { details: 'OAUTH_TOKEN_URL is not set on this service.' });
    }
    return async function forwardToken() {
      const reply = await forward(upstream, url, settings, parameters, authorization, isOurs);
      if (reply.status !== 200) return reply;
      if (client) await clients.used(client);
      logTokens({
        clientId,
        clientName: client?.client_name,
        accessToken: parseObject(Buffer.from(reply.body ?? ''))?.access_token,
        isRefresh: grantType === 'refresh_token',
      });
      return reply;
    };
  };

async function findClient(
  clientId: string,
  parameters: Parameters,
  clients: Clients,
): Promise<KnownClient> {
  const { client, problem } = await clients.find(clientId);
  // A 401 here makes clients register anew and try again: the way out for an expired client.
  if (client === undefined) {
    return fail('unauthenticated_client', problem === undefined ? {} : { details: problem });
  }
  const isCode = parameters.get('grant_type') === 'authorization_code';
  if (isCode && !clients.allows(client, parameters.require('redirect_uri'))) fail('invalid_grant');
  return client;
}
