// The composition root: every implementation is chosen here, once.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { builtInCatalog } from '../built-in/index.ts';
import type { IdlePattern } from '../catalog/idle-patterns.ts';
import type { ServerFacts } from '../catalog/upstream-catalogs.ts';
import { checkConfig } from '../config/check-config.ts';
import type { Config } from '../config/config.ts';
import { ConfigError, formatProblem } from '../config/problem.ts';
import { createServerUrls } from '../config/server-urls.ts';
import { logListening, logStartWarnings } from '../config/start-log.ts';
import { createConnections } from '../connections/create-connections.ts';
import { createConnectionEndpoints } from '../connections/pages/connection-endpoints.ts';
import { createConnectionPanels } from '../connections/pages/connection-panels.ts';
import { createApprovalEndpoints } from '../control/approvals/approval-endpoints.ts';
import { createApprovalPanels } from '../control/approvals/approval-panels.ts';
import { findAskProblems } from '../control/approvals/approvals.ts';
import { openApprovals } from '../control/approvals/open-approvals.ts';
import { describeNamed } from '../control/rules/named-facts.ts';
import { getOriginalToken, type UserContext } from '../http/endpoint/message.ts';
import { createLimiter } from '../http/limits/limiter.ts';
import type { Lock } from '../lock/lock.ts';
import type { StoredLock } from '../lock/lock-file.ts';
import { createLockPanels } from '../lock/lock-panels.ts';
import { createGrantPanels } from '../logins/admin/grant-panels.ts';
import { createSessionPanels } from '../logins/admin/session-panels.ts';
import { createProviderAccess, openOwnTokenAccess } from '../logins/auth/auth.ts';
import type { KeySet } from '../logins/auth/key-set.ts';
import { createMachineClients } from '../logins/auth/machine-clients.ts';
import { openBroker } from '../logins/broker/open-broker.ts';
import { findMachineClientProblems } from '../logins/client-authentication/machine-client-shape.ts';
import { openOwnTokens } from '../logins/grants/open-grants.ts';
import { createCheckTokenUser } from '../logins/identity/login-policy.ts';
import { createAuthorizationEndpoints } from '../logins/oauth.ts';
import { listLoginObservers, observeLogins } from '../logins/observe-logins.ts';
import { createClientOf } from '../mcp/calls/client-of.ts';
import { joinPolicies } from '../mcp/calls/policy.ts';
import type { Catalog } from '../mcp/catalog/catalog.ts';
import { listTools, serveOwnCatalog } from '../mcp/catalog/own-catalog.ts';
import { createMcp } from '../mcp/mcp.ts';
import {
  createOperatorEndpoints,
  noteRefusals,
  openOperatorsNotes,
} from '../pages/admin/create-admin.ts';
import { createServicePanels } from '../pages/admin/service-panels.ts';
import { createHealthEndpoints, createMetricsEndpoints } from '../pages/health.ts';
import { createLogo } from '../pages/logo.ts';
import { openSite } from '../pages/open-site.ts';
import { createServerCardEndpoints } from '../pages/server-card.ts';
import { type Clock, pause } from '../platform/clock.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import type { Log } from '../platform/log.ts';
import type { Network } from '../platform/outbound/public-network.ts';
import { openRuntime } from '../runtime/runtime.ts';
import { createServerPanels } from '../servers/server-panels.ts';
import type { Store } from '../store/store.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import type { GatewayFile, GatewaySetup } from './configuration/gateway-file.ts';
import { createTransport } from './create-transport.ts';
import type {
  GatewayUpstreams,
  openUpstreams as OpenUpstreams,
  UpstreamPorts,
} from './create-upstreams.ts';

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
  readonly environment: UpstreamPorts['environment'];
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
  /** Patterns of such a file that fit nothing of what its servers have listed so far. */
  findIdlePatterns(file: GatewaySetup['file']): readonly IdlePattern[];
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
  const runtime = await openRuntime(config, {
    ...overrides,
    hasOwnTools: overrides.catalog !== undefined,
  });
  const { clock, log, metrics, audit, store } = runtime;
  const ownCatalog = serveOwnCatalog(overrides.catalog ?? builtInCatalog, runtime);
  /** Its folder can be used again at once. */
  async function closeStore(error: unknown): Promise<never> {
    await runtime.close().catch(() => {});
    throw error;
  }
  logStartWarnings(config, log);

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
  const notes = openOperatorsNotes(runtime);
  const ownTokens = openOwnTokens(runtime);
  const provider = createProviderAccess(runtime, namedPaths.has, {
    isServerAudience: serverUrls.isAudience,
    onRefusal: notes && noteRefusals(notes.loginFailures.note),
    ownTokens:
      ownTokens && openOwnTokenAccess(runtime, ownTokens, machineClients, createCheckTokenUser),
    keySet: overrides.keySet,
  });
  const { metadata, auth } = provider;
  const listConnectionServers = () =>
    connections === undefined ? [] : (upstreams?.listConnectionServers() ?? []);
  const connections = createConnections(runtime, listConnectionServers);
  const broker =
    ownTokens &&
    openBroker(runtime, ownTokens, provider, machineClients, {
      urls: serverUrls,
      connections: connections?.connections,
      hasConnections: () => listConnectionServers().length > 0,
      listNamedClaims: () => [
        ...(config.admin.groups.length > 0 ? ['groups'] : []),
        ...(upstreams?.listNamedClaims() ?? []),
      ],
    });
  const getProviderToken = broker?.renewal.getProviderToken ?? getOriginalToken;
  const clientOf = createClientOf(
    config.oauth.mode === 'broker' ? config.oauth.providerClient.id : undefined,
  );
  upstreams =
    overrides.file === undefined
      ? undefined
      : await openUpstreams(
          runtime,
          { file: overrides.file, lock: overrides.lock },
          {
            builtIn: ownCatalog,
            environment: overrides.environment ?? {},
            getProviderToken,
            findClientId: clientOf,
            connections,
            metadata,
            storedLock: overrides.storedLock,
          },
        ).catch(closeStore);
  const describeUser = (user: UserContext) =>
    upstreams && describeNamed(user, upstreams.getNamedFacts());
  const getGuards = () => upstreams?.getGuards();
  const approvals = openApprovals(runtime, getGuards);
  const { judge } = upstreams?.catalogs.policies ?? joinPolicies([]);
  const mcp = createMcp(
    runtime,
    upstreams?.catalogs ?? { all: ownCatalog, findNamed: () => undefined },
    { judge, getGuards, askFirst: approvals.askFirst },
    {
      findClientId: clientOf,
      getProviderToken,
      getChallenge: auth.getChallenge,
      describeUser,
      sealPerson: notes?.sealPerson,
      noteStatelessUser: notes?.recentCallers.note,
      endedGrants: ownTokens?.endedGrants,
    },
  );

  const catalog = upstreams?.catalogs.all ?? ownCatalog;
  const site = openSite(runtime, logo, () => listTools(catalog), {
    hasConnections: () => listConnectionServers().length > 0,
    hasPaths: upstreams !== undefined,
  });
  const authorization = createAuthorizationEndpoints(
    runtime,
    provider,
    broker,
    namedPaths,
    site.getPublicTools,
  );
  const { ownPages } = authorization;
  const limiter = createLimiter(runtime);
  const grants = ownTokens?.grants;
  const operatedGrants = grants && broker && { grants, ...broker.ends };
  const { describeKeySet } = auth;
  const operatorEndpoints =
    notes && describeKeySet
      ? createOperatorEndpoints(runtime, clientOf, [
          ...createSessionPanels(runtime, notes, mcp.endSession),
          ...createGrantPanels(notes, operatedGrants),
          ...createConnectionPanels(notes, connections?.operated, grants),
          ...createServicePanels(runtime, notes.loginFailures, limiter, {
            issuer: notes.issuers.issuer,
            describe: describeKeySet,
          }),
          ...createServerPanels(upstreams),
          ...createLockPanels(runtime, upstreams, overrides.lockCommand ?? 'postern lock'),
          ...createApprovalPanels(approvals.approvals),
        ])
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
    ...observeLogins(
      runtime,
      authorization.endpoints,
      listLoginObservers(audit, notes?.loginFailures.note),
    ),
    ...(ownPages && connections
      ? createConnectionEndpoints(runtime, ownPages, connections, listConnectionServers)
      : []),
    ...(ownPages ? createApprovalEndpoints(runtime, ownPages, approvals.approvals) : []),
    ...(upstreams?.endpoints ?? []),
    ...createHealthEndpoints(readinessChecks, () => isShuttingDown),
    ...(config.server.metricsEnabled
      ? createMetricsEndpoints(metrics, {
          countSessions: mcp.countSessions,
          countConnections: connections?.count ?? (async () => []),
        })
      : []),
    ...operatorEndpoints,
    ...site.endpoints,
    ...createServerCardEndpoints(config, namedPaths),
  ];
  const checks = {
    authenticate: auth.authenticate,
    noteRefusedToken: authorization.noteRefusedToken,
    reload: auth.reload,
    getChallenge: auth.getChallenge,
    limiter,
  };
  const server = createTransport(runtime, endpoints, checks, mcp.corsHeaders);

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
      await runtime.close();
    },
  };
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
  const upstreams = await import('./create-upstreams.ts');
  return upstreams.openUpstreams(...args);
};
