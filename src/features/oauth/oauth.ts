// Spec §4.6–§4.8: the OAuth endpoints, put together for the mode.
import type { Clock } from '../../core/clock.ts';
import type { OAuthSettings } from '../../core/config/config.ts';
import type { Fetch } from '../../core/fetch-with-limits.ts';
import type { Log } from '../../core/log.ts';
import type { PendingReply, RequestBody } from '../../core/message.ts';
import type { ProviderEndpoints } from '../../core/provider/provider-endpoints.ts';
import { parseScope } from '../../core/scope.ts';
import type { Seal } from '../../core/seal/seal.ts';
import type { Store } from '../../core/store/store.ts';
import { type BrokerDeps, createBroker } from './broker/broker.ts';
import type { ClientDocuments } from './client-id-metadata/client-documents.ts';
import { createClients } from './clients/clients.ts';
import { findClientId, findClientIdInBody, logClient } from './clients/log-client.ts';
import { createRegister } from './clients/register.ts';
import { createRegisteredClients } from './clients/registered-clients.ts';
import { createApprovals } from './consent/approvals.ts';
import { createBrowsers } from './consent/browser.ts';
import { createConsent, type Proceed } from './consent/consent.ts';
import { createLoginLog } from './provider/login-log.ts';
import { createProviderApi } from './provider/provider-api.ts';
import { authorizationExtras, type ProviderRequestSettings } from './provider/provider-request.ts';
import { type AuthorizeSettings, createToProvider } from './proxy/authorize.ts';
import { createRevoke, type RevokeSettings } from './proxy/revoke.ts';
import { createToken, type TokenSettings } from './proxy/token.ts';
import type { RedirectUriRules } from './redirect-uri/redirect-uri.ts';
import { createReadRequest } from './request/authorization-request.ts';

const ONE_DAY_SECONDS = 86_400;

export interface OAuthEndpointSettings
  extends OAuthSettings,
    AuthorizeSettings,
    TokenSettings,
    RevokeSettings,
    ProviderRequestSettings {
  readonly dcrClientTtlSeconds: number;
}

/**
 * Each judges what was sent, without effect, and answers with what is left to do: in between it is
 * counted (decisions 10). What does not hold is thrown.
 */
export interface OAuthEndpoints {
  /** `cookie` is the Cookie header, `authorization` the Authorization header of the caller. */
  authorize(query: string, cookie: string | undefined): Promise<PendingReply>;
  token(body: RequestBody, authorization: string | undefined): Promise<PendingReply>;
  register(metadata: unknown, authorization: string | undefined): Promise<PendingReply>;
  revoke(body: RequestBody, authorization: string | undefined): Promise<PendingReply>;
  /** Undefined without a consent page. */
  readonly consent:
    | ((body: RequestBody, cookie: string | undefined) => Promise<PendingReply>)
    | undefined;
  /** Undefined in proxy mode. */
  readonly callback:
    | ((query: string, cookie: string | undefined) => Promise<PendingReply>)
    | undefined;
}

export interface OAuthDeps {
  readonly store: Store;
  /** Undefined where nothing has to be sealed: in proxy mode without a consent page. */
  readonly seal: Seal | undefined;
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly documents: ClientDocuments;
  /** For broker mode. */
  readonly endpoints: ProviderEndpoints | undefined;
  /** What the gateway would say of an access token, its signature aside. */
  readonly inspectToken: BrokerDeps['inspectToken'];
  readonly log: Log;
}

/** What a redirect URI may be, beyond Spec §4.8. */
export const redirectUriRules = (
  settings: OAuthSettings & { readonly baseUrl: string },
): RedirectUriRules => ({
  baseUrl: settings.baseUrl,
  schemes: settings.oauthRedirectSchemes,
  ipv6Loopback: settings.oauthMode === 'broker',
  refusesAnswers: settings.oauthMode === 'broker',
});

export function createOAuth(settings: OAuthEndpointSettings, deps: OAuthDeps): OAuthEndpoints {
  const { store, seal, fetch, clock, documents, endpoints, inspectToken, log } = deps;
  const { dcrClientTtlSeconds: ttlSeconds } = settings;
  const isBroker = settings.oauthMode === 'broker';
  const registered = createRegisteredClients(store, {
    seconds: ttlSeconds,
    unusedSeconds: isBroker ? Math.min(ONE_DAY_SECONDS, ttlSeconds) : ttlSeconds,
  });
  const clients = createClients({
    registered,
    // Switched off, such an id is the provider's to judge, like any other.
    documents: settings.cimdAllowedHosts.length > 0 ? documents : undefined,
    loopbackAnyPort: settings.oauthLoopbackAnyPort,
    renewal: settings.dcrRenew ? 'every' : isBroker ? 'first' : 'none',
    baseUrl: settings.baseUrl,
  });
  const logLogin = createLoginLog({ log, inspectToken });
  const api = createProviderApi(fetch);
  const browsers = createBrowsers(settings.baseUrl, settings.oauthConsentTtlSeconds);
  const records = seal && { store, seal };
  /** What the provider will see, of what a client asks for. */
  const askedScope = (scope: string | undefined) =>
    isBroker ? authorizationExtras(settings, scope, []).scope : scope;
  const scopesOf = (scope: string | undefined) => parseScope(askedScope(scope));
  const approvals = createApprovals(store, {
    ttlSeconds: settings.oauthConsentTtlSeconds,
    scopesOf,
  });
  const broker =
    isBroker && endpoints && records
      ? createBroker(settings, {
          records,
          clock,
          clients,
          browsers,
          approvals,
          api,
          endpoints,
          inspectToken,
          logLogin,
        })
      : undefined;
  const proceed: Proceed = broker?.toProvider ?? createToProvider(settings);
  const isAsked = settings.oauthConsent === 'page';
  const readRequest =
    broker?.readRequest ??
    createReadRequest(clients, { requiresState: true, requiresPlainScope: isAsked });
  const consent =
    isAsked && records
      ? createConsent(
          { ...settings, scopesOf, issuer: isBroker ? settings.baseUrl : undefined },
          { readRequest, browsers, approvals, records, proceed },
        )
      : undefined;
  const authorize =
    consent?.authorize ??
    (async (query: string, cookie: string | undefined) => {
      const request = await readRequest(query, cookie);
      return () => proceed(request, browsers.of(cookie));
    });
  const token = broker?.token ?? createToken(settings, { clients, api, logLogin });
  const revoke = broker?.revoke ?? createRevoke(settings, clients, api);
  return {
    authorize: (query, cookie) => logClient(findClientId(query), () => authorize(query, cookie)),
    token: (body, authorization) =>
      logClient(findClientIdInBody(body), () => token(body, authorization)),
    register: createRegister(registered, clock, {
      redirectUris: redirectUriRules(settings),
      accessToken: settings.dcrAccessToken,
    }),
    revoke: (body, authorization) =>
      logClient(findClientIdInBody(body), () => revoke(body, authorization)),
    consent: consent?.decide,
    callback: broker?.callback,
  };
}
