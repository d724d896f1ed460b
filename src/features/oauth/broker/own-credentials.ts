// Whether the provider took the gateway's own client for what it is.
import { fail } from '../../../core/errors/gateway-error.ts';
import type { Reply } from '../../../core/message.ts';

/**
 * The gateway's credentials are no client's matter: hearing `invalid_client` or a 401, clients throw
 * away their registration and their tokens, which are good.
 *
 * @throws GatewayError `gateway_refused_by_provider`.
 */
export function checkOwnCredentials({ status, error }: Reply): void {
  if (status !== 401 && error?.key !== 'service_refused_by_provider') return;
  fail('gateway_refused_by_provider', { cause: error?.message });
}
