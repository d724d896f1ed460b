// The composition root: every implementation is chosen here, once.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { builtInCatalog } from './catalog/index.ts';
import { type Clock, pause, systemClock } from './core/clock.ts';
import { checkConfig } from './core/config/check-config.ts';
import type { Config } from './core/config/config.ts';
import type { ProviderConfig } from './core/config/groups/provider.ts';
import { logListening, logStartWarnings } from './core/config/start-log.ts';
import type { Endpoint } from './core/endpoint.ts';
import type { Fetch } from './core/fetch-with-limits.ts';
import type { GatewayFile } from './core/gateway-file/gateway-file.ts';
import { createLog, type Log } from './core/log.ts';
import { type Metrics, noMetrics } from './core/metrics/metrics.ts';
import { type OpenTunnel, openOutboundNetwork } from './core/outbound/outbound-network.ts';
import { createProviderEndpoints } from './core/provider/provider-endpoints.ts';
import {
  createProviderMetadata,
  type ProviderMetadata,
} from './core/provider/provider-metadata.ts';
import { createLoginSeal, warnOfForeignSecrets } from './core/seal/login-seal.ts';
import { createReplicaSeal } from './core/seal/replica-seal.ts';
import type { Seal } from './core/seal/seal.ts';
import { createServerUrls, type ServerUrls } from './core/server-urls.ts';
import { instrumentStore } from './core/store/instrument.ts';
import { openStore } from './core/store/open.ts';
import type { Store } from './core/store/store.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from './core/version.ts';
import { type Auth, type AuthDeps, createAuth, disabledAuth } from './features/auth/auth.ts';
import { createChallenge } from './features/auth/bearer.ts';
import type { KeySet } from './features/auth/key-set.ts';
import { createDiscoveryEndpoints } from './features/discovery/endpoints.ts';
import { createServerMetadata } from './features/discovery/server-metadata.ts';
import { createHealthEndpoints } from './features/health/endpoints.ts';
import { createLimiter, createUnlimitedLimiter } from './features/limits/limiter.ts';
import type { Catalog } from './features/mcp/catalog/catalog.ts';
import { createMcp } from './features/mcp/mcp.ts';
import { createMetricsEndpoints } from './features/metrics/endpoints.ts';
import { createClientDocuments } from './features/oauth/client-id-metadata/client-documents.ts';
import {
  createDocumentOffer,
  createUncheckedOffer,
} from './features/oauth/client-id-metadata/document-offer.ts';
import { createPublicNetwork, type Network } from './features/oauth/client-id-metadata/network.ts';
import { createOAuthEndpoints } from './features/oauth/endpoints.ts';
import { createOAuth } from './features/oauth/oauth.ts';
import { selectRedirectUriRules } from './features/oauth/redirect-uri/redirect-uri.ts';
import { createSite } from './features/site/site.ts';
import type { Lock } from './features/upstreams/lock/lock.ts';
import {
  type GatewaySetup,
  type GatewayUpstreams,
  openUpstreams,
  type UpstreamParts,
} from './gateway-upstreams.ts';
import { createAccessLog } from './http/access-log.ts';
import { createFindClientIp } from './http/client-ip.ts';
import {
  type CorsHeaderNames,
  createGetCorsHeaders,
  createGetPreflightHeaders,
} from './http/cors.ts';
import { createHostCheck } from './http/host-check.ts';
import { createIsAllowedOrigin } from './http/origin-check.ts';
import { createOverloadRefusals } from './http/overload-refusals.ts';
import { createPipeline } from './http/pipeline.ts';
import { createBodyReader } from './http/read-body.ts';
import { createRouter } from './http/router.ts';
import { createRunQueue } from './http/run-queue.ts';
import { createSecurityHeaders } from './http/security-headers.ts';
import { createHttpServer, type HttpServer } from './http/server.ts';

