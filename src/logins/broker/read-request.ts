// RFC 6749 §4.1.2.1: a request that is wrong once its client and redirect URI are good is the
// client's matter, and the client is told.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import { describeOAuthError } from '../../http/endpoint/render-error.ts';
import { isLoopbackHost } from '../../platform/address.ts';
import type { Clients } from '../clients/clients.ts';
import type { Approvals, Browsers } from '../consent/browser.ts';
import { addToRedirectUri } from '../redirect-uri.ts';
import {
  type AuthorizationRequest,
  checkRequest,
  type OwnResources,
  type ReadAuthorizationRequest,
  readClientAndRedirectUri,
  readResourceIndicators,
} from '../request/authorization-request.ts';

interface ReadRequestDeps {
  readonly own: OwnResources;
  readonly clients: Clients;
  readonly browsers: Browsers;
  readonly approvals: Approvals;
}

export function createBrokerRequestReader({
  own,
  clients,
  browsers,
  approvals,
}: ReadRequestDeps): ReadAuthorizationRequest {
  return async function readRequest(query, cookie) {
    const request = await readClientAndRedirectUri(query, clients);
    // One of the provider's own, by which everybody would get past the consent page.
    if (request.client === undefined) fail('unknown_client');
    try {
      checkRequest(request.parameters, RULES);
      readResourceIndicators(request.parameters, own);
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
      ['iss', own.baseUrl],
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
