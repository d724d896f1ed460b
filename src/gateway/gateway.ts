// The composition root: every implementation is chosen here, once.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createProviderAccess, openOwnTokenAccess } from '../auth/auth.ts';
import type { KeySet } from '../auth/key-set.ts';
import { createMachineClients } from '../auth/machine-clients.ts';
import { builtInCatalog } from '../catalog/index.ts';
import { checkConfig } from '../config/check-config.ts';
import type { Config } from '../config/config.ts';
import { ConfigError, formatProblem } from '../config/problem.ts';
import { createServerUrls } from '../config/server-urls.ts';
import { logListening, logStartWarnings } from '../config/start-log.ts';
import { createTransport } from '../edge/create-transport.ts';
import { createLimiter, createUnlimitedLimiter } from '../edge/limits/limiter.ts';
import { getOriginalToken, type UserContext } from '../endpoint/message.ts';
import { openOwnTokens } from '../grants/open-grants.ts';
import type { Catalog } from '../mcp/catalog/catalog.ts';
import { serveOwnCatalog } from '../mcp/catalog/served-catalog.ts';
import { createMcp } from '../mcp/mcp.ts';
import { openBroker } from '../oauth/broker/open-broker.ts';
import { findMachineClientProblems } from '../oauth/client-authentication/machine-client-problems.ts';
import { createAuthorizationEndpoints } from '../oauth/create-authorization.ts';
import { createCheckTokenUser } from '../oauth/identity/login-policy.ts';
import { createLoginFailures } from '../oauth/login-failures.ts';
import { createPeople, createPersonIndex } from '../operations/admin/people.ts';
import { createRecentCallers } from '../operations/admin/recent-callers.ts';
import {
  createOperatorEndpoints,
  createSealPerson,
  noteRefusals,
} from '../operations/create-admin.ts';
import { createHealthEndpoints, createMetricsEndpoints } from '../operations/endpoints.ts';
import { type Clock, pause, systemClock } from '../platform/clock.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import { createLog, type Log } from '../platform/log.ts';
import { openOutboundNetwork } from '../platform/outbound/outbound-network.ts';
import type { Network } from '../platform/outbound/public-network.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../platform/own-files.ts';
import { findAskProblems } from '../policy/approvals/ask-problems.ts';
import { createClientOf } from '../policy/rules/client-of.ts';
import { describeNamed } from '../policy/rules/named-facts.ts';
import { createLogo } from '../site/logo.ts';
import { createServerCardEndpoints } from '../site/server-card-endpoints.ts';
import { instrumentStore } from '../store/observe-store.ts';
import { openStore } from '../store/open.ts';
import { createLoginSeal, createReplicaSeal } from '../store/seal/secrets.ts';
import type { Store } from '../store/store.ts';
import { type Metrics, noMetrics } from '../telemetry/metrics/metrics.ts';
import type { IdlePattern } from '../upstreams/catalog/idle-patterns.ts';
import type { Setup } from '../upstreams/catalog/plan.ts';
import type { ServerFacts } from '../upstreams/catalog/upstream-catalogs.ts';
import type {
  GatewayUpstreams,
  openUpstreams as OpenUpstreams,
  UpstreamParts,
} from '../upstreams/create-upstreams.ts';
import type { Lock } from '../upstreams/lock/lock.ts';
import type { StoredLock } from '../upstreams/lock/lock-file.ts';
import { openApprovals } from './approvals.ts';
import type { GatewayFile } from './configuration/gateway-file.ts';
import { openConnections } from './connections.ts';
import { openObservation } from './observation.ts';
import { createPublicSite } from './site.ts';

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
  /** Where that is written to when operators approve; without it they cannot at their page. */
  readonly storedLock: StoredLock;
  /** How operators can type `postern lock` where this gateway was started; just so unless given. */
  readonly lockCommand: string;
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
  reload(setup: Setup): Promise<void>;
  /** Patterns of such a file that fit nothing of what its servers have listed so far. */
  findIdlePatterns(file: Setup['file']): readonly IdlePattern[];
  /** The number of live sessions, of all replicas. */
  countSessions(): Promise<number>;
  /** The servers behind the gateway, in the order of its file: whether they answer, and how many tools they have. */
  listServers(): readonly ServerFacts[];
  /**
   * Not ready at once, serves on for `SHUTDOWN_DELAY_MS`, finishes what is in flight (for as long again at most, and
   * never less than 10 s), closes the store, which it owns even when it was given.
   */
  close(): Promise<void>;
}

