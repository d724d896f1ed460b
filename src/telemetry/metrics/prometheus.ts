// §4.11: metrics over prom-client, with one registry per gateway.
import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type Metric,
  Registry,
} from 'prom-client';
import type { Metrics } from './metrics.ts';

const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SHORT_DURATIONS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25];

/** Upstream servers may rename their tools at any time: the number of series must have a bound. */
const MAX_TOOLS = 1000;

export function createPrometheusMetrics(): Metrics {
  const registry = createRegistry();
  for (const metric of listProcessMetrics()) registry.registerMetric(metric);
  const create = createFactories(registry);
  // In the order they are scraped.
  const { activeSessions, waitingApprovals, ...calls } = createCallMetrics(create);
  const logins = createLoginMetrics(create);
  const limits = createStoreMetrics(create);
  const { connections, ...upstreams } = createUpstreamMetrics(create);
  const recordAuditLine = create.counter(
    'audit_lines_total',
    'Lines of the audit log, and those that could not be written.',
    ['event', 'status'],
  );

  return {
    ...calls,
    ...logins,
    ...limits,
    ...upstreams,
    recordAuditLine,
    renderOpenMetrics(stored) {
      setKnown(activeSessions, stored.activeSessions);
      setKnown(waitingApprovals, stored.waitingApprovals);
      connections.reset();
      for (const { server, state, count } of stored.connections) {
        connections.set({ server, state }, count);
      }
      return registry.metrics();
    },
  };
}

function setKnown(gauge: Gauge, count: number | undefined) {
  if (count === undefined) gauge.remove();
  else gauge.set(count);
}

type OpenMetricsRegistry = Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>;

function createRegistry(): OpenMetricsRegistry {
  const registry: OpenMetricsRegistry = new Registry();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  return registry;
}

let processMetrics: readonly Metric[] | undefined;

/** One set for all gateways of the process: prom-client never ends its timer and its observer of the garbage collector. */
function listProcessMetrics(): readonly Metric[] {
  if (processMetrics === undefined) {
    const own = createRegistry();
    collectDefaultMetrics({ register: own });
    processMetrics = own.getMetricsAsArray().flatMap(({ name }) => own.getSingleMetric(name) ?? []);
  }
  return processMetrics;
}

type Factories = ReturnType<typeof createFactories>;

/** Metrics of HTTP and of calls. */
function createCallMetrics({ counts, counter, times, gauge }: Factories) {
  const recordHttpRequest = countAndTime(
    counts('http_requests_total', 'Requests answered.', ['method', 'route', 'status_code']),
    times(
      'http_request_duration_seconds',
      'Time from a request to its reply.',
      ['method', 'route', 'status_code'],
      DURATIONS,
    ),
  );
  const recordOverloadRefusal = counter(
    'http_overload_refusals_total',
    'Calls refused because more arrived than the process could serve.',
    ['route'],
  );
  const activeSessions = gauge(
    'mcp_sessions_active',
    'Live sessions in the store, the same on every replica.',
  );
  const sessions = counts('mcp_sessions_total', 'Sessions created, terminated, expired.', [
    'status',
  ]);
  const recordMcpRequest = counter(
    'mcp_requests_total',
    'JSON-RPC requests, by the era of the protocol and the view.',
    ['method', 'era', 'view'],
  );
  const recordNamedToolCall = countAndTime(
    counts('mcp_tool_invocations_total', 'Tool calls.', ['tool', 'status', 'era']),
    times(
      'mcp_tool_duration_seconds',
      'Time of a tool call.',
      ['tool', 'status', 'era'],
      DURATIONS,
    ),
  );
  const recordApproval = counter(
    'mcp_approvals_total',
    'Calls that need approval before they run, by the kind of approval and its outcome.',
    ['ask', 'outcome'],
  );
  const waitingApprovals = gauge(
    'mcp_approvals_waiting',
    'Requests for approval that no operator has decided yet, the same on every replica.',
  );
  const recordDroppedReplicaMessage = counter(
    'mcp_replica_messages_dropped_total',
    "Messages on the replicas' channel that were dropped, because no replica sent them just now.",
    ['reason'],
  );
  /** The first tools by their names; further ones are counted as `other`. */
  const tools = new Set<string>();

  return {
    activeSessions,
    waitingApprovals,
    recordHttpRequest,
    recordOverloadRefusal,
    recordSessions(status: string, number = 1) {
      if (number > 0) sessions([status]).inc(number);
    },
    recordMcpRequest,
    recordToolCall(name: string, status: string, era: string, seconds: number) {
      if (tools.size < MAX_TOOLS) tools.add(name);
      recordNamedToolCall(tools.has(name) ? name : 'other', status, era, seconds);
    },
    recordApproval,
    recordDroppedReplicaMessage,
  };
}

function createLoginMetrics({ counts, counter, times }: Factories) {
  const recordGrant = counter('oauth_grants_total', 'Grants issued, refreshed, ended.', ['status']);
  const recordGrantRenewal = counter(
    'oauth_grant_renewals_total',
    'Checks with the provider whether a user may still log in.',
    ['status'],
  );
  const recordLogoutToken = counter('oauth_logout_tokens_total', 'Logout tokens of the provider.', [
    'status',
  ]);
  const recordAuthAttempt = countAndTime(
    counts('auth_attempts_total', 'Bearer token checks.', ['result']),
    times(
      'auth_token_validation_duration_seconds',
      'Time of a bearer token check.',
      [],
      SHORT_DURATIONS,
    ),
  );
  const recordKeySetRefresh = counter('jwks_refresh_total', "Fetches of the provider's key set.", [
    'status',
  ]);
  const countKeySetHit = counter('jwks_cache_hits_total', 'Look-ups that found a key.', []);
  const countKeySetMiss = counter('jwks_cache_misses_total', 'Look-ups that found none.', []);

  return {
    recordGrant,
    recordGrantRenewal,
    recordLogoutToken,
    recordAuthAttempt,
    recordKeySetRefresh,
    recordKeySetLookup: (isFound: boolean) => (isFound ? countKeySetHit() : countKeySetMiss()),
  };
}

