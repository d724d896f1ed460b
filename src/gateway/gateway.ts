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
import { createOperatorEndpoints } from '../pages/admin.ts';
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

/** In place of what a gateway opens by itself; defaults are used for those left out. */
export interface Deps extends RuntimeParts {
  readonly keySet: KeySet;
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
  /** Patterns of such a file that match none of the entries that its servers have listed so far. */
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

/** In the order in which they open: each gives those after it what they need of it. */
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

/** What the list of features begins with. */
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
  const logo = await createLogo(config.site.logo, config.server.baseUrl);
  const runtime = await openRuntime(config, overrides, overrides.catalog !== undefined);
  const { ports, features } = await openFeatures(runtime, () => begin(runtime, overrides, logo));
  const { auth, limiter, noteRefusedToken, corsHeaders } = ports;
  const { clock, log } = runtime;
  /** `isUnused`: it cannot listen, so that there is nobody to serve on for. */
  const life = { isShuttingDown: false, isUnused: false };
  const endpoints = [
    ...features.flatMap((feature) => feature.endpoints ?? []),
    ...createServiceEndpoints(runtime, features, () => life.isShuttingDown),
    // §22: without operators there is no such page.
    ...(ports.operated && auth.describeKeySet
      ? createOperatorEndpoints(
          runtime,
          ports.findClientId,
          limiter,
          features.flatMap((feature) => feature.panels ?? []),
        )
      : []),
  ];
  const checks = { ...auth, limiter, noteRefusedToken };
  const server = createTransport(runtime, endpoints, checks, corsHeaders);
  for (const feature of features) feature.start?.();

  return {
    handler: server.handler,
    async listen() {
      life.isUnused = true;
      const { port } = await server.listen(config.server.port, config.server.host);
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
      server.startDraining();
      const { shutdownDelayMs } = config.server;
      if (shutdownDelayMs > 0 && !life.isUnused) await pause(clock, shutdownDelayMs);
      for (const feature of features) feature.stopWaiting?.();
      const graceMs = Math.max(MIN_GRACE_MS, shutdownDelayMs);
      await Promise.all([
        server.close(graceMs),
        ...features.map((feature) => feature.drain?.(graceMs)),
      ]);
      await closeAll([runtime, ...features]);
    },
  };
}

type Opened = readonly FeatureParts<Setup>[];
type Ports = Awaited<ReturnType<typeof FEATURES.open>>['ports'];

/** The folder of a store whose gateway does not open can be used again at once. */
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

/** §4.2, §4.3, §4.11. */
function createServiceEndpoints(
  { config, metrics, store, audit }: Runtime,
  features: Opened,
  isShuttingDown: () => boolean,
): readonly Endpoint[] {
  const readiness = {
    store: store.ping,
    ...Object.fromEntries(features.flatMap((feature) => Object.entries(feature.readiness ?? {}))),
    ...(audit && config.audit.required && { audit: audit.checkIsWritable }),
  };
  const gauges = features.flatMap((feature) => feature.gauges ?? []);
  return [
    ...createHealthEndpoints(readiness, isShuttingDown),
    ...(config.server.metricsEnabled ? createMetricsEndpoints(metrics, gauges) : []),
  ];
}

/** One after the other: a file whose rules take a long time to compile must not replace a later one. */
function createReload(config: Config, { setup }: Ports, features: Opened) {
  let reloading: Promise<void> = Promise.resolve();

  async function load(next: Setup): Promise<void> {
    const commits: (() => void | Promise<void>)[] = [];
    for (const feature of features) {
      const commit = await feature.prepare?.(next);
      // Whoever stands on others goes first, as at the end.
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

/** @throws ConfigError with all that the file needs and the settings lack. */
function checkFile(file: GatewayFile, config: Config): void {
  const problems = [
    ...findMachineClientProblems(file.clients, config),
    ...findAskProblems(file, config),
  ];
  if (problems.length > 0) throw new ConfigError(problems.map(formatProblem));
}

// The server, and all that a request meets before and after its endpoint.

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
