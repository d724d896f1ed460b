// §4.6–§4.8: the authorization server that clients see: its endpoints, in either mode, and the documents that lead to it.

import { parseScope } from '../config/rules.ts';
import { fail, GatewayError } from '../errors/gateway-error.ts';
import type { NamedPaths } from '../http/endpoint/endpoint.ts';
import type { OwnPages } from '../http/endpoint/own-pages.ts';
import { describeOAuthError } from '../http/endpoint/render-error.ts';
import { isLoopbackHost } from '../platform/address.ts';
import { generateSecret } from '../platform/ids.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { warnOfForeignSecrets } from '../store/seal/secrets.ts';
import { createAccountEndpoints } from './account/account.ts';
import { createBrowserSessions } from './account/browser-sessions.ts';
import { createBeginLogin, createFinishPageLogin } from './account/page-logins.ts';
import type { ProviderAccess } from './auth/auth.ts';
import { createCallback } from './broker/callback.ts';
import { createClientCredentials, createFindMachineLogin } from './broker/client-credentials.ts';
import { createCodes, createRedeemCode } from './broker/codes.ts';
import { createTokenIssue } from './broker/issue-grant.ts';
import { chooseProviderScope, sendToProvider } from './broker/login.ts';
import type { Broker } from './broker/open-broker.ts';
import { createProviderLogout } from './broker/provider-logout.ts';
import { getDefaultResources, readAskedResources } from './broker/resources.ts';
import type { BrokerRuntime } from './broker/runtime.ts';
import { createBrokerRevoke, createBrokerToken, type GiveTokens } from './broker/token.ts';
import { createClientAuthentication } from './client-authentication/authenticate-client.ts';
import {
  type ClientDocuments,
  createClientDocuments,
} from './client-id-metadata/client-documents.ts';
import { createDocumentOffer, createUncheckedOffer } from './client-id-metadata/document-offer.ts';
import { createRegister } from './clients/registered-clients.ts';
import { createConsent, type RedirectToProvider } from './consent/consent.ts';
import type { ListShownTools } from './consent/consent-page.ts';
import {
  createDiscoveryEndpoints,
  createOAuthEndpoints,
  createServerMetadata,
  type ModeAtEndpoints,
  type OAuthFront,
} from './endpoints.ts';
import { createVerifyAssertion } from './id-jag/assertion.ts';
import {
  type AssertingClient,
  createFindByDocument,
  createGiveByAssertion,
} from './id-jag/jwt-bearer.ts';
import { createParties, type Parties } from './parties.ts';
import { listGrantedScopes } from './provider/provider-parameters.ts';
import { createProxy } from './proxy.ts';
import { addToRedirectUri, selectRedirectUriRules } from './redirect-uri.ts';
import {
  type AuthorizationRequest,
  checkRequest,
  type ReadAuthorizationRequest,
  readClientAndRedirectUri,
  readResourceIndicators,
} from './request/authorization-request.ts';
import { JWT_BEARER } from './request/login-facts.ts';

/**
 * `broker` is for broker mode. `listTools` has those that everybody may see; undefined where strangers see none.
 *
 * @throws Error without what the mode and the consent page need: they are never left out in silence.
 */
export function createAuthorizationEndpoints(
  runtime: Runtime,
  provider: ProviderAccess,
  broker: Broker | undefined,
  namedPaths: NamedPaths,
  listTools: ListShownTools | undefined,
) {
  const { config, clock, outbound, store, tracing } = runtime;
  const { oauth, server } = config;
  const { allowedHosts } = oauth.clientIdMetadata;
  const redirectUris = selectRedirectUriRules(oauth, server.baseUrl);
  const network = outbound.openPublicNetwork();
  const clientDocuments = createClientDocuments(runtime, network, {
    allowedHosts,
    redirectUris,
    acceptsKeys: oauth.mode === 'broker' && oauth.idJag.isEnabled,
  });
  const documentOffer = outbound.isPublic
    ? createDocumentOffer(runtime, network, allowedHosts)
    : createUncheckedOffer(allowedHosts);

  const parties = createParties(runtime, clientDocuments, broker?.ends.logouts);
  const mode =
    oauth.mode === 'broker'
      ? createBrokerMode(requireBroker(runtime, provider, broker), parties, clientDocuments)
      : createProxy(runtime, oauth, parties.clients, provider.auth);
  const { registered, browsers } = parties;
  const front: OAuthFront = {
    async authorize(query, cookie) {
      const request = await mode.readRequest(query, cookie);
      return () => mode.redirectToProvider(request, browsers.getOrCreate(cookie));
    },
    // The page between a client's request and the provider.
    ...(oauth.consent.kind === 'page' &&
      createConsent(
        runtime,
        { store, tracing, seal: requireSeal(runtime, broker) },
        parties,
        mode,
        listTools,
      )),
    register: createRegister(registered, clock, redirectUris, oauth.registration.accessToken),
  };
  const metadataDocuments = createServerMetadata(
    config,
    provider.metadata,
    documentOffer.isOffered,
    () => broker !== undefined && broker.machineClients.list().length > 0,
  );
  const { noteRefusal } = mode.logins;

  /** One that names nobody is never given again: it need not be looked up. */
  async function noteRefusedToken(token: string) {
    if (provider.auth.inspectToken(token).sub !== undefined) await noteRefusal?.(token);
  }

  return {
    endpoints: [
      ...createOAuthEndpoints(oauth.popups, mode, front),
      ...createDiscoveryEndpoints(server.baseUrl, metadataDocuments, namedPaths),
    ],
    ownPages: mode.ownPages,
    /** To be told of each token that is refused with 401, before its bearer is. Undefined where that changes nothing. Never rejects. */
    noteRefusedToken: noteRefusal && noteRefusedToken,
    /** Looks from now on whether documents of clients can be fetched. */
    start: documentOffer.start,
    close: documentOffer.close,
  };
}

