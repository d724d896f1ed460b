// §22.4: what to do about a login that failed, by the name that the log has for it.
import type { ErrorKey } from '../../errors/catalogue.ts';

const REGISTER_AGAIN = 'Remove the server in the client, and add it again.';
const LOG_IN_AGAIN = 'Start the login again in the client.';
const UPDATE_CLIENT = 'Update the client: it asks for something that the gateway does not offer.';

/** Beside the catalogue: what the provider or the user decided. */
type Refusal = 'refused_by_provider' | 'access_denied';

const REMEDIES: Readonly<Partial<Record<ErrorKey | Refusal, string>>> = {
  // Registration.
  invalid_client_metadata: UPDATE_CLIENT,
  invalid_redirect_uri:
    "Update the client. If its callback address has a scheme of the client's own, add that to OAUTH_REDIRECT_SCHEMES.",
  registration_token_required:
    'Give the client the token of DCR_ACCESS_TOKEN, or remove this setting, so that every client may register.',

  // On the way to the provider and back.
  unknown_client: `Its registration has expired (DCR_CLIENT_TTL) or was deleted. ${REGISTER_AGAIN}`,
  unauthenticated_client: `Its registration has expired (DCR_CLIENT_TTL) or was deleted. ${REGISTER_AGAIN}`,
  unregistered_redirect_uri: `The client came with another address or port than it registered. Free the port that it registered. If that does not help: ${lowerFirst(REGISTER_AGAIN)}`,
  oauth_invalid_request: `${LOG_IN_AGAIN} It must go on in the browser in which it began, with cookies, within ten minutes.`,
  unsupported_response_type: UPDATE_CLIENT,
  unsupported_grant_type: UPDATE_CLIENT,
  invalid_target:
    'Compare the address in the client with BASE_URL: the client asked for a token for another address.',
  access_denied: 'Nothing: the user chose Deny, here or at the provider.',
  invalid_origin:
    'A web page opened the login by a script. Open it in a browser, or add the origin to ALLOWED_ORIGINS.',

  // Tokens.
  invalid_grant: LOG_IN_AGAIN,
  refused_by_provider: `See what the provider says. After a refresh token has expired: ${lowerFirst(LOG_IN_AGAIN)}`,
  gateway_refused_by_provider:
    'Compare OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET and OAUTH_CLIENT_AUTH with the client at the provider.',
  gateway_request_refused:
    'Compare the client at the provider with the message: its redirect URI must be BASE_URL/oauth/callback, and it must allow the scopes of OAUTH_ADDED_SCOPES. Some providers need OAUTH_RESOURCE_PARAMETER.',
  unusable_access_token:
    'Change the setting that the message names, or have the provider make tokens for this gateway (OIDC_AUDIENCE).',
  upstream_failed:
    'Check that the gateway reaches the provider. postern doctor says why it does not.',
  provider_busy: 'Wait: the provider is slow. If it stays so, look at the provider.',
  not_configured: 'Set the variable that the message names.',

  // A token that the gateway does not accept.
  invalid_audience:
    "Compare OIDC_AUDIENCE with the token's aud, character by character, or have the provider put the address of the gateway there.",
  invalid_issuer:
    "Set OIDC_ISSUER to the token's iss, character by character; a slash at the end counts.",
  missing_claim: 'Have the provider put sub into access tokens.',

  internal_error: 'Look at /health/ready and at the log: mostly it is the store.',
};

const BY_NAME: ReadonlyMap<string, string> = new Map(Object.entries(REMEDIES));

/** Always says something. */
export const findRemedy = (error: string): string =>
  BY_NAME.get(error) ?? 'The log has more about it at the same time.';

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
