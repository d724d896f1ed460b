// §4.6 in broker mode, RFC 6749 §4.1.1: a client's authorization request is checked, and its browser sent to the provider.

import { parseScope } from '../../config/rules.ts';
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import { describeOAuthError } from '../../http/endpoint/render-error.ts';
import { isLoopbackHost } from '../../platform/address.ts';
import { generateSecret } from '../../platform/ids.ts';
import type { RedirectToProvider } from '../consent/consent.ts';
import type { Parties } from '../parties.ts';
import { listGrantedScopes } from '../provider/provider-parameters.ts';
import { addToRedirectUri } from '../redirect-uri.ts';
import {
  type AuthorizationRequest,
  checkRequest,
  type ReadAuthorizationRequest,
  readClientAndRedirectUri,
} from '../request/authorization-request.ts';
import { chooseProviderScope, sendToProvider } from './login.ts';
import type { Broker } from './open-broker.ts';
import { getDefaultResources, readAskedResources, readResourceIndicators } from './resources.ts';
import type { BrokerRuntime } from './runtime.ts';

/**
 * RFC 6749 §4.1.2.1: once client and redirect URI are valid, the client is told of an invalid request.
 */
export function createBrokerRequestReader(
  runtime: BrokerRuntime,
  { clients, browsers, approvals }: Parties,
): ReadAuthorizationRequest {
  return async function readRequest(query, cookie) {
    const request = await readClientAndRedirectUri(query, clients);
    // A client of the provider, with whose ID every caller would get past the consent page.
    if (request.client === undefined) fail('unknown_client');
    try {
      checkRequest(request.parameters, { requiresState: false, requiresPlainScope: true });
      readResourceIndicators(request.parameters, runtime);
      return request;
    } catch (error) {
      throw error instanceof GatewayError ? await addClientRedirect(error, request, cookie) : error;
    }
  };

  /**
   * RFC 9700 §4.11.2: anybody can register a client and send a user a link that fails, so that the gateway's good name leads to the
   * attacker's page. So the browser is redirected without a click only if that gains an attacker nothing, or if its user knows the
   * client.
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
    const { protocol, hostname } = new URL(redirectUri);
    // A program of the user's own, which got there by other means than a link.
    const isLoopback = /^https?:$/.test(protocol) && isLoopbackHost(hostname);
    const browserHash = browsers.readHash(cookie);
    const isAutomatic =
      isLoopback ||
      (browserHash !== undefined && (await approvals.isClientApproved(request, browserHash)));
    return new GatewayError(error.key, {
      ...error.failure,
      details: error.message,
      redirect: { url, isAutomatic },
    });
  }
}

export const createBrokerRedirect = (broker: Broker): RedirectToProvider =>
  async function redirectToProvider(request, browser, approval) {
    const { query, parameters, redirectUri, client, clientId } = request;
    if (client === undefined) fail('unknown_client');
    const { runtime } = broker;
    const { oauth } = runtime;
    const logoutMark = await broker.ends.logouts.getMark();
    const requestedScope = parameters.get('scope');
    const scope = await chooseProviderScope(oauth, broker.endpoints, requestedScope);
    const login = {
      clientId,
      clientName: client.name,
      redirectUri,
      query,
      state: parameters.get('state'),
      codeChallenge: parameters.require('code_challenge'),
      resources: readAskedResources(parameters, runtime, clientId) ?? getDefaultResources(runtime),
      // The provider may be asked for more about the user: that is for the gateway.
      scopes: listGrantedScopes(oauth, requestedScope),
      logoutMark,
      nonce: parseScope(scope).includes('openid') ? generateSecret() : undefined,
      approval,
      scope,
    };
    const added = oauth.addedParameters;
    // Except those that the provider's profile sets already (`prompt`, say).
    const forwarded = parameters.pairs.filter(
      ([name]) => FORWARDED.has(name) && !added.some(([other]) => other === name),
    );
    return sendToProvider(broker, browser, login, [...added, ...forwarded]);
  };

/** A client may send these to the provider's login page; the gateway decides on all others. */
const FORWARDED = new Set([
  'acr_values',
  'domain_hint',
  'login_hint',
  'max_age',
  'prompt',
  'ui_locales',
]);
