// §4.6 in broker mode: a client's request, and its way to the provider.

import { parseScope } from '../../config/scope.ts';
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import { describeOAuthError } from '../../http/endpoint/render-error.ts';
import { isLoopbackHost } from '../../platform/address.ts';
import { generateSecret } from '../../platform/ids.ts';
import type { RedirectToProvider } from '../consent/consent.ts';
import { MAX_SCOPES } from '../grants/token-codec.ts';
import type { Parties } from '../parties.ts';
import { listGrantedScopes } from '../provider/provider-parameters.ts';
import { addToRedirectUri } from '../redirect-uri.ts';
import {
  type AuthorizationRequest,
  checkRequest,
  type ReadAuthorizationRequest,
  readClientAndRedirectUri,
  readResourceIndicators,
} from '../request/authorization-request.ts';
import { askForLogin, sendToProvider } from './login.ts';
import type { Broker } from './open-broker.ts';
import { getDefaultResources, readAskedResources } from './resources.ts';
import type { BrokerRuntime } from './runtime.ts';

/**
 * RFC 6749 §4.1.2.1: a request that is wrong once its client and redirect URI are good is the client's matter, and the client
 * is told.
 */
export function createBrokerRequestReader(
  runtime: BrokerRuntime,
  { clients, browsers, approvals }: Parties,
): ReadAuthorizationRequest {
  return async function readRequest(query, cookie) {
    const request = await readClientAndRedirectUri(query, clients);
    // One of the provider's own, by which everybody would get past the consent page.
    if (request.client === undefined) fail('unknown_client');
    try {
      checkRequest(request.parameters, RULES);
      readResourceIndicators(request.parameters, runtime);
      return request;
    } catch (error) {
      throw error instanceof GatewayError ? await addClientRedirect(error, request, cookie) : error;
    }
  };

  /**
   * RFC 9700 §4.11.2: anybody can register a client and send a user a link that fails, to have the
   * gateway's good name lead to a page of theirs. So the browser goes on by itself only where that
   * gains nothing, or where its user knows the client.
   */
  async function addClientRedirect(
    error: GatewayError,
    request: AuthorizationRequest,
    cookie: string | undefined,
  ): Promise<GatewayError> {
    const { redirectUri, parameters } = request;
    const { code, description } = describeOAuthError(error);
    const url = addToRedirectUri(redirectUri, [
      ['error', code],
      ['error_description', description],
      ['state', parameters.get('state')],
      ['iss', runtime.baseUrl],
    ]);
    const isAutomatic = isLoopback(redirectUri) || (await isClientApproved(request, cookie));
    return new GatewayError(error.key, {
      ...error.failure,
      details: error.message,
      redirect: { url, isAutomatic },
    });
  }

  async function isClientApproved(request: AuthorizationRequest, cookie: string | undefined) {
    const browserHash = browsers.readHash(cookie);
    return browserHash !== undefined && approvals.isClientApproved(request, browserHash);
  }
}

const RULES = { requiresState: false, requiresPlainScope: true };

/** A program of the user's own, which got there by other means than a link. */
function isLoopback(redirectUri: string): boolean {
  const { protocol, hostname } = new URL(redirectUri);
  return /^https?:$/.test(protocol) && isLoopbackHost(hostname);
}

/** From the approval to the provider. */
export const createBrokerRedirect = (runtime: BrokerRuntime, broker: Broker): RedirectToProvider =>
  async function redirectToProvider(request, browser, approval) {
    const { query, parameters, redirectUri, client, clientId } = request;
    if (client === undefined) fail('unknown_client');
    const { oauth } = runtime;
    const logoutMark = await broker.ends.logouts.getMark();
    const requestedScope = parameters.get('scope');
    const { scope, authorization } = await askForLogin(oauth, broker.endpoints, requestedScope);
    const login = {
      clientId,
      clientName: client.name,
      redirectUri,
      query,
      state: parameters.get('state'),
      codeChallenge: parameters.require('code_challenge'),
      resources: readAskedResources(parameters, runtime, clientId) ?? getDefaultResources(runtime),
      // The provider may be asked more about the user: that is for the gateway.
      scopes: listGrantedScopes(oauth, requestedScope).slice(0, MAX_SCOPES),
      logoutMark,
      nonce: parseScope(scope).includes('openid') ? generateSecret() : undefined,
      approval,
    };
    return sendToProvider(runtime, broker, browser, login, {
      scope,
      authorization: [...authorization, ...selectForwarded(parameters, authorization)],
    });
  };

/** Not what the provider's profile sets already (`prompt`, say). */
const selectForwarded = (
  { pairs }: RequestParameters,
  added: readonly (readonly [string, string])[],
) => pairs.filter(([name]) => FORWARDED.has(name) && !added.some(([other]) => other === name));

/** A client may tell these to the provider's login page; the gateway decides on everything else. */
const FORWARDED = new Set([
  'acr_values',
  'domain_hint',
  'login_hint',
  'max_age',
  'prompt',
  'ui_locales',
]);
