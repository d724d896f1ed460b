// RFC 6749 §5.2: who can mend it when the provider refuses a request of the gateway.
import { fail } from '../../errors/gateway-error.ts';
import { parseObject } from '../../platform/json.ts';
import {
  describeRefusal,
  type ProviderRefusal,
  type ProviderResponse,
} from '../provider/provider-api.ts';

/**
 * A refused token request, as its client gets it. `spentRefreshTokenError` is the provider's own code
 * for a refresh token that is used up; undefined where it has none, and when a code was redeemed.
 *
 * @throws GatewayError `gateway_request_refused` when the client can do nothing about it.
 */
export function forwardRefusal(
  { status, headers, body, refusal }: ProviderResponse,
  spentRefreshTokenError: string | undefined,
) {
  const isSpent = spentRefreshTokenError !== undefined && refusal?.code === spentRefreshTokenError;
  if (!isSpent) failIfRequestRefused(refusal);
  return {
    // It is an error to the client, whatever the provider called it.
    status: Math.max(status, 400),
    headers: { ...headers, 'Cache-Control': 'no-store' },
    // RFC 6749 §5.2: clients log in anew when they get this, and only then.
    body: isSpent
      ? JSON.stringify({ ...parseObject(body), error: 'invalid_grant' })
      : body.toString('utf8'),
    ...(refusal && { error: describeRefusal(refusal) }),
  };
}

/**
 * Of what a client sends nothing reaches the provider but scopes and, at a login, wishes for its
 * page: about whatever else is wrong with a request, the client can do nothing. Some clients take
 * such an error for final and give up for good.
 *
 * @throws GatewayError `gateway_request_refused`.
 */
function failIfRequestRefused(refusal: ProviderRefusal | undefined): void {
  if (refusal?.code === undefined || isKnownRefusal(refusal.code)) return;
  fail('gateway_request_refused', { details: `${MISCONFIGURED} ${refusal.message}` });
}

export const MISCONFIGURED = "The gateway is misconfigured; this is not the user's fault.";

/** Whether it is a code of which the specifications say what it means for a client or a user. */
export const isKnownRefusal = (code: string | undefined): boolean =>
  code !== undefined && OF_CLIENT_OR_USER.has(code);

/** RFC 6749 §4.1.2.1 and §5.2, OpenID Connect Core §3.1.2.6: these pass, or a new login helps. */
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