/** Dependencies of a gateway; defaults are used for those left out. */
export interface Deps {
  readonly store: Store;
  readonly clock: Clock;
  readonly keySet: KeySet;
  readonly fetch: Fetch;
  readonly log: Log;
  readonly catalog: Catalog;
  /** Which servers stand behind the gateway; without it there are none. */
  readonly file: GatewayFile;
  /** What was approved of what those servers say of themselves; without it everything is. */
  readonly lock: Lock;
  /** What programs behind the gateway get PATH, HOME, USER, LANG and TMPDIR of; nothing unless given. */
  readonly environment: UpstreamParts['environment'];
  /** What is counted; nothing is with `METRICS_ENABLED=false`. */
  readonly metrics: Metrics;
  /** By which client ID metadata documents are fetched; that they can be is not checked then. */
  readonly network: Network;
}

export interface Gateway {
  /** Serves one request of a node:http server that somebody else runs, or of a test. */
  readonly handler: (req: IncomingMessage, res: ServerResponse) => void;
  /**
   * Listens on `HOST` and `PORT`; resolves to the port.
   *
   * @throws Error with the code of the system (`EADDRINUSE`, `EADDRNOTAVAIL`, `EACCES`).
   */
  listen(): Promise<number>;
  /**
   * Takes another configuration file, and the lock beside it, in place of those it was made with. Calls under way end
   * normally.
   *
   * @throws Error for a gateway that was made without a file.
   */
  reload(setup: GatewaySetup): Promise<void>;
  /**
   * Not ready at once, serves on for `SHUTDOWN_DELAY_MS`, finishes what is in flight (10 s at
   * most), closes the store, which it owns even when it was given.
   */
  close(): Promise<void>;
}

const DRAIN_GRACE_MS = 10_000;

/** What a header section may have beside the token. */
const OTHER_HEADERS_BYTES = 16_384;

/**
 * Builds the service. Neither the provider nor Redis has to be reachable.
 *
 * @throws ConfigError when a configuration that was made by hand lacks what keeps callers out.
 * @throws DataDirError when the folder of the embedded store, or the secret in it, cannot be used,
 * or the folder is in use.
 */
