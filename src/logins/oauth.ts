// §4.6–§4.8: the OAuth endpoints, put together for the mode.

import type { Config } from '../config/config.ts';
import type { AdminConfig } from '../config/groups/admin.ts';
import type { BrokerConfig, ProxyConfig } from '../config/groups/oauth.ts';
import type { ServerConfig } from '../config/groups/server.ts';
import { parseScope } from '../config/scope.ts';
import type { ServerUrls } from '../config/server-urls.ts';
import type { CallApprovals } from '../control/approvals/approvals.ts';
import type { Endpoint, JudgedRequest } from '../http/endpoint/endpoint.ts';
import type { PendingReply, RequestBody } from '../http/endpoint/message.ts';
import type { ProviderEndpoints } from '../http/oauth-client/provider-metadata.ts';
import type { ConnectionServer } from '../mcp/upstream/connection.ts';
import type { ConnectionParts } from '../mcp/upstream/connections.ts';
import type { GetPublicTools } from '../pages/open-site.ts';
import type { Clock } from '../platform/clock.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import type { Log } from '../platform/log.ts';
import type { Seal } from '../store/seal/seal.ts';
import type { RecordsDeps } from '../store/seal/sealed-records.ts';
import type { KeyValue } from '../store/store.ts';
import type { Audit } from '../telemetry/audit/audit.ts';
import type { Tracing } from '../telemetry/tracing/tracing.ts';
import type { TokenInspection } from './auth/token-verifier.ts';
import { createBroker } from './broker/broker.ts';
import type { FindMachineLogin } from './broker/find-machine-login.ts';
import type { BrokerParts } from './broker/open-broker.ts';
import type { ClientDocuments } from './client-id-metadata/client-documents.ts';
import { createClients, type RegistrationRenewal } from './clients/clients.ts';
import { createRegister, createRegisteredClients } from './clients/registered-clients.ts';
import { createApprovals, createBrowsers } from './consent/browser.ts';
import {
  createConsent,
  createPendingConsents,
  type RedirectToProvider,
} from './consent/consent.ts';
import { listGrantedScopes } from './provider/provider-parameters.ts';
import { createProxy } from './proxy.ts';
import { selectRedirectUriRules } from './redirect-uri.ts';
import type { LoginIndex, VerifyToken } from './refresh/recent-answers.ts';
import type { OwnResources, ReadAuthorizationRequest } from './request/authorization-request.ts';
import { createLoginLog } from './request/login-facts.ts';

/**
 * Each validates the request and returns the work to run once it is counted.
 *
 * @throws GatewayError for an invalid request.
 */
export interface OAuthHandlers {
  /** `cookie` is the Cookie header, `authorization` the Authorization header of the caller. */
  authorize(query: string, cookie: string | undefined): Promise<PendingReply>;
  token(body: RequestBody, authorization: string | undefined): Promise<JudgedRequest>;
  /** Refreshes are counted apart: by login, so that one client's storm costs no other client anything. */
  readonly logins: LoginIndex;
  /** None in proxy mode. */
  readonly ownEndpoints: readonly Endpoint[];
  /** Undefined where no client can log in as itself. */
  readonly findMachineLogin?: FindMachineLogin | undefined;
  register(metadata: unknown, authorization: string | undefined): Promise<PendingReply>;
  revoke(body: RequestBody, authorization: string | undefined): Promise<JudgedRequest>;
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
  readonly store: KeyValue;
  /** Undefined where nothing has to be sealed: in proxy mode without a consent page. */
  readonly seal: Seal | undefined;
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly clientDocuments: ClientDocuments;
  /** For broker mode. */
  readonly providerEndpoints: ProviderEndpoints | undefined;
  readonly serverUrls: ServerUrls;
  /** What the gateway would say of an access token, its signature aside. */
  readonly inspectToken: (token: string) => TokenInspection;
  readonly verifyToken: VerifyToken;
  /** The tools that everybody may see; undefined where strangers see none. */
  readonly getPublicTools?: GetPublicTools | undefined;
  /** Undefined where nothing is traced. */
  readonly tracing?: Tracing | undefined;
  /** For broker mode. */
  readonly broker?: BrokerParts | undefined;
  /** Likewise: calls that users have to agree to (§27). */
  readonly callApprovals?: CallApprovals | undefined;
  readonly connections?: ConnectionParts | undefined;
  readonly listConnectionServers: () => readonly ConnectionServer[];
  /** Undefined without `AUDIT_LOG`. */
  readonly audit?: Audit | undefined;
  readonly log: Log;
}

/** What a mode does at the endpoints. */
interface Mode
  extends Pick<
    OAuthHandlers,
    'token' | 'revoke' | 'callback' | 'logins' | 'ownEndpoints' | 'findMachineLogin'
  > {
  readonly readRequest: ReadAuthorizationRequest;
  readonly redirectToProvider: RedirectToProvider;
  /** `iss` of replies to clients (RFC 9207), where the gateway is its own issuer. */
  readonly issuer: string | undefined;
}

/** How a mode treats clients. */
interface ClientPolicy {
  readonly renewal: RegistrationRenewal;
  /** Of a registration until its client first gets a token. */
  readonly unusedTtlSeconds: number;
  /** The scopes that the provider will be asked for when a client sends this `scope`. */
  readonly listScopes: (scope: string | undefined) => readonly string[];
}

