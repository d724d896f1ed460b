// The first argument of each factory: all that every part of a gateway needs. Nothing in it knows MCP or OAuth, and all of it is
// there from the start.

import type { Config } from '../config/config.ts';
import { type Clock, pause, systemClock } from '../platform/clock.ts';
import { getErrorCode } from '../platform/error-code.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import { createLog, type Log } from '../platform/log.ts';
import { openOutboundNetwork } from '../platform/outbound/outbound-network.ts';
import { createPublicNetwork, type Network } from '../platform/outbound/public-network.ts';
import { openStore } from '../store/open.ts';
import type { Seal } from '../store/seal/seal.ts';
import { createLoginSeal, createReplicaSeal } from '../store/seal/secrets.ts';
import type { Store } from '../store/store.ts';
import type { Audit } from '../telemetry/audit/audit.ts';
import { openAudit } from '../telemetry/audit/open-audit.ts';
import { type Metrics, noMetrics } from '../telemetry/metrics/metrics.ts';
import { openTracing } from '../telemetry/tracing/open-tracing.ts';
import type { Tracing } from '../telemetry/tracing/tracing.ts';

/** Opened in the order of its members. Closed: the ways out, the store, then the audit log and the traces, which hear of all before. */
export interface Runtime {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  /** Counts nothing with `METRICS_ENABLED=false`. */
  readonly metrics: Metrics;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
  /** Undefined where nothing is traced. */
  readonly tracing: Tracing | undefined;
  /** For what the settings and the configuration file name. */
  readonly fetch: Fetch;
  /** For hosts that others name. */
  readonly outbound: {
    /** Anybody's hosts can be reached; not so in a test that brings a network of its own. */
    readonly isPublic: boolean;
    /** `maxLookups` names are looked up at once; more of them wait. */
    openPublicNetwork(maxLookups?: number): Network;
  };
  readonly store: Store;
  /** For what a login leaves in the store; undefined where it leaves nothing. */
  readonly loginSeal: Seal | undefined;
  /** The seal of all replicas. May wait for the store, the first time and now and then. */
  readonly getSeal: () => Promise<Seal>;
}

export interface OpenRuntime extends Runtime {
  /** @throws Error with the name of the part that takes longer than 2 s. */
  close(): Promise<void>;
}

/** The parts that a test or a command brings with it; all else is opened as the settings say. */
export interface RuntimeParts {
  readonly clock: Clock;
  readonly log: Log;
  /** What is counted; nothing is with `METRICS_ENABLED=false`. */
  readonly metrics: Metrics;
  readonly fetch: Fetch;
  /** In place of the public network: by which client ID metadata documents are fetched; that they can be is not checked then. */
  readonly network: Network;
  /** The runtime closes it. */
  readonly store: Store;
}

/**
 * Neither the provider nor Redis has to be reachable. `hasOwnTools` where there are tools that may make spans by OpenTelemetry's API.
 *
 * @throws DataDirError when the folder of the embedded store, or the secret in it, cannot be used, or the folder is in use.
 * @throws TracingError when the packages of OpenTelemetry are needed and missing.
 * @throws AuditLogError when the file of `AUDIT_LOG` cannot be opened.
 */
export async function openRuntime(
  config: Config,
  overrides: Partial<RuntimeParts> = {},
  hasOwnTools = false,
): Promise<OpenRuntime> {
  const { logLevel, logFormat, metricsEnabled } = config.server;
  const clock = overrides.clock ?? systemClock;
  const log = overrides.log ?? createLog(logLevel, { format: logFormat });
  // Loaded where it is used, as the store's driver is.
  const loadMetrics = () => import('../telemetry/metrics/prometheus.ts');
  const metrics = metricsEnabled
    ? (overrides.metrics ?? (await loadMetrics()).createPrometheusMetrics())
    : noMetrics;
  const audit = openAudit(config, { clock, log, metrics });
  const tracing = await openTracing(config.tracing, { clock, log }, hasOwnTools);
  const network = openOutboundNetwork({ outbound: config.outbound });
  const fetch = overrides.fetch ?? network.fetch;
  const opened = overrides.store ?? (await openStore(config, { clock, log }));
  const measured = metricsEnabled ? instrumentStore(opened, metrics, clock) : opened;
  const store = tracing === undefined ? measured : traceStore(measured, tracing);

  async function close() {
    network.close();
    try {
      await closeInTime('store', store.close(), clock);
    } finally {
      audit?.close();
      await closeInTime('exporter of traces', tracing?.close() ?? Promise.resolve(), clock);
    }
  }

  // Its folder can be used again at once.
  const loginSeal = await createLoginSeal(config.oauth.stateSecret).catch(
    async (error: unknown) => {
      await close().catch(() => {});
      throw error;
    },
  );
  return {
    config,
    clock,
    log,
    metrics,
    audit,
    tracing,
    fetch: tracing === undefined ? fetch : traceFetch(fetch, tracing),
    outbound: {
      isPublic: overrides.network === undefined,
      openPublicNetwork: (maxLookups) =>
        overrides.network ??
        createPublicNetwork({
          clock,
          tunnel: network.openTunnel,
          ...(maxLookups && { maxLookups }),
        }),
    },
    store,
    loginSeal,
    getSeal: createReplicaSeal(config.mcp.sessions.keyPrefix, { store, clock }, loginSeal),
    close,
  };
}