function requireBroker(
  { loginSeal }: Runtime,
  { metadata }: ProviderAccess,
  broker: Broker | undefined,
): Broker {
  if (metadata === undefined) throw new Error('Broker mode needs the endpoints of the provider');
  if (loginSeal === undefined) throw new Error('Broker mode needs a seal for its records');
  if (broker === undefined) throw new Error('Broker mode needs its grants');
  return broker;
}

/** For what the consent page keeps. */
function requireSeal(runtime: Runtime, broker: Broker | undefined) {
  const { loginSeal } = runtime;
  const seal = broker?.runtime.seal ?? (loginSeal && warnOfForeignSecrets(loginSeal, runtime));
  if (seal === undefined) throw new Error('The consent page needs a seal for its records');
  return seal;
}

// OAUTH_MODE=broker: an authorization server of its own before the provider's. A login comes to a grant, by which its client gets tokens
// of the gateway's own (§5.11).

function createBrokerMode(
  broker: Broker,
  parties: Parties,
  clientDocuments: ClientDocuments,
): ModeAtEndpoints {
  const { runtime, machineClients, clientKeySets, assertionIssuers } = broker;
  const { baseUrl, oauth } = runtime;
  const { clients, browsers } = parties;
  const { grants } = broker.ownTokens;
  const codes = createCodes(runtime);
  const issue = createTokenIssue(broker);
  const sessions = createBrowserSessions(runtime, broker.ends.logouts);
  const ownPages: OwnPages = {
    sessions,
    browsers,
    beginLogin: createBeginLogin(broker, browsers),
    listClients: async (user) => (await grants.listOfUser(user)).map(({ client }) => client),
  };

  const { find: findClient } = machineClients;
  const rules = { issuer: baseUrl, clockToleranceSeconds: oauth.tokens.clockToleranceSeconds };
  const ofConfigured = createClientAuthentication(runtime, rules, clientKeySets, findClient);
  // Clients that bring assertions may be known by their documents alone.
  const ofAsserting =
    assertionIssuers &&
    createClientAuthentication<AssertingClient>(
      runtime,
      rules,
      clientKeySets,
      findClient,
      createFindByDocument(clientDocuments),
    );
  const giveByAssertion =
    assertionIssuers &&
    ofAsserting &&
    createGiveByAssertion(
      broker,
      ofAsserting,
      createVerifyAssertion(runtime, assertionIssuers),
      issue,
    );
  const redeemCode = createRedeemCode(broker, clients, codes, issue);
  const grantTypes = new Map<string, GiveTokens | undefined>([
    ['authorization_code', ({ parameters }) => redeemCode(parameters)],
    ['client_credentials', createClientCredentials(broker, ofConfigured, issue)],
    [JWT_BEARER, giveByAssertion],
  ]);
  const { token, ...logins } = createBrokerToken(broker, clients, issue.answer, grantTypes);

  return {
    issuer: baseUrl,
    readRequest: createBrokerRequestReader(runtime, parties),
    redirectToProvider: createBrokerRedirect(broker),
    callback: createCallback(broker, parties, codes, createFinishPageLogin(runtime, sessions)),
    token,
    logins,
    findMachineLogin: createFindMachineLogin(ofConfigured, ofAsserting),
    revoke: createBrokerRevoke(broker, clients, ofAsserting ?? ofConfigured),
    ownPages,
    ownEndpoints: [
      ...createAccountEndpoints(broker, sessions, ownPages),
      createProviderLogout(broker),
    ],
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
      checkRequest(request.parameters, { requiresState: false, requiresPlainScope: true });
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

const createBrokerRedirect = (broker: Broker): RedirectToProvider =>
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
      // The provider may be asked more about the user: that is for the gateway.
      scopes: listGrantedScopes(oauth, requestedScope),
      logoutMark,
      nonce: parseScope(scope).includes('openid') ? generateSecret() : undefined,
      approval,
    };
    const added = oauth.addedParameters;
    // Not what the provider's profile sets already (`prompt`, say).
    const forwarded = parameters.pairs.filter(
      ([name]) => FORWARDED.has(name) && !added.some(([other]) => other === name),
    );
    return sendToProvider(broker, browser, login, scope, [...added, ...forwarded]);
  };

/** A client may tell these to the provider's login page; the gateway decides on everything else. */
const FORWARDED = new Set([
  'acr_values',
  'domain_hint',
  'login_hint',
  'max_age',
  'prompt',
  'ui_locales',
]);
