// The composition root: every implementation is chosen here, once.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { builtInCatalog } from '../built-in/index.ts';
import type { IdlePattern } from '../catalog/idle-patterns.ts';
import type { ServerFacts } from '../catalog/upstream-catalogs.ts';
import { checkConfig } from '../config/check-config.ts';
import type { Config } from '../config/config.ts';
import { ConfigError, formatProblem } from '../config/problem.ts';
import { logListening, logStartWarnings } from '../config/start-log.ts';
import { connectionPages, connections } from '../connections/feature.ts';
import { findAskProblems } from '../control/approvals/approvals.ts';
import { approvals } from '../control/approvals/feature.ts';
import type { Endpoint } from '../http/endpoint/endpoint.ts';
import { createLimiter } from '../http/limits/limiter.ts';
import type { CallerChecks } from '../http/server/check-request.ts';
import type { CorsHeaderNames } from '../http/server/headers.ts';
import type { Site } from '../http/server/router.ts';
import { createHttpServer, type HttpServer } from '../http/server/server.ts';
import type { StoredLock } from '../lock/lock-file.ts';
import type { KeySet } from '../logins/auth/key-set.ts';
import { findMachineClientProblems } from '../logins/client-authentication/machine-client-shape.ts';
import {
  access,
  authorization,
  broker,
  loginFailures,
  machineClients,
  ownTokens,
  sessionPanels,
} from '../logins/features.ts';
import type { Lock } from '../mcp/catalog/approved-items.ts';
import type { Catalog } from '../mcp/catalog/catalog.ts';
import { serveOwnCatalog } from '../mcp/catalog/own-catalog.ts';
import { beginFeatures, closeAll, type FeatureParts } from '../mcp/feature.ts';
import { callFeature } from '../mcp/mcp.ts';
import { createOperatorEndpoints, createOperatorsHint } from '../pages/admin.ts';
import { createLogo, type Logo } from '../pages/open-site.ts';
import {
  createHealthEndpoints,
  createMetricsEndpoints,
  createSite,
  operatorsNotes,
  site,
} from '../pages/site.ts';
import { pause } from '../platform/clock.ts';
import {
  type OpenRuntime,
  openRuntime,
  type Runtime,
  type RuntimeParts,
} from '../runtime/runtime.ts';
import type { GatewayFile, Setup } from './configuration/gateway-file.ts';
import type { UpstreamPorts } from './create-upstreams.ts';
import { openServedFile, servers } from './servers-feature.ts';

/** Replaces parts that a gateway otherwise opens itself; parts that are left out get their defaults. */
export interface Deps extends RuntimeParts {
  readonly keySet: KeySet;
  readonly catalog: Catalog;
  /** The servers behind the gateway; none if absent. */
  readonly file: GatewayFile;
  /** The approved descriptions of those servers; if absent, everything is approved. */
  readonly lock: Lock;
  /** Stores operators' approvals; if absent, operators cannot approve on their page. */
  readonly storedLock: StoredLock;
  /** The command with which operators run `postern lock` where this gateway was started; `postern lock` by default. */
  readonly lockCommand: string;
  /** True in `postern dev`, where pages that are off say how to turn them on. */
  readonly isDevelopment: boolean;
  /** The environment from which programs behind the gateway get a few variables, such as PATH; empty by default. */
  readonly environment: UpstreamPorts['environment'];
}

export interface Gateway {
  /** Serves one request of a node:http server that the caller, or a test, runs. */
  readonly handler: (req: IncomingMessage, res: ServerResponse) => void;
  /**
   * Listens on `HOST` and `PORT`, and for metrics on `METRICS_PORT`; resolves to the port.
   *
   * @throws Error with the code of the system (`EADDRINUSE`, `EADDRNOTAVAIL`, `EACCES`).
   */
  listen(): Promise<number>;
  /**
   * Switches to another configuration file, with the lock next to it. Calls in progress finish normally.
   *
   * @throws Error for a gateway that was created without a file.
   */
  reload(setup: Setup): Promise<void>;
  /** Patterns in this file that match none of the entries that its servers have listed so far. */
  findIdlePatterns(file: Setup['file']): readonly IdlePattern[];
  /** The number of live sessions, across all replicas. */
  countSessions(): Promise<number>;
  /** The servers behind the gateway, in the order of its file: whether they respond, and how many tools they have. */
  listServers(): readonly ServerFacts[];
  /**
   * Reports not ready immediately, keeps serving for `SHUTDOWN_DELAY_MS`, finishes requests in flight (for at most as long again,
   * but at least 10 s), and closes the store, even if the store was passed in.
   */
  close(): Promise<void>;
}

