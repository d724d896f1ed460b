// §4.7: with whose credentials a request goes on to the provider.
import type { ProviderClientConfig } from '../../../core/config/groups/provider-client.ts';
import type { ProviderApi } from '../provider/provider-api.ts';
import { authenticateClient } from '../provider/provider-client.ts';
import type { ProviderResponse } from '../provider/provider-response.ts';
import type { RequestParameters } from '../request/parameters.ts';

export interface ForwardedRequest {
  readonly url: string;
  readonly parameters: RequestParameters;
  /** The caller's Authorization header. */
  readonly authorization: string | undefined;
  /** Whether the gateway knows the caller; any other may be a client of the provider. */
  readonly isKnownClient: boolean;
}

/**
 * A client of the gateway is replaced by the provider's; any other caller goes on as it came, with
 * its own Basic header and never with our secret.
 */
export function forwardToProvider(
  api: ProviderApi,
  client: ProviderClientConfig,
  { url, parameters: { pairs: form }, authorization, isKnownClient }: ForwardedRequest,
): Promise<ProviderResponse> {
  if (isKnownClient) return api.post(authenticateClient(client, { url, form }));
  const basic = /^basic /i.test(authorization ?? '') ? authorization : undefined;
  return api.post({ url, form, authorization: basic, usesProviderClient: false });
}
