// §22: panels of registered clients, failed logins, and the provider's key set.

import type { ErrorKey } from '../../errors/catalogue.ts';
import type { AdminPanel } from '../../http/endpoint/admin-panel.ts';
import {
  endById,
  readPageRequest,
  renderNext,
  renderTime,
} from '../../http/endpoint/admin-requests.ts';
import type { AdminTable } from '../../http/endpoint/admin-table.ts';
import { isRegisteredClientId } from '../../platform/ids.ts';
import { stripUri } from '../../platform/secret-texts.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { KeySet } from '../auth/key-set.ts';
import { createClientDirectory } from '../clients/clients.ts';
import type { LoginFailures, NotedLoginFailure } from '../request/login-facts.ts';

export function createLoginPanels(
  { store }: Runtime,
  { list: listFailures }: LoginFailures,
  issuer: string,
  describeKeySet: KeySet['describe'],
): readonly AdminPanel[] {
  const clients = createClientDirectory(store);

  return [
    {
      method: 'GET',
      path: '/clients',
      table: CLIENTS_TABLE,
      async show(query) {
        const page = await clients.list(readPageRequest(query));
        const described = page.items.map(({ client, expiresAt }) => ({
          id: client.client_id,
          name: client.client_name,
          redirectUris: client.redirect_uris.map(stripUri),
          registeredAt: renderTime(client.client_id_issued_at * 1000),
          expiresAt: renderTime(expiresAt),
          /** True once it got a token. */
          isUsed: client.used === true,
        }));
        return { clients: described, ...renderNext(page) };
      },
    },
    endById('/clients/:id', {
      action: 'delete_client',
      isId: isRegisteredClientId,
      end: clients.delete,
      notFound: 'client_not_found',
    }),
    {
      method: 'GET',
      path: '/login-failures',
      table: FAILURES_TABLE,
      async show() {
        const failures = await listFailures();
        return {
          failures: failures.map((one) => ({
            ...one,
            remedy: findRemedy(one),
          })),
        };
      },
    },
    {
      method: 'GET',
      path: '/key-set',
      show() {
        const { url, fetchedAt, nextFetchAt, ...facts } = describeKeySet();
        return {
          issuer,
          url: url && stripUri(url),
          ...facts,
          fetchedAt: renderTime(fetchedAt),
          nextFetchAt: renderTime(nextFetchAt),
        };
      },
    },
  ];
}

const CLIENTS_TABLE: AdminTable = {
  group: 'people',
  tab: 'Apps',
  title: 'Registered clients',
  none: 'There are none.',
  rows: 'clients',
  columns: [
    { title: 'Name', member: 'name', none: 'unnamed' },
    { title: 'Has got a token', member: 'isUsed' },
    { title: 'Registered', member: 'registeredAt', kind: 'time' },
    { title: 'Expires', member: 'expiresAt', kind: 'time' },
    { title: 'Redirect URIs', member: 'redirectUris', kind: 'code' },
    { title: 'Client ID', member: 'id', kind: 'code' },
  ],
  acts: [
    {
      label: 'Delete client',
      question:
        'Delete {name} ({id})? It can neither log in nor refresh until it registers again. Tokens that it has stay valid until they expire.',
      answer: 'Delete it',
      path: '/clients/{id}',
    },
  ],
};

const FAILURES_TABLE: AdminTable = {
  group: 'activity',
  tab: 'Refused logins',
  title: 'Logins that failed',
  none: 'None in the last seven days.',
  rows: 'failures',
  columns: [
    { title: 'Error', member: 'error', kind: 'code' },
    { title: 'Time', member: 'time', kind: 'time' },
    { title: 'Step', member: 'step' },
    { title: 'Address', member: 'ip' },
    { title: 'Client', member: 'client', kind: 'code' },
    { title: 'Message', member: 'message', kind: 'whole' },
    { title: 'What to do', member: 'remedy', kind: 'whole' },
  ],
};

// §22.4: advice about failed logins, by the name that the log has for the failure.

const REGISTER_AGAIN = 'Remove the server in the client, and add it again.';
const LOG_IN_AGAIN = 'Start the login again in the client.';
const SET_ISSUER =
  "Set OIDC_ISSUER to the token's iss, character by character; a slash at the end counts.";
const UPDATE_CLIENT = 'Update the client: it requests something that the gateway does not offer.';