/** Minimum milliseconds for requests in flight when a process stops; `SHUTDOWN_DELAY_MS` applies if it is longer. */
const MIN_GRACE_MS = 10_000;

/** In the order in which they open: each provides what later features need from it. */
const FEATURES = beginFeatures<Setup, Awaited<ReturnType<typeof begin>>>()
  .with(machineClients)
  .with(ownTokens)
  .with(operatorsNotes)
  .with(loginFailures)
  .with(access)
  .with(connections)
  .with(broker)
  .with(servers)
  .with(site)
  .with(authorization)
  .with(connectionPages)
  .with(approvals)
  .with(callFeature)
  .with(sessionPanels);

/** The features at the start of the list. */
const begin = async (runtime: Runtime, overrides: Partial<Deps>, logo: Logo | undefined) => ({
  file: overrides.file,
  setup: overrides.file && { file: overrides.file, lock: overrides.lock },
  servedFile: await openServedFile(overrides.file),
  storedLock: overrides.storedLock,
  lockCommand: overrides.lockCommand ?? 'postern lock',
  environment: overrides.environment ?? {},
  givenKeySet: overrides.keySet,
  ownCatalog: serveOwnCatalog(overrides.catalog ?? builtInCatalog, runtime),
  logo,
  limiter: createLimiter(runtime),
});

/**
 * Builds the service. Neither the provider nor Redis has to be reachable.
 *
 * @throws ConfigError if a hand-written configuration lacks members that keep callers out, or the logo file cannot be read.
 * @throws DataDirError if the folder of the embedded store, or the secret in it, cannot be used, or the folder is in use.
 * @throws TracingError if the packages of OpenTelemetry are needed but missing.
 * @throws AuditLogError if the `AUDIT_LOG` file cannot be opened.
 */
export async function createGateway(
  config: Config,
  overrides: Partial<Deps> = {},
): Promise<Gateway> {
  checkConfig(config);
  if (overrides.file !== undefined) checkFile(overrides.file, config);
  const logo = await createLogo(config.site.logo, config.server.baseUrl);
  const runtime = await openRuntime(config, overrides, overrides.catalog !== undefined);
  const { ports, features } = await openFeatures(runtime, () => begin(runtime, overrides, logo));
  const { auth, limiter, noteRefusedToken, corsHeaders } = ports;
  const { clock, log } = runtime;
  /** `isUnused`: the gateway cannot listen, so there are no clients to keep serving. */
  const life = { isShuttingDown: false, isUnused: false };
  const { metricsEnabled, metricsPort } = config.server;
  const gauges = features.flatMap((feature) => feature.gauges ?? []);
  const ofMetrics = metricsEnabled ? createMetricsEndpoints(runtime.metrics, gauges) : [];
  const endpoints = [
    ...features.flatMap((feature) => feature.endpoints ?? []),
    ...createHealthChecks(runtime, features, () => life.isShuttingDown),
    ...(metricsPort === undefined ? ofMetrics : []),
    // §22: without operators, there is no operators' page.
    ...(ports.operated && auth.describeKeySet
      ? createOperatorEndpoints(
          runtime,
          ports.findClientId,
          limiter,
          features.flatMap((feature) => feature.panels ?? []),
        )
      : overrides.isDevelopment
        ? [createOperatorsHint(config)]
        : []),
  ];
  const checks = { ...auth, limiter, noteRefusedToken };
  const server = createTransport(runtime, endpoints, checks, corsHeaders);
  const metricsServer =
    metricsPort === undefined
      ? undefined
      : createHttpServer(runtime, { endpoints: ofMetrics, checks, corsHeaders, site: NO_SITE });
  for (const feature of features) feature.start?.();

  return {
    handler: server.handler,
    async listen() {
      life.isUnused = true;
      const { host } = config.server;
      const { port } = await server.listen(config.server.port, host);
      if (metricsPort !== undefined) await metricsServer?.listen(metricsPort, host);
      life.isUnused = false;
      logListening(config, port, log);
      return port;
    },
    reload: createReload(config, ports, features),
    findIdlePatterns: (file) => ports.upstreams?.catalogs.patterns.findIdle(file) ?? [],
    countSessions: ports.countSessions,
    listServers: () => ports.upstreams?.listServers() ?? [],
    async close() {
      life.isShuttingDown = true;
      // Servers that close along with the gateway are not down: no notification is sent.
      runtime.notifier.close();
      server.startDraining();
      const { shutdownDelayMs } = config.server;
      if (shutdownDelayMs > 0 && !life.isUnused) await pause(clock, shutdownDelayMs);
      for (const feature of features) feature.stopWaiting?.();
      const graceMs = Math.max(MIN_GRACE_MS, shutdownDelayMs);
      await Promise.all([
        server.close(graceMs),
        metricsServer?.close(graceMs),
        ...features.map((feature) => feature.drain?.(graceMs)),
      ]);
      await closeAll([runtime, ...features]);
    },
  };
}