/** Metrics of the store, of rate limits and of guards. */
function createStoreMetrics({ counts, counter, times }: Factories) {
  const recordStoreOperation = countAndTime(
    counts('redis_operations_total', 'Operations of the shared store.', ['operation', 'status']),
    times(
      'redis_operation_duration_seconds',
      'Time of an operation of the shared store.',
      ['operation', 'status'],
      SHORT_DURATIONS,
    ),
  );
  const recordRateLimitHit = counter('rate_limit_hits_total', 'Requests refused by a rate limit.', [
    'endpoint',
    'scope',
  ]);
  const recordRateLimitCheck = counter(
    'http_request_rate_limit_requests_total',
    'Requests that a rate limit checked.',
    ['endpoint', 'limited'],
  );
  const recordGuard = countAndTime(
    counts('guard_decisions_total', 'Verdicts of guards on messages.', ['guard', 'on', 'outcome']),
    times(
      'guard_duration_seconds',
      'Time until the verdict of a guard on a message.',
      ['guard'],
      DURATIONS,
    ),
  );

  return { recordStoreOperation, recordRateLimitHit, recordRateLimitCheck, recordGuard };
}

function createUpstreamMetrics({ counts, counter, times, gauge }: Factories) {
  const recordUpstreamRequest = countAndTime(
    counts('upstream_requests_total', 'Requests to a server behind the gateway.', [
      'server',
      'method',
      'status',
    ]),
    times(
      'upstream_request_duration_seconds',
      'Time of a request to a server behind the gateway, including the questions that it asks meanwhile.',
      ['server', 'method'],
      DURATIONS,
    ),
  );
  const recordLockRefusal = counter(
    'upstream_lock_refusals_total',
    'Entries of a server behind the gateway that the lock hid, each time that they were listed.',
    ['server', 'kind', 'reason'],
  );
  const recordUpstreamTokenRefresh = counter(
    'upstream_token_refreshes_total',
    "Renewals of users' connections to servers behind the gateway, by the response of the token endpoint.",
    ['server', 'outcome'],
  );
  const connections = gauge(
    'upstream_connections',
    "Users' connections to servers behind the gateway in the store, the same on every replica.",
    ['server', 'state'],
  );
  const up = gauge(
    'upstream_up',
    '1 if a server behind the gateway could be reached at the last attempt, else 0.',
    ['server'],
  );
  const processes = gauge(
    'upstream_processes',
    'Processes of a server behind the gateway that is a program.',
    ['server'],
  );

  return {
    connections,
    recordUpstreamRequest,
    recordLockRefusal,
    recordUpstreamTokenRefresh,
    recordUpstreamState: (server: string, isUp: boolean) => up.set({ server }, isUp ? 1 : 0),
    recordUpstreamProcesses: (server: string, number: number) => processes.set({ server }, number),
    removeUpstream(server: string) {
      up.remove({ server });
      processes.remove({ server });
    },
  };
}

type Label = string | number | boolean;

/** Finds a series by the values of its labels, which may be followed by others. */
type FindSeries<Series> = (values: readonly Label[]) => Series;

function createFactories(registry: OpenMetricsRegistry) {
  const registers = [registry];

  function counts(name: string, help: string, labelNames: readonly string[]) {
    const found = new Counter({ name, help, labelNames, registers });
    return cacheSeries(labelNames.length, (values) => found.labels(...values));
  }

  return {
    counts,
    /** Returns a function that increments a counter. */
    counter(name: string, help: string, labelNames: readonly string[]) {
      const find = counts(name, help, labelNames);
      return (...values: readonly Label[]) => find(values).inc();
    },
    times(name: string, help: string, labelNames: readonly string[], buckets: number[]) {
      const histogram = new Histogram({ name, help, labelNames, buckets, registers });
      return cacheSeries(labelNames.length, (values) => histogram.labels(...values));
    },
    gauge: (name: string, help: string, labelNames: readonly string[] = []) =>
      new Gauge({ name, help, labelNames, registers }),
  };
}

/** Returns a function that increments a counter and observes seconds, which come after the labels. */
const countAndTime =
  (findCounter: FindSeries<Counter.Internal>, findTimes: FindSeries<Histogram.Internal<string>>) =>
  (...values: readonly Label[]) => {
    findCounter(values).inc();
    findTimes(values).observe(Number(values.at(-1)));
  };

/**
 * Caches each series by the values of its labels, so that a count costs one lookup per label, without hashing and without
 * building a key.
 */
function cacheSeries<Series>(
  labels: number,
  create: (values: readonly string[]) => Series,
): FindSeries<Series> {
  const root: SeriesNode<Series> = { series: undefined, next: new Map() };
  return function findSeries(values) {
    let node = root;
    for (let at = 0; at < labels; at += 1) {
      const value = values[at] ?? '';
      node = node.next.get(value) ?? addNode(node, value);
    }
    node.series ??= create(values.slice(0, labels).map(String));
    return node.series;
  };
}

/** The series of the label values up to here, and the nodes of the next label. */
interface SeriesNode<Series> {
  series: Series | undefined;
  readonly next: Map<Label, SeriesNode<Series>>;
}

function addNode<Series>({ next }: SeriesNode<Series>, value: Label) {
  const node: SeriesNode<Series> = { series: undefined, next: new Map() };
  next.set(value, node);
  return node;
}