/** Milliseconds for what is in flight when a process stops; more where `SHUTDOWN_DELAY_MS` is more. */
const MIN_GRACE_MS = 10_000;

/**
 * Builds the service. Neither the provider nor Redis has to be reachable.
 *
 * @throws ConfigError when a configuration that was made by hand lacks what keeps callers out, or the
 * file of the logo cannot be read.
 * @throws DataDirError when the folder of the embedded store, or the secret in it, cannot be used,
 * or the folder is in use.
 * @throws TracingError when the packages of OpenTelemetry are needed and missing.
 * @throws AuditLogError when the file of `AUDIT_LOG` cannot be opened.
 */
export async function createGateway(
  config: Config,
  overrides: Partial<Deps> = {},
): Promise<Gateway> {
  checkConfig(config);
  if (overrides.file !== undefined) checkFile(overrides.file, config);
  const machineClients = createMachineClients(overrides.file?.clients);
  const logo = await createLogo(config.site.logo, config.server.baseUrl);
  const { metricsEnabled: hasMetrics, environment, displayName } = config.server;
  const clock = overrides.clock ?? systemClock;
  const log =
    overrides.log ?? createLog(config.server.logLevel, { format: config.server.logFormat });
  const outbound = openOutboundNetwork({ outbound: config.outbound });
  const ownCatalog = serveOwnCatalog(overrides.catalog ?? builtInCatalog, { clock, log });
  const metrics = hasMetrics ? (overrides.metrics ?? (await createMetrics())) : noMetrics;
  const observation = await openObservation(config, {
    clock,
    log,
    metrics,
    hasOwnTools: overrides.catalog !== undefined,
  });
  const { audit, tracing, getTraceId } = observation;
  const fetch = observation.traceFetch(overrides.fetch ?? outbound.fetch);
  const opened = overrides.store ?? (await openStore(config, { clock, log }));
  const measured = hasMetrics ? instrumentStore(opened, metrics, clock) : opened;
  const store = observation.traceStore(measured);
  /** Its folder can be used again at once. */
  async function closeStore(error: unknown): Promise<never> {
    await store.close();
    throw error;
  }
  const loginSeal = await createLoginSeal(config.oauth.stateSecret).catch(closeStore);
  logStartWarnings(config, log);

  const getSeal = createReplicaSeal(config.mcp.sessions.keyPrefix, { store, clock, loginSeal });
  let upstreams: GatewayUpstreams | undefined;
  /** What there is at `/mcp/<name>`: servers and views. */
  const namedPaths = {
    has: (name: string) => upstreams?.catalogs.findNamed(name) !== undefined,
    getTitle: (name: string) => upstreams?.catalogs.findNamed(name)?.title,
  };
  const serverUrls = createServerUrls(
    config.server.baseUrl,
    config.auth.required ? config.auth.provider.audience : config.oauth.provider?.audience,
    namedPaths.has,
  );
  const loginFailures =
    config.admin.groups.length > 0 ? createLoginFailures({ store, clock, log }) : undefined;
  const people = loginFailures && createPeople(getSeal);
  const personIndex = loginFailures && createPersonIndex({ store, getSeal });
  const recentCallers = people && createRecentCallers({ store, people, clock, log });
  const ownTokens = openOwnTokens(config, { store, seal: loginSeal, clock, log, metrics });
  const { metadata, keySet, auth } = createProviderAccess(config, {
    ownTokens:
      ownTokens &&
      openOwnTokenAccess(config, ownTokens, machineClients, createCheckTokenUser, clock),
    onRefusal: loginFailures && noteRefusals(loginFailures.note),
    isServer: namedPaths.has,
    isServerAudience: serverUrls.isAudience,
    fetch,
    clock,
    log,
    metrics,
    keySet: overrides.keySet,
  });
  const listConnectionServers = () =>
    connections === undefined ? [] : (upstreams?.listConnectionServers() ?? []);
  const connections = openConnections(config, {
    store,
    seal: loginSeal,
    fetch,
    network: overrides.network,
    tunnel: outbound.openTunnel,
    listServers: listConnectionServers,
    clock,
    log,
    metrics,
    audit,
  });
  const broker =
    ownTokens &&
    openBroker(config, {
      ownTokens,
      metadata,
      keySet,
      records: { store, seal: loginSeal, tracing },
      machineClients,
      connections: connections?.parts.connections,
      listNamedClaims: () => [
        ...(config.admin.groups.length > 0 ? ['groups'] : []),
        ...(upstreams?.listNamedClaims() ?? []),
      ],
      fetch,
      clock,
      log,
      metrics,
    });
  const getProviderToken = broker?.renewal.getProviderToken ?? getOriginalToken;
  const clientOf = createClientOf(
    config.oauth.mode === 'broker' ? config.oauth.providerClient.id : undefined,
  );
  upstreams =
    overrides.file === undefined
      ? undefined
      : await openUpstreams(
          config,
          { file: overrides.file, lock: overrides.lock },
          {
            builtIn: ownCatalog,
            environment: overrides.environment ?? {},
            store,
            getSeal,
            getProviderToken,
            findClientId: clientOf,
            connections: connections?.parts,
            fetch,
            metadata,
            clock,
            log,
            metrics,
            tracing,
            storedLock: overrides.storedLock,
          },
        ).catch(closeStore);
  const describeUser = (user: UserContext) =>
    upstreams && describeNamed(user, upstreams.getNamedFacts());
  const getGuards = () => upstreams?.getGuards();
  const approvals = openApprovals(config, {
    getGuards,
    store,
    getSeal,
    clock,
    log,
    metrics,
    audit,
  });
  const mcp = createMcp(config.mcp, {
    catalogs: upstreams?.catalogs ?? { all: ownCatalog, findNamed: () => undefined },
    policies: upstreams?.catalogs.policies,
    getGuards,
    askFirst: approvals.askFirst,
    service: { name: PACKAGE_NAME, version: PACKAGE_VERSION, displayName, environment },
    store,
    getSeal,
    clock,
    metrics,
    log,
    getChallenge: auth.getChallenge,
    isTraced: tracing !== undefined,
    audit,
    describeUser: config.audit.claims ? describeUser : undefined,
    findClientId: clientOf,
    getProviderToken,
    sealPerson: people && personIndex && createSealPerson(people, personIndex),
    defaultIssuer: config.oauth.provider?.issuer,
    noteStatelessUser: recentCallers?.note,
    endedGrants: ownTokens?.endedGrants,
    maxConnections: config.http.maxConnections,
  });

  const site = createPublicSite(config, {
    logo,
    catalog: upstreams?.catalogs.all ?? ownCatalog,
    hasConnections: () => listConnectionServers().length > 0,
    hasPaths: upstreams !== undefined,
    clock,
    log,
  });
  const authorization = createAuthorizationEndpoints(config, {
    store,
    loginSeal,
    fetch,
    clock,
    log,
    metadata,
    inspectToken: auth.inspectToken,
    verifyToken: auth.verifyToken,
    serverUrls,
    namedPaths,
    network: overrides.network,
    getPublicTools: site.getPublicTools,
    tunnel: outbound.openTunnel,
    audit,
    tracing,
    getTraceId,
    noteFailure: loginFailures?.note,
    broker,
    callApprovals: approvals.approvals,
    connections: connections?.parts,
    listConnectionServers,
    machineClients,
  });
  const limiter = config.limits.enabled
    ? createLimiter(config.limits.groups, { store, clock, metrics, log })
    : createUnlimitedLimiter(store);
  const operatorEndpoints =
    loginFailures && people && personIndex && recentCallers
      ? createOperatorEndpoints(config, {
          store,
          clock,
          audit,
          getTraceId,
          clientOf,
          loginFailures,
          people,
          personIndex,
          recentCallers,
          limiter,
          describeKeySet: auth.describeKeySet,
          endSession: mcp.endSession,
          grants: ownTokens?.grants,
          connections: connections?.operated,
          endGrant: broker?.endGrant,
          endSelectedGrants: broker?.endSelectedGrants,
          callApprovals: approvals.approvals,
          listServers: () => upstreams?.listServers() ?? [],
          listGuards: () => upstreams?.getGuards()?.listGuards() ?? [],
          findIdlePatterns: () => upstreams?.findIdlePatterns() ?? [],
          listServerTools: (name, part) => upstreams?.listServerTools(name, part),
          listLockDifferences: (part) => upstreams?.listLockDifferences(part),
          lockApproval: upstreams?.lockApproval,
          measureLists: async () => (await upstreams?.measureLists()) ?? [],
          previewAccess: upstreams?.previewAccess,
          lockCommand: overrides.lockCommand ?? 'postern lock',
        })
      : [];

  /** It cannot listen, so that there is nobody to serve on for. */
  let hasFailed = false;
  let isShuttingDown = false;
  const readinessChecks = {
    store: store.ping,
    ...auth.readiness,
    ...(upstreams && { servers: upstreams.checkRequired }),
    ...(audit && config.audit.required && { audit: audit.checkIsWritable }),
  };

  /** §4.1: all endpoints of the service, beside the pages. */
  const endpoints = [
    ...mcp.endpoints,
    ...authorization.endpoints,
    ...(upstreams?.endpoints ?? []),
    ...createHealthEndpoints(readinessChecks, () => isShuttingDown),
    ...(hasMetrics
      ? createMetricsEndpoints(metrics, {
          countSessions: mcp.countSessions,
          countConnections: connections?.count ?? (async () => []),
        })
      : []),
    ...operatorEndpoints,
    ...site.endpoints,
    ...createServerCardEndpoints(config, namedPaths),
  ];
  const server = createTransport(config, {
    endpoints,
    corsHeaders: mcp.corsHeaders,
    authenticate: auth.authenticate,
    noteRefusedToken: authorization.noteRefusedToken,
    reload: auth.reload,
    getChallenge: auth.getChallenge,
    limiter,
    clock,
    metrics,
    log,
    tracing,
  });

  authorization.start();
  return {
    handler: server.handler,
    async listen() {
      hasFailed = true;
      const { port } = await server.listen(config.server.port, config.server.host);
      hasFailed = false;
      logListening(config, port, log);
      return port;
    },
    async reload(setup) {
      if (upstreams === undefined) throw new Error('This gateway was made without a file.');
      checkFile(setup.file, config);
      await upstreams.reload(setup);
      machineClients.replace(setup.file.clients ?? []);
    },
    findIdlePatterns: (file) => upstreams?.findIdlePatterns(file) ?? [],
    countSessions: mcp.countSessions,
    listServers: () => upstreams?.listServers() ?? [],
    async close() {
      isShuttingDown = true;
      server.startDraining();
      const { shutdownDelayMs } = config.server;
      if (shutdownDelayMs > 0 && !hasFailed) await pause(clock, shutdownDelayMs);
      mcp.stopWaiting();
      const graceMs = Math.max(MIN_GRACE_MS, shutdownDelayMs);
      await Promise.all([
        server.close(graceMs),
        Promise.race([mcp.drainStreams(), pause(clock, graceMs)]),
        mcp.endTasks(graceMs),
      ]);
      await mcp.keepStreams();
      await upstreams?.close(0);
      mcp.close();
      ownTokens?.close();
      broker?.close();
      connections?.close();
      approvals.close();
      auth.close();
      authorization.close();
      outbound.close();
      try {
        await closeInTime('store', store.close(), clock);
      } finally {
        await closeInTime('audit log or the exporter of traces', observation.close(), clock);
      }
    },
  };
}