type Opened = readonly FeatureParts<Setup>[];
type Ports = Awaited<ReturnType<typeof FEATURES.open>>['ports'];

/** If the gateway fails to open, the folder of its store can be reused immediately. */
async function openFeatures(runtime: OpenRuntime, start: () => ReturnType<typeof begin>) {
  try {
    const beginning = await start();
    logStartWarnings(runtime.config, runtime.log);
    return await FEATURES.open(runtime, beginning);
  } catch (error) {
    await runtime.close().catch(() => {});
    throw error;
  }
}

/** The health endpoints (§4.2, §4.3). */
function createHealthChecks(
  { config, store, audit }: Runtime,
  features: Opened,
  isShuttingDown: () => boolean,
): readonly Endpoint[] {
  const readiness = {
    store: store.ping,
    ...Object.fromEntries(features.flatMap((feature) => Object.entries(feature.readiness ?? {}))),
    ...(audit && config.audit.required && { audit: audit.checkIsWritable }),
  };
  return createHealthEndpoints(readiness, isShuttingDown);
}

/** Reloads one file after another: a file whose rules take a long time to compile must not replace a later one. */
function createReload(config: Config, { setup }: Ports, features: Opened) {
  let reloading: Promise<void> = Promise.resolve();

  async function load(next: Setup): Promise<void> {
    const commits: (() => void | Promise<void>)[] = [];
    for (const feature of features) {
      const commit = await feature.prepare?.(next);
      // Parts that depend on others are closed first, as on shutdown.
      if (commit !== undefined) commits.unshift(commit);
    }
    for (const commit of commits) await commit();
  }

  return async function reload(next: Setup): Promise<void> {
    if (setup === undefined) throw new Error('This gateway was made without a file.');
    checkFile(next.file, config);
    const loading = reloading.then(() => load(next));
    reloading = loading.catch(() => {});
    return loading;
  };
}

/** @throws ConfigError with everything that the file requires but the settings lack. */
function checkFile(file: GatewayFile, config: Config): void {
  const problems = [
    ...findMachineClientProblems(file.clients, config),
    ...findAskProblems(file, config),
  ];
  if (problems.length > 0) throw new ConfigError(problems.map(formatProblem));
}

// The HTTP servers, and everything that a request passes before and after its endpoint.

/** `METRICS_PORT` has no pages. */
const NO_SITE: Site = {
  findPage: () => undefined,
  getNotFoundPage: () => undefined,
  getFrontPage: () => undefined,
};

export function createTransport(
  runtime: Runtime,
  endpoints: readonly Endpoint[],
  checks: CallerChecks,
  corsHeaders: CorsHeaderNames,
): HttpServer {
  const { server, site: settings, admin } = runtime.config;
  const { logo } = settings;
  return createHttpServer(runtime, {
    endpoints,
    checks,
    corsHeaders,
    site: createSite(runtime, {
      baseUrl: server.baseUrl,
      logoOrigin: logo && 'url' in logo ? new URL(logo.url).origin : undefined,
      hasOperatorsPage: admin.groups.length > 0,
    }),
  });
}
