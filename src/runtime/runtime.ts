// Opens the runtime, the first argument of each factory: everything that all parts of a gateway need. It does not depend on MCP or
// OAuth, and is complete from the start.

import type { Config } from '../config/config.ts';
import { type Clock, pause, systemClock } from '../platform/clock.ts';
import { getErrorCode } from '../platform/error-code.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import { hashSha256 } from '../platform/ids.ts';
import { createLog, type Log } from '../platform/log.ts';
import { openOutboundNetwork } from '../platform/outbound/outbound-network.ts';
import { createPublicNetwork, type Network } from '../platform/outbound/public-network.ts';
import { buildNotificationKey } from '../store/keys.ts';
import { openStore } from '../store/open.ts';
import { claimOnce } from '../store/records.ts';
import type { Seal } from '../store/seal/seal.ts';
import { createLoginSeal, createReplicaSeal } from '../store/seal/secrets.ts';
import type { Store } from '../store/store.ts';
import type { Audit } from '../telemetry/audit/audit.ts';
import { openAudit } from '../telemetry/audit/open-audit.ts';
import { type Metrics, noMetrics } from '../telemetry/metrics/metrics.ts';
import { createNotifier, type Notifier } from '../telemetry/notify/notify.ts';
import { openTracing } from '../telemetry/tracing/open-tracing.ts';
import type { Tracing } from '../telemetry/tracing/tracing.ts';

/** Members are opened in this order. Closed in this order: outbound network, store, audit log, traces. */
export interface Runtime {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  /** Counts nothing with `METRICS_ENABLED=false`. */
  readonly metrics: Metrics;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
  /** Notifies operators. Sends nothing without `notify` in the configuration file. */
  readonly notifier: Notifier;
  /** Undefined without a collector. */
  readonly tracing: Tracing | undefined;
  /** Fetches URLs from the settings and the configuration file. */
  readonly fetch: Fetch;
  /** Reaches hosts that clients name. */
  readonly outbound: {
    /** True if any host can be reached; false in a test with its own network. */
    readonly isPublic: boolean;
    /** `maxLookups` limits concurrent DNS lookups; further lookups wait. */
    openPublicNetwork(maxLookups?: number): Network;
  };
  readonly store: Store;
  /** Seals records of logins in the store; undefined if there are no such records. */
  readonly loginSeal: Seal | undefined;
  /** Returns the seal that all replicas share. It may have to wait for the store, at first and from time to time. */
  readonly getSeal: () => Promise<Seal>;
}

export interface OpenRuntime extends Runtime {
  /** @throws Error that names the part that takes longer than 2 s. */
  close(): Promise<void>;
}

/** Parts that a test or a command provides; the others are opened according to the settings. */
export interface RuntimeParts {
  readonly clock: Clock;
  readonly log: Log;
  /** Ignored with `METRICS_ENABLED=false`. */
  readonly metrics: Metrics;
  readonly fetch: Fetch;
  /**
   * Replaces the public network, through which client ID metadata documents are fetched. Skips the check that they can be fetched.
   */
  readonly network: Network;
  /** The store to use; the runtime closes it. */
  readonly store: Store;
}

/**
 * Opens the runtime. Neither the provider nor Redis has to be reachable. `hasOwnTools`: there are tools that may create spans with
 * OpenTelemetry's API.
 *
 * @throws DataDirError if the folder of the embedded store, or the secret in it, cannot be used, or the folder is in use.
 * @throws TracingError if the packages of OpenTelemetry are needed and missing.
 * @throws AuditLogError if the file of `AUDIT_LOG` cannot be opened.
 */
export async function openRuntime(
  config: Config,
  overrides: Partial<RuntimeParts> = {},
  hasOwnTools = false,
): Promise<OpenRuntime> {
  const { logLevel, logFormat, metricsEnabled } = config.server;
  const clock = overrides.clock ?? systemClock;
  const log = overrides.log ?? createLog(logLevel, { format: logFormat });
  // Loaded on demand, like the store's driver.
  const loadMetrics = () => import('../telemetry/metrics/prometheus.ts');
  const metrics = metricsEnabled
    ? (overrides.metrics ?? (await loadMetrics()).createPrometheusMetrics())
    : noMetrics;
  const audit = openAudit(config, { clock, log, metrics });
  const tracing = await openTracing(config.tracing, { clock, log }, hasOwnTools);
  const network = openOutboundNetwork({ outbound: config.outbound });
  const fetch = overrides.fetch ?? network.fetch;
  const opened = overrides.store ?? (await openStore(config, { clock, log }));
  const store = observeStore(opened, clock, metricsEnabled ? metrics : undefined, tracing);

  const notifier = createNotifier({
    clock,
    log,
    fetch,
    claim: (subject, seconds) =>
      claimOnce(store, buildNotificationKey(hashSha256(subject)), seconds),
  });

  async function close() {
    network.close();
    try {
      await closeInTime('store', store.close(), clock);
    } finally {
      audit?.close();
      await closeInTime('exporter of traces', tracing?.close() ?? Promise.resolve(), clock);
    }
  }

  // If this fails, the store is closed, so that its folder can be used again at once.
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
    notifier,
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

/** §21.2: traces requests to the provider, according to OpenTelemetry's conventions for HTTP. The trace context is not sent. */
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
        // Leaves out the query, which may contain secrets.
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

/**
 * Timeout for closing the store, and for the exporter. Together with the drain, it is shorter than the grace period of containers.
 */
const CLOSE_MS = 2000;

async function closeInTime(part: string, closing: Promise<void>, clock: Clock) {
  const tooLate = pause(clock, CLOSE_MS).then(() => {
    throw new Error(`The ${part} did not close within ${CLOSE_MS / 1000} s`);
  });
  await Promise.race([closing, tooLate]);
}

/**
 * §4.11, §21.2: counts, times and traces each operation of a store, whatever the driver (`redis_operations_*`; spans according to
 * OpenTelemetry's conventions for databases, never with a key or a value). Only operations that a request waits for have spans.
 */
function observeStore(
  store: Store,
  clock: Clock,
  metrics: Metrics | undefined,
  tracing: Tracing | undefined,
): Store {
  if (metrics === undefined && tracing === undefined) return store;
  return wrapOperations(store, (label, run) => {
    const description = {
      name: `store ${label}`,
      kind: 'client',
      attributes: { 'db.system.name': store.databaseSystem, 'db.operation.name': label },
    } as const;

    return function operation(...args) {
      const span = tracing?.startChild(description);
      const startedAt = clock.monotonic();
      function end(status: 'success' | 'error') {
        metrics?.recordStoreOperation(label, status, (clock.monotonic() - startedAt) / 1000);
        span?.end();
      }
      const result = run(...args);
      // The promise is only observed: the caller gets the driver's own promise.
      if (result instanceof Promise)
        result.then(
          () => end('success'),
          (error: unknown) => {
            span?.fail(error instanceof Error ? error.name : '_OTHER');
            end('error');
          },
        );
      else end('success');
      return result;
    };
  });
}

/** A result that is not a promise is a success, since failures are rejections. */
type Wrap = <Args extends readonly unknown[], Result>(
  name: string,
  run: (...args: Args) => Result,
) => (...args: Args) => Result;

/** Operation names are part of the public interface, so they stay when a method is renamed. */
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
