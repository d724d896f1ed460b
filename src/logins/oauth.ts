// §4.6–§4.8: assembles the authorization server that clients see: its endpoints, in either mode, and the documents that lead to
// it.

import { parseScope } from '../config/rules.ts';
import { fail, GatewayError } from '../errors/gateway-error.ts';
import type { NamedPaths } from '../http/endpoint/endpoint.ts';
import { getHeader } from '../http/endpoint/message.ts';
import type { OwnPages } from '../http/endpoint/own-pages.ts';
import { describeOAuthError } from '../http/endpoint/render-error.ts';
import { isLoopbackHost } from '../platform/address.ts';
import { generateSecret } from '../platform/ids.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { SealedStore } from '../store/records.ts';
import { warnOfForeignSecrets } from '../store/seal/secrets.ts';
import { createAccountEndpoints } from './account/account.ts';
import {
  createBeginLogin,
  createBrowserSessions,
  createFinishPageLogin,
} from './account/browser-sessions.ts';
import type { ProviderAccess } from './auth/auth.ts';
import { createAuthorizationCodeGrant } from './broker/authorization-code.ts';
import { createCallback } from './broker/callback.ts';
import {
  createClientCredentialsGrant,
  createFindMachineLogin,
} from './broker/client-credentials.ts';
import { chooseProviderScope, listGrantedScopes, sendToProvider } from './broker/login.ts';
import type { Broker } from './broker/open-broker.ts';
import { createProviderLogout } from './broker/provider-logout.ts';
import { createRefreshIndex, createRefreshTokenGrant } from './broker/refresh-token.ts';
import {
  getDefaultResources,
  readAskedResources,
  readResourceIndicators,
} from './broker/resources.ts';
import type { BrokerRuntime } from './broker/runtime.ts';
import { createBrokerRevoke, createBrokerToken, createTokenIssue } from './broker/token.ts';
import { createClientAuthentication } from './client-authentication/authenticate-client.ts';
import {
  type ClientDocuments,
  createClientDocuments,
} from './client-id-metadata/client-documents.ts';
import { createDocumentOffer, createUncheckedOffer } from './client-id-metadata/document-offer.ts';
import { createRegister } from './clients/registration.ts';
import { createConsent, type ListShownTools } from './consent/consent.ts';
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
  createJwtBearerGrant,
} from './id-jag/jwt-bearer.ts';
import { createParties, type Parties } from './parties.ts';
import { createProxy } from './proxy.ts';
import { addToRedirectUri } from './redirect-uri.ts';
import {
  type AuthorizationRequest,
  checkRequest,
  type ReadAuthorizationRequest,
  readClientAndRedirectUri,
} from './request/authorization-request.ts';
import { JWT_BEARER } from './request/login-facts.ts';

interface AuthorizationNeeds extends ProviderAccess {
  /** Undefined in proxy mode. */
  readonly broker: Broker | undefined;
  readonly servedFile: NamedPaths;
  /** Tools that everyone may see; undefined if strangers see none. */
  readonly getPublicTools: ListShownTools | undefined;
}

/** @throws Error without what the mode and the consent page need: they are never left out silently. */
export function createAuthorizationEndpoints(runtime: Runtime, needs: AuthorizationNeeds) {
  const { config, clock, outbound } = runtime;
  const { oauth, server } = config;
  const { broker, auth } = needs;
  const { allowedHosts } = oauth.clientIdMetadata;
  const redirectUris = {
    baseUrl: server.baseUrl,
    schemes: oauth.redirectUris.schemes,
    isBroker: oauth.mode === 'broker',
  };
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
  const { registered, browsers, clients } = parties;
  const mode =
    oauth.mode === 'broker'
      ? createBrokerMode(requireBroker(runtime, needs), parties, clientDocuments)
      : createProxy(runtime, oauth, clients, auth);
  const withoutConsent: Pick<OAuthFront, 'authorize'> = {
    async authorize(request) {
      const cookie = getHeader(request, 'cookie');
      const asked = await mode.readRequest(request.query, cookie);
      return () => mode.redirectToProvider(asked, browsers.getOrCreate(cookie));
    },
  };
  const front: OAuthFront = {
    // The page between a client's request and the provider.
    ...(oauth.consent.kind === 'page'
      ? createConsent(sealRecords(runtime, broker), parties, mode, needs.getPublicTools)
      : withoutConsent),
    register: createRegister(registered, clock, redirectUris, oauth.registration.accessToken),
  };
  const metadataDocuments = createServerMetadata(
    config,
    needs.metadata,
    documentOffer.isOffered,
    () => broker !== undefined && broker.machineClients.list().length > 0,
  );
  const { noteRefusal } = mode.logins;

  return {
    endpoints: [
      ...createOAuthEndpoints(oauth.popups, mode, front),
      ...createDiscoveryEndpoints(server.baseUrl, metadataDocuments, needs.servedFile),
    ],
    ownPages: mode.ownPages,
    /**
     * To be called with each token that is refused with 401, before its bearer gets the reply. Undefined if that changes nothing.
     * Never rejects.
     */
    noteRefusedToken:
      noteRefusal &&
      (async (token: string) => {
        // A token that names no user is never issued again, so it does not need to be looked up.
        if (auth.inspectToken(token).sub !== undefined) await noteRefusal(token);
      }),
    /** From now on, checks regularly whether documents of clients can be fetched. */
    start: documentOffer.start,
    close: documentOffer.close,
  };
}

