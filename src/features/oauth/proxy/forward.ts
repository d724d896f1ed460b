// Spec §4.7, decisions 6: with whose credentials a request goes on to the provider.
import type { Reply } from '../../../core/message.ts';
import { asService, type ProviderClientSettings } from '../provider/provider-client.ts';
import type { Upstream } from '../provider/upstream.ts';
import type { Parameters } from '../request/parameters.ts';

/**
 * A client of ours is replaced by the provider's; any other caller goes on as it came, with its
 * own Basic header and never with our secret.
 */
export function forward(
  upstream: Upstream,
  url: string,
  settings: ProviderClientSettings,
  { pairs }: Parameters,
  authorization: string | undefined,
  isOurs: boolean,
): Promise<Reply> {
  if (isOurs) return upstream({ url, ...asService(settings, pairs) });
  const basic = /^basic /i.test(authorization ?? '') ? authorization : undefined;
  return upstream({ url, form: pairs, authorization: basic, asService: false });
}
