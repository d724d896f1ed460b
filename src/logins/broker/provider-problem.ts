// §5.11: the provider says what cannot be used. Only who runs it or the gateway can mend that: what the person who logs in
// reads names provider and member.

import { GatewayError } from '../../errors/gateway-error.ts';
import type { Reply } from '../../http/endpoint/message.ts';
import { OAUTH, renderErrorPage, toLogMembers } from '../../http/endpoint/render-error.ts';

/** As a page, where the answer has no meaning at all. The log has it all; `clientUrl` leads back, once its user says so. */
export function renderUnusableAnswer(error: GatewayError, clientUrl: string): Reply {
  const redirect = { url: clientUrl, isAutomatic: false };
  const shown = new GatewayError(error.key, { details: error.message, redirect });
  return { ...renderErrorPage(shown, OAUTH), ...toLogMembers(error) };
}

/** What the provider says of a user is not for a client that has no grant yet. */
export function withoutUserDetails(error: GatewayError, issuer: string): GatewayError {
  const { key, row, failure } = error;
  const place = PLACES.get(key);
  if (place === undefined) return error;
  const { member } = failure.facts ?? {};
  const what = typeof member === 'string' ? `${member} of ${place}` : place;
  return new GatewayError(key, {
    details: `${row.details} It is ${what} of ${issuer}; the log of the gateway says what is wrong.`,
  });
}

const PLACES: ReadonlyMap<string, string> = new Map([
  ['unusable_id_token', 'the ID token'],
  ['unusable_identity', 'the answer about the user'],
]);