export async function createGateway(
  config: Config,
  overrides: Partial<Deps> = {},
): Promise<Gateway> {
  checkConfig(config);
  const { metricsEnabled: hasMetrics, environment, displayName } = config.server;
  const clock = overrides.clock ?? systemClock;
  const log = overrides.log ?? createLog(config.server.logLevel);
  const outbound = await openOutboundNetwork(config.outbound);
  const fetch = overrides.fetch ?? outbound.fetch;
  const catalog = overrides.catalog ?? builtInCatalog;
  const metrics = hasMetrics ? (overrides.metrics ?? (await createMetrics())) : noMetrics;
  const opened = overrides.store ?? (await openStore(config, { clock, log }));
  const store = hasMetrics ? instrumentStore(opened, metrics, clock) : opened;
  const loginSeal = await createLoginSeal(config.oauth.stateSecret).catch(
    async (error: unknown) => {
      await store.close();
      throw error;
    },
  );
  logStartWarnings(config, log);

  const getSeal = createReplicaSeal(config.mcp.sessions.keyPrefix, { store, clock, loginSeal });
  let upstreams: GatewayUpstreams | undefined;
  const isServer = (name: string) => upstreams?.catalogs.findServer(name) !== undefined;
  const serverUrls = createServerUrls(
    config.server.baseUrl,
    config.auth.required ? config.auth.provider.audience : config.oauth.provider?.audience,
    isServer,
  );
  const { metadata, auth } = createProviderAccess(config, {
    isServer,
    isServerAudience: serverUrls.isAudience,
    fetch,
    clock,
    log,
    metrics,
    keySet: overrides.keySet,
  });
  upstreams =
    overrides.file === undefined
      ? undefined
      : await openUpstreams(
          config,
          { file: overrides.file, lock: overrides.lock },
          {
            builtIn: catalog,
            environment: overrides.environment ?? {},
            store,
            getSeal,
            fetch,
            metadata,
            clock,
            log,
            metrics,
          },
        );
  const mcp = createMcp(config.mcp, {
    catalogs: upstreams?.catalogs ?? { all: catalog, findServer: () => undefined },
    service: { name: PACKAGE_NAME, version: PACKAGE_VERSION, displayName, environment },
    store,
    getSeal,
    clock,
    metrics,
    log,
    getChallenge: auth.getChallenge,
  });

  const authorization = createAuthorizationEndpoints(config, {
    store,
    loginSeal,
    fetch,
    clock,
    log,
    metadata,
    inspectToken: auth.inspectToken,
    serverUrls,
    isServer,
    network: overrides.network,
    needsClients: upstreams?.needClient,
    tunnel: outbound.openTunnel,
  });

  let isShuttingDown = false;
  const readinessChecks = {
    store: store.ping,
    ...auth.readiness,
    ...(upstreams && { servers: upstreams.checkRequired }),
  };

  /** §4.1: all endpoints of the service, beside the pages. */
  const endpoints = [
    ...mcp.endpoints,
    ...authorization.endpoints,
    ...(upstreams?.endpoints ?? []),
    ...createHealthEndpoints(readinessChecks, () => isShuttingDown),
    ...(hasMetrics ? createMetricsEndpoints(metrics, mcp.countSessions) : []),
  ];
  const server = await createTransport(config, {
    endpoints,
    corsHeaders: mcp.corsHeaders,
    authenticate: auth.authenticate,
    store,
    clock,
    metrics,
    log,
  });

  authorization.start();
  return {
    handler: server.handler,
    async listen() {
      const { port } = await server.listen(config.server.port, config.server.host);
      logListening(config, port, log);
      return port;
    },
    async reload(setup) {
      if (upstreams === undefined) throw new Error('This gateway was made without a file.');
      await upstreams.reload(setup);
    },
    async close() {
      isShuttingDown = true;
      server.startDraining();
      const { shutdownDelayMs } = config.server;
      if (shutdownDelayMs > 0) await pause(clock, shutdownDelayMs);
      mcp.stopWaiting();
      await server.close(DRAIN_GRACE_MS);
      await upstreams?.close(0);
      mcp.close();
      auth.close();
      authorization.close();
      await outbound.close();
      await store.close();
    },
  };
}

/** Loaded where it is used, as the store's driver is. */
async function createMetrics(): Promise<Metrics> {
  const { createPrometheusMetrics } = await import('./core/metrics/prometheus.ts');
  return createPrometheusMetrics();
}

interface AuthorizationParts extends Pick<Deps, 'store' | 'fetch' | 'clock' | 'log'> {
  /** Undefined where nothing is sealed: in proxy mode without a consent page. */
  readonly loginSeal: Seal | undefined;
  /** Undefined without an issuer. */
  readonly metadata: ProviderMetadata | undefined;
  readonly inspectToken: Auth['inspectToken'];
  readonly serverUrls: ServerUrls;
  readonly isServer: (name: string) => boolean;
  /** In place of the public network. */
  readonly network: Network | undefined;
  readonly needsClients: (() => boolean) | undefined;
  readonly tunnel: OpenTunnel;
}

interface AuthorizationEndpoints {
  readonly endpoints: readonly Endpoint[];
  /** Looks from now on whether documents of clients can be fetched. */
  start(): void;
  close(): void;
}

