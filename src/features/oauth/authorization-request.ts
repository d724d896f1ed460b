// Spec §4.6, RFC 6749 §4.1.1, RFC 7636 §4.3: what a client asks for, checked in one order. Errors
// are never redirects: the address to redirect to is what is in question.
import { fail } from '../../core/errors/gateway-error.ts';
import type { Clients, KnownClient } from './clients.ts';
import { fromQuery, type Parameters } from './parameters.ts';

export interface AuthorizationRequest {
  /** As it came, without the question mark. */
  readonly query: string;
  readonly parameters: Parameters;
  readonly clientId: string;
  readonly redirectUri: string;
  /** Undefined for an id that the provider has to judge. */
  readonly client: KnownClient | undefined;
}

/** Decisions 0.2: each could carry another redirect_uri past the check (RFC 9101, OIDC Core §6). */
const SMUGGLERS = ['request', 'request_uri', 'registration'] as const;

/** RFC 7636 §4.2: base64url of a SHA-256 hash. */
const S256_CHALLENGE = /^[A-Za-z0-9_-]{43}$/;

/** @throws GatewayError with a row of §7.3 (decisions 6). */
export async function readAuthorizationRequest(
  query: string,
  clients: Clients,
): Promise<AuthorizationRequest> {
  const parameters = fromQuery(query);
  refuseSmuggled(parameters);
  const clientId = parameters.require('client_id');
  const client = clients.isOurs(clientId) ? await findClient(clientId, clients) : undefined;
  const redirectUri = parameters.require('redirect_uri');
  if (client && !clients.allows(client, redirectUri)) fail('unregistered_redirect_uri');
  checkResponseType(parameters);
  checkStateAndPkce(parameters);
  return { query, parameters, clientId, redirectUri, client };
}

async function findClient(clientId: string, clients: Clients): Promise<KnownClient> {
  const { client, problem } = await clients.find(clientId);
  return client ?? fail('unknown_client', problem === undefined ? {} : { details: problem });
}

function refuseSmuggled(parameters: Parameters): void {
  const smuggled = SMUGGLERS.find(parameters.has);
  if (smuggled !== undefined) {
    fail('oauth_invalid_request', { details: `The parameter ${smuggled} is not supported.` });
  }
}

function checkResponseType(parameters: Parameters): void {
  if (parameters.require('response_type') !== 'code') fail('unsupported_response_type');
}

function checkStateAndPkce(parameters: Parameters): void {
  parameters.require('state');
  const challenge = parameters.require('code_challenge');
  if (parameters.require('code_challenge_method') !== 'S256') {
    fail('oauth_invalid_request', { details: 'code_challenge_method must be S256.' });
  }
  if (!S256_CHALLENGE.test(challenge)) {
    fail('oauth_invalid_request', {
      details: 'code_challenge must be 43 base64url characters (a SHA-256 hash).',
    });
  }
}
