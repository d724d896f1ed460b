// Spec §4.7, RFC 6749 §4.1.3 and §6: the token endpoint, forwarded to the provider.
import { fail } from '../../core/errors/gateway-error.ts';
import type { Reply, RequestBody } from '../../core/message.ts';
import { forward } from './forward.ts';
import { fromBody, type Parameters } from './parameters.ts';
import type { ProviderClientSettings } from './provider-client.ts';
import { isDynamic, type RegisteredClients } from './registered-clients.ts';
import type { Upstream } from './upstream.ts';

export interface TokenSettings extends ProviderClientSettings {
  readonly oauthTokenUrl: string | undefined;
}

const REQUIRED = new Map<string, readonly string[]>([
  ['authorization_code', ['code', 'redirect_uri', 'client_id', 'code_verifier']],
  ['refresh_token', ['refresh_token', 'client_id']],
]);

export const createToken = (
  settings: TokenSettings,
  clients: RegisteredClients,
  upstream: Upstream,
) =>
  async function token(body: RequestBody, authorization: string | undefined): Promise<Reply> {
    const parameters = fromBody(body);
    const grantType = parameters.require('grant_type');
    const required = REQUIRED.get(grantType) ?? fail('unsupported_grant_type');
    for (const name of required) parameters.require(name);
    if (isDynamic(parameters.require('client_id'))) await checkClient(parameters, clients);
    const url = settings.oauthTokenUrl;
    if (url === undefined) {
      fail('not_configured', { details: 'OAUTH_TOKEN_URL is not set on this service.' });
    }
    return forward(upstream, url, settings, parameters, authorization);
  };

async function checkClient(parameters: Parameters, clients: RegisteredClients): Promise<void> {
  const client = await clients.find(parameters.require('client_id'));
  // A 401 here makes clients register anew and try again: the way out for an expired client.
  if (client === undefined) fail('unauthenticated_client');
  if (parameters.get('grant_type') !== 'authorization_code') return;
  if (!client.redirect_uris.includes(parameters.require('redirect_uri'))) fail('invalid_grant');
}