/** The authorization server that clients see: its endpoints, and the documents that lead to it. */
function createAuthorizationEndpoints(
  config: Config,
  parts: AuthorizationParts,
): AuthorizationEndpoints {
  const { store, loginSeal, fetch, clock, log, metadata } = parts;
  const { oauth } = config;
  const { baseUrl } = config.server;
  const { allowedHosts } = oauth.clientIdMetadata;
  const network = parts.network ?? createPublicNetwork({ clock, tunnel: parts.tunnel });
  const clientDocuments = createClientDocuments({
    allowedHosts,
    redirectUris: selectRedirectUriRules(oauth, baseUrl),
    clock,
    log,
    network,
  });
  const documentOffer =
    parts.network === undefined
      ? createDocumentOffer({ allowedHosts, network, clock, log })
      : createUncheckedOffer(allowedHosts);
  const handlers = createOAuth(config, {
    store,
    seal: loginSeal && warnOfForeignSecrets(loginSeal, { clock, log }),
    fetch,
    clock,
    clientDocuments,
    providerEndpoints: metadata && createProviderEndpoints(oauth.endpoints, metadata),
    inspectToken: parts.inspectToken,
    needsClients: parts.needsClients,
    serverUrls: parts.serverUrls,
    log,
  });
  const metadataDocuments = createServerMetadata(config, metadata, documentOffer.isOffered);
  return {
    endpoints: [
      ...createOAuthEndpoints(handlers, { popups: oauth.popups }),
      ...createDiscoveryEndpoints(baseUrl, metadataDocuments, parts.isServer),
    ],
    start: documentOffer.start,
    close: documentOffer.close,
  };
}

interface TransportParts {
  readonly endpoints: readonly Endpoint[];
  readonly corsHeaders: CorsHeaderNames;
  readonly authenticate: Auth['authenticate'];
  readonly store: Store;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** The server, and all that a request meets before and after its endpoint. */
async function createTransport(config: Config, parts: TransportParts): Promise<HttpServer> {
  const { store, clock, metrics, log } = parts;
  const { http, limits } = config;
  const { baseUrl } = config.server;
  const securityHeaders = createSecurityHeaders(config.server);
  const router = createRouter(parts.endpoints, await createSite({ baseUrl, log }));
  const runQueue = createRunQueue(clock);
  return createHttpServer({
    runPipeline: createPipeline({
      router,
      checkHost: createHostCheck(config),
      isAllowedOrigin: createIsAllowedOrigin(config),
      getCorsHeaders: createGetCorsHeaders(parts.corsHeaders),
      getPreflightHeaders: createGetPreflightHeaders(parts.corsHeaders),
      ownOrigin: new URL(baseUrl).origin,
      limiter: limits.enabled
        ? createLimiter(limits.groups, { store, clock, metrics, log })
        : createUnlimitedLimiter(store),
      authenticate: parts.authenticate,
      readBody: createBodyReader({
        maxBodyBytes: http.maxBodyBytes,
        maxBodyValues: http.maxBodyValues,
        clock,
      }),
      securityHeaders,
      runQueue,
      clock,
    }),
    runQueue,
    isServedWhenBusy: router.isServedWhenBusy,
    overloadRefusals: createOverloadRefusals(parts.endpoints, securityHeaders),
    findClientIp: createFindClientIp(http.trustProxy),
    logRequest: createAccessLog(log, metrics, clock),
    securityHeaders,
    maxConnections: http.maxConnections,
    maxHeaderBytes: http.maxTokenBytes + OTHER_HEADERS_BYTES,
    clock,
    metrics,
    log,
  });
}

/** Provider metadata and authentication. */
function createProviderAccess(
  { server, http, auth, oauth }: Config,
  {
    isServer,
    ...deps
  }: Omit<AuthDeps, 'metadata' | 'getChallenge' | 'maxTokenBytes' | 'hasMetrics'> & {
    readonly isServer: (name: string) => boolean;
  },
): { readonly metadata: ProviderMetadata | undefined; readonly auth: Auth } {
  const openMetadata = ({ issuer }: ProviderConfig) => createProviderMetadata({ issuer, ...deps });
  if (!auth.required) {
    return { metadata: oauth.provider && openMetadata(oauth.provider), auth: disabledAuth };
  }
  const metadata = openMetadata(auth.provider);
  return {
    metadata,
    auth: createAuth(auth, {
      ...deps,
      metadata,
      getChallenge: createChallenge(server.baseUrl, oauth.mode, isServer),
      maxTokenBytes: http.maxTokenBytes,
      hasMetrics: server.metricsEnabled,
    }),
  };
}