type WithBaseUrl<Group> = Group &
  OwnResources &
  Pick<ServerConfig, 'displayName'> & { readonly admin: AdminConfig };

const ONE_DAY_SECONDS = 86_400;

/** @throws Error without what the mode and the consent page need: they are never left out in silence. */
export function createOAuth(
  { server: { baseUrl, displayName }, oauth, admin }: Pick<Config, 'server' | 'oauth' | 'admin'>,
  deps: OAuthDeps,
): OAuthHandlers {
  const own = { baseUrl, displayName, serverUrls: deps.serverUrls, admin };
  return oauth.mode === 'broker'
    ? createBrokerHandlers({ ...oauth, ...own }, deps)
    : createProxyHandlers({ ...oauth, ...own }, deps);
}

function createBrokerHandlers(config: WithBaseUrl<BrokerConfig>, deps: OAuthDeps): OAuthHandlers {
  const { providerEndpoints: endpoints, broker: opened } = deps;
  if (endpoints === undefined) throw new Error('Broker mode needs the endpoints of the provider');
  const records = requireRecords(deps, 'Broker mode');
  if (opened === undefined) throw new Error('Broker mode needs its grants');
  const { ttlSeconds, isRenewed } = config.registration;
  const parts = createParts(config, deps, {
    renewal: isRenewed ? 'every' : 'first',
    unusedTtlSeconds: Math.min(ONE_DAY_SECONDS, ttlSeconds),
    listScopes: (scope) => listGrantedScopes(config, scope),
  });
  const broker = createBroker(config, {
    ...opened,
    ...parts,
    records,
    clientDocuments: deps.clientDocuments,
    endpoints,
    clock: deps.clock,
    callApprovals: deps.callApprovals,
    connections: deps.connections,
    listConnectionServers: deps.listConnectionServers,
    audit: deps.audit,
    log: deps.log,
  });
  return createHandlers(config, deps, parts, { ...broker, issuer: config.baseUrl });
}

function createProxyHandlers(config: WithBaseUrl<ProxyConfig>, deps: OAuthDeps): OAuthHandlers {
  const { ttlSeconds, isRenewed } = config.registration;
  const parts = createParts(config, deps, {
    renewal: isRenewed ? 'every' : 'none',
    unusedTtlSeconds: ttlSeconds,
    listScopes: parseScope,
  });
  return createHandlers(config, deps, parts, createProxy(deps, config, parts.clients, deps));
}

type Parts = ReturnType<typeof createParts>;

/** What both modes stand on. */
function createParts(
  config: WithBaseUrl<BrokerConfig | ProxyConfig>,
  { store, clock, clientDocuments, log, broker }: OAuthDeps,
  { renewal, unusedTtlSeconds, listScopes }: ClientPolicy,
) {
  const { baseUrl, registration, clientIdMetadata, consent } = config;
  const registered = createRegisteredClients(store, {
    ttlSeconds: registration.ttlSeconds,
    unusedTtlSeconds,
  });
  return {
    registered,
    clients: createClients(
      { clock },
      config,
      registered,
      clientIdMetadata.allowedHosts.length > 0 ? clientDocuments : undefined,
      renewal,
    ),
    logLogin: createLoginLog(log),
    browsers: createBrowsers(baseUrl, consent.ttlSeconds),
    approvals: createApprovals(
      store,
      { ttlSeconds: consent.ttlSeconds, listScopes },
      broker?.logouts,
    ),
    listScopes,
  };
}

function createHandlers(
  config: WithBaseUrl<BrokerConfig | ProxyConfig>,
  deps: OAuthDeps,
  parts: Parts,
  mode: Mode,
): OAuthHandlers {
  const { token, revoke, callback, logins, ownEndpoints, findMachineLogin } = mode;
  const { authorize, consent } = createAuthorize(config, deps, parts, mode);
  return {
    authorize,
    token,
    logins,
    register: createRegister(parts.registered, deps.clock, {
      redirectUris: selectRedirectUriRules(config, config.baseUrl),
      accessToken: config.registration.accessToken,
    }),
    revoke,
    consent,
    callback,
    ownEndpoints,
    findMachineLogin,
  };
}

/** With the consent page, or straight on to the provider. */
function createAuthorize(
  { baseUrl, displayName, consent, providerClient }: WithBaseUrl<BrokerConfig | ProxyConfig>,
  deps: OAuthDeps,
  { browsers, approvals, listScopes }: Parts,
  { readRequest, redirectToProvider, issuer }: Mode,
): Pick<OAuthHandlers, 'authorize' | 'consent'> {
  if (consent.kind === 'page') {
    const records = requireRecords(deps, 'The consent page');
    const { authorize, decide } = createConsent(
      { baseUrl, displayName, providerClientId: providerClient.id, listScopes, issuer },
      {
        readRequest,
        browsers,
        approvals,
        pendingConsents: createPendingConsents(records, browsers),
        redirectToProvider,
        getPublicTools: deps.getPublicTools,
      },
    );
    return { authorize, consent: decide };
  }
  return {
    async authorize(query, cookie) {
      const request = await readRequest(query, cookie);
      return () => redirectToProvider(request, browsers.getOrCreate(cookie));
    },
    consent: undefined,
  };
}

function requireRecords({ store, seal, tracing }: OAuthDeps, what: string): RecordsDeps {
  if (seal === undefined) throw new Error(`${what} needs a seal for its records`);
  return { store, seal, tracing };
}