/** Milliseconds for the store, and for what is written last: with what is in flight less than the time that containers are given. */
const CLOSE_MS = 2000;

/** @throws Error with the name of the part that takes longer. */
async function closeInTime(part: string, closing: Promise<void>, clock: Clock): Promise<void> {
  const tooLate = pause(clock, CLOSE_MS).then(() => {
    throw new Error(`The ${part} did not close within ${CLOSE_MS / 1000} s`);
  });
  await Promise.race([closing, tooLate]);
}

/** @throws ConfigError with all that the file needs and the settings lack. */
function checkFile(file: GatewayFile, config: Config): void {
  const problems = [
    ...findMachineClientProblems(file.clients, config),
    ...findAskProblems(file, config),
  ];
  if (problems.length > 0) throw new ConfigError(problems.map(formatProblem));
}

/** Loaded where there is a configuration file: a quarter of all code. */
const openUpstreams: typeof OpenUpstreams = async (...args) => {
  const upstreams = await import('../upstreams/create-upstreams.ts');
  return upstreams.openUpstreams(...args);
};

/** Loaded where it is used, as the store's driver is. */
async function createMetrics(): Promise<Metrics> {
  const { createPrometheusMetrics } = await import('../telemetry/metrics/prometheus.ts');
  return createPrometheusMetrics();
}
