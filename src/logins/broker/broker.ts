// OAUTH_MODE=broker: an authorization server of its own before the provider's. A login comes to a grant, by which its client gets tokens
// of the gateway's own (§5.11).

import { parseScope } from '../../config/scope.ts';
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { OwnPages } from '../../http/endpoint/own-pages.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import { describeOAuthError } from '../../http/endpoint/render-error.ts';
import { isLoopbackHost } from '../../platform/address.ts';
import { generateSecret } from '../../platform/ids.ts';
import { createAccountEndpoints } from '../account/account.ts';
import { createBrowserSessions } from '../account/browser-sessions.ts';
import { createBeginLogin, createFinishPageLogin } from '../account/page-logins.ts';
import { createClientAuthentication } from '../client-authentication/authenticate-client.ts';
import type { ClientDocuments } from '../client-id-metadata/client-documents.ts';
import type { RedirectToProvider } from '../consent/consent.ts';
import type { ModeAtEndpoints } from '../endpoints.ts';
import { MAX_SCOPES } from '../grants/token-codec.ts';
import { createVerifyAssertion } from '../id-jag/assertion.ts';
import {
  type AssertingClient,
  createFindByDocument,
  createGiveByAssertion,
} from '../id-jag/jwt-bearer.ts';
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
import { JWT_BEARER } from '../request/login-facts.ts';
import { createCallback } from './callback.ts';
import { createClientCredentials, createFindMachineLogin } from './client-credentials.ts';
import { createCodes, createRedeemCode } from './codes.ts';
import { createTokenIssue } from './issue-grant.ts';
import { askForLogin, sendToProvider } from './login.ts';
import type { Broker } from './open-broker.ts';
import { createProviderLogout } from './provider-logout.ts';
import { getDefaultResources, readAskedResources } from './resources.ts';
import type { BrokerRuntime } from './runtime.ts';
import { createBrokerRevoke, createBrokerToken, type GiveTokens } from './token.ts';

export function createBrokerMode(
  broker: Broker,
  parties: Parties,
  clientDocuments: Pick<ClientDocuments, 'isClientDocumentId' | 'findKeyed'>,
): ModeAtEndpoints {
  const { runtime } = broker;
  const { clients, browsers } = parties;
  const { grants } = broker.ownTokens;
  const codes = createCodes(runtime);
  const issue = createTokenIssue(runtime, broker);
  const sessions = createBrowserSessions(runtime, broker.ends.logouts);
  const ownPages: OwnPages = {
    sessions,
    browsers,
    beginLogin: createBeginLogin(runtime, broker, browsers),
    listClients: async (user) => (await grants.listOfUser(user)).map(({ client }) => client),
  };

  const { ofConfigured, ofAsserting } = createAuthentications(broker, clientDocuments);
  const redeemCode = createRedeemCode(runtime, broker, clients, codes, issue);
  const grantTypes = new Map<string, GiveTokens>([
    ['authorization_code', ({ parameters }) => redeemCode(parameters)],
    ['client_credentials', createClientCredentials(runtime, broker, ofConfigured, issue)],
  ]);
  if (ofAsserting && broker.assertionIssuers) {
    const { oauth, baseUrl, clock } = runtime;
    const { clockToleranceSeconds } = oauth.tokens;
    const verifyAssertion = createVerifyAssertion(clock, broker.assertionIssuers, {
      baseUrl,
      clockToleranceSeconds,
    });
    const giveByAssertion = createGiveByAssertion(
      runtime,
      broker,
      ofAsserting,
      verifyAssertion,
      issue,
    );
    grantTypes.set(JWT_BEARER, giveByAssertion);
  }
  const { token, ...logins } = createBrokerToken(
    runtime,
    broker,
    clients,
    issue.answer,
    grantTypes,
  );

  return {
    issuer: runtime.baseUrl,
    readRequest: createBrokerRequestReader(runtime, parties),
    redirectToProvider: createBrokerRedirect(runtime, broker),
    callback: createCallback(
      runtime,
      broker,
      parties,
      codes,
      createFinishPageLogin(runtime, sessions),
    ),
    token,
    logins,
    findMachineLogin: createFindMachineLogin(ofConfigured, ofAsserting),
    revoke: createBrokerRevoke(broker, clients, ofAsserting ?? ofConfigured),
    ownPages,
    ownEndpoints: [
      ...createAccountEndpoints(runtime, broker, sessions, ownPages),
      createProviderLogout(runtime, broker),
    ],
  };
}

/** `ofAsserting` is for clients that bring assertions, which may be known by their documents alone; undefined where none is taken. */
function createAuthentications(
  { runtime, machineClients, clientKeySets, assertionIssuers }: Broker,
  clientDocuments: Parameters<typeof createBrokerMode>[2],
) {
  const { find: findClient } = machineClients;
  const { clockToleranceSeconds } = runtime.oauth.tokens;
  const rules = { issuer: runtime.baseUrl, clockToleranceSeconds };
  return {
    ofConfigured: createClientAuthentication(runtime, rules, clientKeySets, { findClient }),
    ofAsserting:
      assertionIssuers &&
      createClientAuthentication<AssertingClient>(runtime, rules, clientKeySets, {
        findClient,
        findByDocument: createFindByDocument(clientDocuments),
      }),
  };
}

// §4.6 in broker mode: a client's request, and its way to the provider.

/**
 * RFC 6749 §4.1.2.1: a request that is wrong once its client and redirect URI are good is the client's matter, and the client
 * is told.
 */
function createBrokerRequestReader(
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
const createBrokerRedirect = (runtime: BrokerRuntime, broker: Broker): RedirectToProvider =>
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
