// Spec §4.6–§4.8: the OAuth endpoints, put together for the mode.
import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config/config.ts';
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
import { authorizationExtras } from './provider/provider-request.ts';
import { createToProvider } from './proxy/authorize.ts';
import { createRevoke } from './proxy/revoke.ts';
import { createToken } from './proxy/token.ts';
import type { RedirectUriRules } from './redirect-uri/redirect-uri.ts';
import { createReadRequest, type ReadRequest } from './request/authorization-request.ts';
import type { RecordsDeps } from './sealed-records.ts';

const ONE_DAY_SECONDS = 86_400;

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

/** What each mode brings; only the broker has a callback. */
interface Mode {
  readonly readRequest: ReadRequest;
  readonly toProvider: Proceed;
  readonly token: OAuthEndpoints['token'];
  readonly revoke: OAuthEndpoints['revoke'];
  readonly callback: OAuthEndpoints['callback'];
}

/** What a redirect URI may be, beyond Spec §4.8. */
export const redirectUriRules = ({
  server,
  oauth,
}: Pick<Config, 'server' | 'oauth'>): RedirectUriRules => ({
  baseUrl: server.baseUrl,
  schemes: oauth.redirectUris.schemes,
  ipv6Loopback: oauth.mode === 'broker',
  refusesAnswers: oauth.mode === 'broker',
});

/** @throws Error without what the mode and the consent page need: they are never left out in silence. */
export function createOAuth(
  config: Pick<Config, 'server' | 'oauth'>,
  deps: OAuthDeps,
): OAuthEndpoints {
  const { store, seal, fetch, clock, documents, endpoints, inspectToken, log } = deps;
  const { oauth } = config;
  const { baseUrl } = config.server;
  const { registration, providerClient } = oauth;
  const { ttlSeconds } = registration;
  const isBroker = oauth.mode === 'broker';
  const registered = createRegisteredClients(store, {
    seconds: ttlSeconds,
    unusedSeconds: isBroker ? Math.min(ONE_DAY_SECONDS, ttlSeconds) : ttlSeconds,
  });
  const clients = createClients({
    registered,
    // Switched off, such an id is the provider's to judge, like any other.
    documents: oauth.clientIdMetadata.allowedHosts.length > 0 ? documents : undefined,
    loopbackAnyPort: oauth.redirectUris.anyLoopbackPort,
    renewal: registration.isRenewed ? 'every' : isBroker ? 'first' : 'none',
    baseUrl,
  });
  const logLogin = createLoginLog({ log, inspectToken });
  const api = createProviderApi(fetch);
  const browsers = createBrowsers(baseUrl, oauth.consent.ttlSeconds);
  /** What the provider will see, of what a client asks for. */
  const askedScope = (scope: string | undefined) =>
    oauth.mode === 'broker' ? authorizationExtras({ ...oauth, baseUrl }, scope, []).scope : scope;
  const scopesOf = (scope: string | undefined) => parseScope(askedScope(scope));
  const approvals = createApprovals(store, { ttlSeconds: oauth.consent.ttlSeconds, scopesOf });
  const hasConsentPage = oauth.consent.kind === 'page';

  function requireRecords(what: string): RecordsDeps {
    if (seal === undefined) throw new Error(`${what} needs a seal for its records`);
    return { store, seal };
  }

  function createMode(): Mode {
    if (oauth.mode === 'proxy') {
      return {
        readRequest: createReadRequest(clients, {
          requiresState: true,
          requiresPlainScope: hasConsentPage,
        }),
        toProvider: createToProvider(oauth),
        token: createToken(oauth, { clients, api, logLogin }),
        revoke: createRevoke(oauth, clients, api),
        callback: undefined,
      };
    }
    if (endpoints === undefined) throw new Error('Broker mode needs the endpoints of the provider');
    return createBroker(
      { ...oauth, baseUrl },
      {
        records: requireRecords('Broker mode'),
        clock,
        clients,
        browsers,
        approvals,
        api,
        endpoints,
        inspectToken,
        logLogin,
      },
    );
  }

  const { readRequest, toProvider, token, revoke, callback } = createMode();
  const consent = hasConsentPage
    ? createConsent(
        {
          baseUrl,
          providerClientId: providerClient.id,
          scopesOf,
          issuer: isBroker ? baseUrl : undefined,
        },
        {
          readRequest,
          browsers,
          approvals,
          records: requireRecords('The consent page'),
          proceed: toProvider,
        },
      )
    : undefined;
  const authorize =
    consent?.authorize ??
    (async (query: string, cookie: string | undefined) => {
      const request = await readRequest(query, cookie);
      return () => toProvider(request, browsers.of(cookie));
    });
  return {
    authorize: (query, cookie) => logClient(findClientId(query), () => authorize(query, cookie)),
    token: (body, authorization) =>
      logClient(findClientIdInBody(body), () => token(body, authorization)),
    register: createRegister(registered, clock, {
      redirectUris: redirectUriRules(config),
      accessToken: registration.accessToken,
    }),
    revoke: (body, authorization) =>
      logClient(findClientIdInBody(body), () => revoke(body, authorization)),
    consent: consent?.decide,
    callback,
  };
}
