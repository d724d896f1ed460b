// Spec §4.7, decisions 6: with whose credentials a request goes on to the provider.
import type { Reply } from '../../core/message.ts';
import type { Parameters } from './parameters.ts';
import { inTheNameOfDynamicClient, type ProviderClientSettings } from './provider-client.ts';
import { isDynamic } from './registered-clients.ts';
import type { Upstream } from './upstream.ts';

/**
 * A dynamic client is replaced by the provider's; any other caller goes on as it came, with its
 * own Basic header and never with our secret.
 */
export function forward(
  upstream: Upstream,
  url: string,
  settings: ProviderClientSettings,
  { get, pairs }: Parameters,
  authorization: string | undefined,
): Promise<Reply> {
  if (isDynamic(get('client_id') ?? '')) {
    return upstream({ url, ...inTheNameOfDynamicClient(settings, pairs), asService: true });
  }
  const basic = /^basic /i.test(authorization ?? '') ? authorization : undefined;
  return upstream({ url, form: pairs, authorization: basic, asService: false });
}