function requireBroker(
  { loginSeal }: Runtime,
  { metadata, broker }: Pick<AuthorizationNeeds, 'metadata' | 'broker'>,
): Broker {
  if (metadata === undefined) throw new Error('Broker mode needs the endpoints of the provider');
  if (loginSeal === undefined) throw new Error('Broker mode needs a seal for its records');
  if (broker === undefined) throw new Error('Broker mode needs its grants');
  return broker;
}

/** For the records of the consent page. */
function sealRecords(runtime: Runtime, broker: Broker | undefined): Runtime & SealedStore {
  if (broker !== undefined) return broker.runtime;
  const { loginSeal } = runtime;
  if (loginSeal === undefined) throw new Error('The consent page needs a seal for its records');
  return { ...runtime, seal: warnOfForeignSecrets(loginSeal, runtime) };
}

// OAUTH_MODE=broker: the gateway's own authorization server in front of the provider's. A login becomes a grant, which gets its
// client the gateway's own tokens (§5.11).

function createBrokerMode(
  broker: Broker,
  parties: Parties,
  clientDocuments: ClientDocuments,
): ModeAtEndpoints {
  const { runtime, machineClients, clientKeySets, assertionIssuers } = broker;
  const { baseUrl, oauth } = runtime;
  const { clients, browsers } = parties;
  const { grants } = broker.ownTokens;
  const issue = createTokenIssue(broker);
  const sessions = createBrowserSessions(runtime, broker.ends.logouts);
  const ownPages: OwnPages = {
    sessions,
    browsers,
    beginLogin: createBeginLogin(broker, browsers),
    listClients: async (user) => (await grants.listOfUser(user)).map(({ client }) => client),
  };

  const rules = { issuer: baseUrl, clockToleranceSeconds: oauth.tokens.clockToleranceSeconds };
  const ofConfigured = createClientAuthentication(runtime, rules, clientKeySets, machineClients);
  // Clients that bring assertions may be known by their documents alone.
  const ofAsserting =
    assertionIssuers &&
    createClientAuthentication<AssertingClient>(runtime, rules, clientKeySets, {
      find: machineClients.find,
      findByDocument: createFindByDocument(clientDocuments),
    });

  return {
    issuer: baseUrl,
    readRequest: createBrokerRequestReader(runtime, parties),
    redirectToProvider: createBrokerRedirect(broker),
    callback: createCallback(broker, parties, createFinishPageLogin(runtime, sessions)),
    token: createBrokerToken({
      authorization_code: createAuthorizationCodeGrant(broker, clients, issue),
      refresh_token: createRefreshTokenGrant(broker, clients, issue),
      client_credentials: createClientCredentialsGrant(broker, ofConfigured, issue),
      [JWT_BEARER]:
        assertionIssuers &&
        ofAsserting &&
        createJwtBearerGrant(
          broker,
          ofAsserting,
          createVerifyAssertion(runtime, assertionIssuers),
          issue,
        ),
    }),
    logins: createRefreshIndex(broker),
    findMachineLogin: createFindMachineLogin(ofConfigured, ofAsserting),
    revoke: createBrokerRevoke(broker, clients, ofAsserting ?? ofConfigured),
    ownPages,
    ownEndpoints: [
      ...createAccountEndpoints(broker, sessions, ownPages),
      createProviderLogout(broker),
    ],
  };
}

// §4.6 in broker mode, RFC 6749 §4.1.1: a client's authorization request is checked, and the browser is sent to the provider.

/**
 * RFC 6749 §4.1.2.1: once client and redirect URI are valid, an invalid request is reported to the client, by a redirect
 * or by a link on the error page (`addClientRedirect`).
 */
function createBrokerRequestReader(
  runtime: BrokerRuntime,
  { clients, browsers, approvals }: Parties,
): ReadAuthorizationRequest {
  return async function readRequest(query, cookie) {
    const request = await readClientAndRedirectUri(query, clients);
    // A client of the provider: with its ID, any caller would get past the consent page.
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
    // One of the user's own programs, which did not get there through a link.
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

const createBrokerRedirect = (broker: Broker): ModeAtEndpoints['redirectToProvider'] =>
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
      // The gateway may request more from the provider, for its own use.
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