/** §21.2: requests to the provider as spans, by OpenTelemetry's conventions for HTTP. The provider is told of no trace. */
const traceFetch = (fetch: Fetch, tracing: Tracing): Fetch =>
  async function tracedFetch(url, init) {
    const { protocol, hostname, port, origin, pathname } = new URL(url);
    const method = init.method ?? 'GET';
    const span = tracing.startChild({
      name: method,
      kind: 'client',
      attributes: {
        'http.request.method': method,
        'server.address': hostname,
        'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
        // Without the query, where secrets may stand.
        'url.full': `${origin}${pathname}`,
      },
    });
    if (span === undefined) return fetch(url, init);
    try {
      const response = await fetch(url, init);
      span.setAttributes({ 'http.response.status_code': response.status });
      if (response.status >= 400) span.fail(String(response.status));
      return response;
    } catch (error) {
      span.fail(getErrorCode(error) ?? (error instanceof Error ? error.name : '_OTHER'));
      throw error;
    } finally {
      span.end();
    }
  };

/** Milliseconds for the store, and for what is written last: with what is in flight less than the time that containers are given. */
const CLOSE_MS = 2000;

async function closeInTime(part: string, closing: Promise<void>, clock: Clock) {
  const tooLate = pause(clock, CLOSE_MS).then(() => {
    throw new Error(`The ${part} did not close within ${CLOSE_MS / 1000} s`);
  });
  await Promise.race([closing, tooLate]);
}

// Whoever watches the operations of a store, of any driver: metrics and traces.

/** §4.11: the same store, each operation counted and timed (`redis_operations_*`, whatever the driver). */
const instrumentStore = (store: Store, metrics: Metrics, clock: Clock) =>
  wrapOperations(
    store,
    (label, run) =>
      function operation(...args) {
        const started = clock.monotonic();
        const record = (status: 'success' | 'error') =>
          metrics.recordStoreOperation(label, status, (clock.monotonic() - started) / 1000);
        const result = run(...args);
        if (result instanceof Promise) {
          // Beside the caller, who gets the driver's own promise.
          result.then(
            () => record('success'),
            () => record('error'),
          );
        } else record('success');
        return result;
      },
  );

/**
 * §21.2: operations as spans, by OpenTelemetry's conventions for databases; never a key or a value. They are waits that a
 * request has of the store: what is done for no request is no span.
 */
const traceStore = (store: Store, tracing: Tracing) =>
  wrapOperations(store, (operation, run) => {
    const description = {
      name: `store ${operation}`,
      kind: 'client',
      attributes: { 'db.system.name': store.databaseSystem, 'db.operation.name': operation },
    } as const;

    return function tracedOperation(...args) {
      const span = tracing.startChild(description);
      const result = run(...args);
      if (span === undefined) return result;
      if (result instanceof Promise) {
        // Beside the caller, who gets the driver's own promise.
        result.then(span.end, (error: unknown) => {
          span.fail(error instanceof Error ? error.name : '_OTHER');
          span.end();
        });
      } else span.end();
      return result;
    };
  });

/** A result that is no promise was at hand, and is a success: what fails is a rejection. */
type Wrap = <Args extends readonly unknown[], Result>(
  name: string,
  run: (...args: Args) => Result,
) => (...args: Args) => Result;

/** The names are part of the interface, so they stay when an operation is renamed. */
function wrapOperations(store: Store, wrap: Wrap): Store {
  return {
    isShared: store.isShared,
    databaseSystem: store.databaseSystem,
    get: wrap('get', store.get),
    set: wrap('set', store.set),
    getOrSet: wrap('add', store.getOrSet),
    compareAndSet: wrap('compare_and_set', store.compareAndSet),
    compareAndDelete: wrap('compare_and_delete', store.compareAndDelete),
    getAndDelete: wrap('take', store.getAndDelete),
    delete: wrap('delete', store.delete),
    setListed: wrap('set_listed', store.setListed),
    replaceListed: wrap('replace_listed', store.replaceListed),
    deleteListed: wrap('delete_listed', store.deleteListed),
    readListed: wrap('read_listed', store.readListed),
    countListed: wrap('count_listed', store.countListed),
    addRecent: wrap('add_recent', store.addRecent),
    readRecent: wrap('read_recent', store.readRecent),
    reserveBytes: wrap('reserve_bytes', store.reserveBytes),
    releaseBytes: wrap('release_bytes', store.releaseBytes),
    admitRequest: wrap('admit', store.admitRequest),
    uncountRequest: wrap('withdraw', store.uncountRequest),
    createSession: wrap('create_session', store.createSession),
    setSessionLogLevel: wrap('set_session_log_level', store.setSessionLogLevel),
    endSession: wrap('end_session', store.endSession),
    claimExpiredSession: wrap('take_expired_session', store.claimExpiredSession),
    sweepSessions: wrap('sweep_sessions', store.sweepSessions),
    countSessions: wrap('count_sessions', store.countSessions),
    listSessions: wrap('list_sessions', store.listSessions),
    publish: wrap('publish', store.publish),
    subscribe: store.subscribe,
    ping: wrap('ping', store.ping),
    describe: wrap('describe', store.describe),
    close: store.close,
  };
}
