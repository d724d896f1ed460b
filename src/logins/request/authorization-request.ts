// §4.6, RFC 6749 §4.1.1, RFC 7636 §4.3: checks authorization requests: client and redirect URI first, since until then there is no
// client to answer.

import { isWellFormedScope } from '../../config/rules.ts';
import { fail } from '../../errors/gateway-error.ts';
import { failRequest, parseQuery, type RequestParameters } from '../../http/endpoint/parameters.ts';
import { truncateForLog } from '../../platform/log.ts';
import { stripUri } from '../../platform/secret-texts.ts';
import type { Client, Clients } from '../clients/clients.ts';

export interface AuthorizationRequest {
  /** As sent, without the question mark. */
  readonly query: string;
  readonly parameters: RequestParameters;
  readonly clientId: string;
  readonly redirectUri: string;
  /** Undefined for an ID that is left to the provider. */
  readonly client: Client | undefined;
}

/** `cookie` is the Cookie header of the browser. @throws GatewayError */
export type ReadAuthorizationRequest = (
  query: string,
  cookie: string | undefined,
) => Promise<AuthorizationRequest>;

/** Reads client and redirect URI. @throws GatewayError with a row of §7.3. */
export async function readClientAndRedirectUri(
  query: string,
  clients: Clients,
): Promise<AuthorizationRequest> {
  const parameters = parseQuery(query);
  const clientId = parameters.require('client_id');
  const client = clients.isKnownClient(clientId)
    ? await clients.require(clientId, 'unknown_client')
    : undefined;
  const redirectUri = parameters.require('redirect_uri');
  if (client && !clients.allowsRedirectUri(client, redirectUri)) {
    const expected = client.redirectUris.slice(0, MAX_LOGGED_URIS).map(toLogText);
    fail('unregistered_redirect_uri', { facts: { found: toLogText(redirectUri), expected } });
  }
  return { query, parameters, clientId, redirectUri, client };
}

/** For the log, which never has a query. */
const toLogText = (uri: string) => truncateForLog(stripUri(uri));

const MAX_LOGGED_URIS = 3;

/**
 * Checks the other parameters. §4.6 demands `state` (`requiresState`); RFC 6749 §4.1.1 recommends it, and clients with PKCE do
 * without. RFC 6749 §3.3: a consent page must show the scope that the provider reads (`requiresPlainScope`).
 *
 * @throws GatewayError with a row of §7.3.
 */
export function checkRequest(
  parameters: RequestParameters,
  { requiresState, requiresPlainScope }: Record<'requiresState' | 'requiresPlainScope', boolean>,
): void {
  if (parameters.require('response_type') !== 'code') fail('unsupported_response_type');
  if (requiresState) parameters.require('state');
  const challenge = parameters.require('code_challenge');
  if (parameters.require('code_challenge_method') !== 'S256')
    failRequest('code_challenge_method must be S256.');
  if (!CHALLENGE.test(challenge))
    failRequest('code_challenge must be 43 base64url characters (a SHA-256 hash).');
  const scope = parameters.get('scope');
  if (requiresPlainScope && scope !== undefined && !isWellFormedScope(scope))
    failRequest('scope must be a list of names separated by single spaces.');
}

/** RFC 7636 §4.2: base64url of a SHA-256 hash. */
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/;
