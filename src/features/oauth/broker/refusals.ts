// RFC 6749 §5.2, decisions 10: whose matter it is when the provider refuses a request of the gateway.
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

/**
 * Of what a client sends nothing reaches the provider but scopes and, at a log-in, wishes for its
 * page: whatever else is wrong with a request, the client can do nothing about. Some clients take
 * such an error for a dead end and keep to it.
 *
 * @throws GatewayError `gateway_request_refused`.
 */
export function checkOwnRequest({ error: logged }: Reply, error: unknown): void {
  if (typeof error !== 'string' || OF_CLIENT_OR_USER.has(error)) return;
  fail('gateway_request_refused', { details: `${GATEWAY_AT_FAULT} ${logged?.message}` });
}

export const GATEWAY_AT_FAULT = "The gateway is misconfigured; this is not the user's fault.";

/** RFC 6749 §4.1.2.1 and §5.2, OpenID Connect Core §3.1.2.6: the rest of them passes, or a new log-in helps. */
const OF_CLIENT_OR_USER: ReadonlySet<string> = new Set([
  'invalid_grant',
  'invalid_scope',
  'access_denied',
  'login_required',
  'interaction_required',
  'consent_required',
  'account_selection_required',
  'temporarily_unavailable',
  'server_error',
]);