/** Besides the errors in the catalogue, there are refusals by provider or user. */
const REMEDIES: { readonly [Key in ErrorKey | 'refused_by_provider' | 'access_denied']?: string } =
  {
    // Registration.
    invalid_client_metadata: UPDATE_CLIENT,
    invalid_redirect_uri:
      "Update the client. If its callback address has a scheme of the client's own, add that to OAUTH_REDIRECT_SCHEMES.",
    registration_token_required:
      'Give the client the token of DCR_ACCESS_TOKEN, or remove this setting, so that every client may register.',

    // On the way to the provider and back.
    unknown_client: `Its registration has expired (DCR_CLIENT_TTL) or was deleted. ${REGISTER_AGAIN}`,
    unauthenticated_client: `Its registration has expired (DCR_CLIENT_TTL) or was deleted. ${REGISTER_AGAIN}`,
    unregistered_redirect_uri: `The client uses a different address or port than it registered. Free the port that it registered. If that does not help: ${lowerFirst(REGISTER_AGAIN)}`,
    oauth_invalid_request: `${LOG_IN_AGAIN} The login must continue in the browser in which it began, with cookies, within ten minutes.`,
    unsupported_response_type: UPDATE_CLIENT,
    unsupported_grant_type: UPDATE_CLIENT,
    invalid_target:
      'Compare the address in the client with BASE_URL: the client requested a token for a different address.',
    access_denied: 'Nothing: the user chose Deny, here or at the provider.',
    invalid_origin:
      'A web page opened the login by a script. Open it in a browser, or add the origin to ALLOWED_ORIGINS.',

    // Tokens.
    invalid_grant: LOG_IN_AGAIN,
    authorization_code_reused: `The client sent its authorization code twice, or somebody else had the code and its code_verifier. ${LOG_IN_AGAIN}`,
    refresh_token_reused: `A refresh token was used that had been replaced: the client lost its new one, or somebody else had the old one. ${LOG_IN_AGAIN}`,
    refused_by_provider: `See what the provider says. After a refresh token has expired: ${lowerFirst(LOG_IN_AGAIN)}`,
    gateway_refused_by_provider:
      'Compare OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET and OAUTH_CLIENT_AUTH with the client at the provider.',
    gateway_request_refused:
      'Compare the client at the provider with the message: its redirect URI must be BASE_URL/oauth/callback, and it must allow the scopes of OAUTH_ADDED_SCOPES.',
    unusable_id_token: 'Change what the message names at the provider.',
    unusable_identity:
      'Change what the message names at the provider: what its ID token and its userinfo endpoint say of users.',
    upstream_failed:
      'Check that the gateway reaches the provider. postern doctor says why it does not.',
    provider_busy: 'Wait: the provider is slow. If it stays so, look at the provider.',
    not_configured: 'Set the variable that the message names.',

    // A token that the gateway does not accept.
    invalid_audience:
      "Compare OIDC_AUDIENCE with the token's aud, character by character, or have the provider put the address of the gateway there.",
    invalid_issuer: SET_ISSUER,
    missing_claim: 'Have the provider put sub into access tokens.',

    store_unavailable: 'Look at /health/ready and at the log: the store does not answer.',
    internal_error: 'Look at /health/ready and at the log.',
  };

const SET_CLOCK =
  'A clock is wrong: set those of the provider and of the gateway (NTP). postern doctor says how far they differ.';
const SET_CLIENT =
  'Compare OAUTH_CLIENT_ID with the client at the provider, character by character.';

/** By the rejected claim of an ID token. */
const CLAIM_REMEDIES: ReadonlyMap<string | undefined, string> = new Map([
  ['exp', SET_CLOCK],
  ['iat', SET_CLOCK],
  ['nbf', SET_CLOCK],
  ['iss', SET_ISSUER],
  ['aud', SET_CLIENT],
  ['azp', SET_CLIENT],
]);

const findRemedy = ({ error, member }: NotedLoginFailure): string =>
  (error === 'unusable_id_token' && CLAIM_REMEDIES.get(member)) ||
  (BY_NAME.get(error) ?? NO_REMEDY);

const BY_NAME: ReadonlyMap<string, string> = new Map(Object.entries(REMEDIES));

const NO_REMEDY = 'The log has more about it at the same time.';

function lowerFirst(text: string) {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
