// Spec §4.6, RFC 6749 §4.1.1, RFC 7636 §4.3: the authorization endpoint, a redirect to the
// provider. Errors are never redirects: the address to redirect to is what is in question.
import { fail } from '../../core/errors/gateway-error.ts';
import type { Reply } from '../../core/message.ts';
import { fromQuery, type Parameters } from './parameters.ts';
import { type ProviderClientSettings, providerClientId } from './provider-client.ts';
import { isDynamic, type RegisteredClients } from './registered-clients.ts';

export interface AuthorizeSettings extends ProviderClientSettings {
  readonly oauthAuthorizationUrl: string | undefined;
}

/** Decisions 0.2: each could carry another redirect_uri past the check (RFC 9101, OIDC Core §6). */
const SMUGGLERS = ['request', 'request_uri', 'registration'] as const;

/** RFC 7636 §4.2: base64url of a SHA-256 hash. */
const S256_CHALLENGE = /^[A-Za-z0-9_-]{43}$/;

export const createAuthorize = (settings: AuthorizeSettings, clients: RegisteredClients) =>
  async function authorize(query: string): Promise<Reply> {
    const parameters = fromQuery(query);
    refuseSmuggled(parameters);
    const clientId = parameters.require('client_id');
    await checkClient(clientId, parameters, clients);
    checkResponseType(parameters);
    checkStateAndPkce(parameters);
    const upstream = settings.oauthAuthorizationUrl;
    if (upstream === undefined) {
      fail('not_configured', { details: 'OAUTH_AUTHORIZATION_URL is not set on this service.' });
    }
    const upstreamClientId = isDynamic(clientId) ? providerClientId(settings) : clientId;
    return {
      status: 302,
      headers: {
        Location: authorizationUrl(upstream, parameters, upstreamClientId),
        'Cache-Control': 'no-store',
      },
    };
  };

function refuseSmuggled(parameters: Parameters): void {
  const smuggled = SMUGGLERS.find(parameters.has);
  if (smuggled !== undefined) {
    fail('oauth_invalid_request', { details: `The parameter ${smuggled} is not supported.` });
  }
}

async function checkClient(clientId: string, parameters: Parameters, clients: RegisteredClients) {
  if (!isDynamic(clientId)) {
    parameters.require('redirect_uri');
    return;
  }
  const client = await clients.find(clientId);
  if (client === undefined) fail('unknown_client');
  const redirectUri = parameters.require('redirect_uri');
  // Exact strings: any "equal enough" is an open redirector (RFC 9700 §4.1.3).
  if (!client.redirect_uris.includes(redirectUri)) fail('unregistered_redirect_uri');
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

/** The configured query is kept and wins; every parameter of the caller follows (Spec §4.6). */
function authorizationUrl(upstream: string, { pairs }: Parameters, clientId: string): string {
  const url = new URL(upstream);
  const configured = new URLSearchParams(url.search);
  const passed = new URLSearchParams();
  for (const [name, value] of pairs) {
    if (!configured.has(name)) passed.append(name, name === 'client_id' ? clientId : value);
  }
  const separator = url.search === '' ? '?' : '&';
  return `${url.href.replace(/[?&]$/, '')}${separator}${passed}`;
}
