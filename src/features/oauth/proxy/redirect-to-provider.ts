// §4.6: the authorization endpoint of proxy mode, a redirect to the provider.
import type { ProxyConfig } from '../../../core/config/groups/oauth.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import type { Reply } from '../../../core/message.ts';
import { requireClientId } from '../provider/provider-client.ts';
import type { AuthorizationRequest } from '../request/authorization-request.ts';
import type { RequestParameters } from '../request/parameters.ts';

/** @throws GatewayError `not_configured`. */
export const createProxyRedirect = ({ endpoints, providerClient }: ProxyConfig) =>
  async function redirectToProvider({
    parameters,
    client,
    clientId,
  }: AuthorizationRequest): Promise<Reply> {
    const url = endpoints.authorizationUrl;
    if (url === undefined) {
      fail('not_configured', { details: 'OAUTH_AUTHORIZATION_URL is not set on this gateway.' });
    }
    const providerClientId = client ? requireClientId(providerClient) : clientId;
    return {
      status: 302,
      headers: {
        Location: buildAuthorizationUrl(url, parameters, providerClientId),
        'Cache-Control': 'no-store',
      },
    };
  };

/** The configured query is kept and wins; every parameter of the caller follows (§4.6). */
function buildAuthorizationUrl(
  configuredUrl: string,
  { pairs }: RequestParameters,
  clientId: string,
): string {
  const url = new URL(configuredUrl);
  const query = new URLSearchParams();
  for (const [name, value] of pairs) {
    if (!url.searchParams.has(name)) query.append(name, name === 'client_id' ? clientId : value);
  }
  const separator = url.search === '' ? '?' : '&';
  return `${url.href.replace(/[?&]$/, '')}${separator}${query}`;
}
