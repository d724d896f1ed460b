// Spec §4.6: the authorization endpoint of proxy mode, a redirect to the provider.
import type { ProxyConfig } from '../../../core/config/groups/oauth.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import type { Reply } from '../../../core/message.ts';
import { requireClientId } from '../provider/provider-client.ts';
import type { AuthorizationRequest } from '../request/authorization-request.ts';
import type { Parameters } from '../request/parameters.ts';

/** @throws GatewayError `not_configured`. */
export const createToProvider = ({ endpoints, providerClient }: ProxyConfig) =>
  async function toProvider({
    parameters,
    client,
    clientId,
  }: AuthorizationRequest): Promise<Reply> {
    const upstream = endpoints.authorizationUrl;
    if (upstream === undefined) {
      fail('not_configured', { details: 'OAUTH_AUTHORIZATION_URL is not set on this service.' });
    }
    const upstreamClientId = client ? requireClientId(providerClient) : clientId;
    return {
      status: 302,
      headers: {
        Location: authorizationUrl(upstream, parameters, upstreamClientId),
        'Cache-Control': 'no-store',
      },
    };
  };

/** The configured query is kept and wins; every parameter of the caller follows (Spec §4.6). */
function authorizationUrl(upstream: string, { pairs }: Parameters, clientId: string): string {
  const configured = new URLSearchParams(new URL(upstream).search);
  const passed = pairs
    .filter(([name]) => !configured.has(name))
    .map(([name, value]) => [name, name === 'client_id' ? clientId : value] as const);
  return withParameters(upstream, passed);
}

/** An address with further parameters behind its own. */
function withParameters(address: string, pairs: readonly (readonly [string, string])[]): string {
  const url = new URL(address);
  const separator = url.search === '' ? '?' : '&';
  const query = new URLSearchParams(pairs.map((pair): [string, string] => [...pair]));
  return `${url.href.replace(/[?&]$/, '')}${separator}${query}`;
}
