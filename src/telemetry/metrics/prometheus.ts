// §4.11: metrics over prom-client, with one registry per gateway.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Metrics } from './metrics.ts';

const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SHORT_DURATIONS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25];

/** Upstream servers may rename their tools at any time: the number of series must have a bound. */
const MAX_TOOLS = 1000;

export function createPrometheusMetrics(): Metrics {
  const registry: Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE> = new Registry();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  collectDefaultMetrics({ register: registry });
  const create = createFactories(registry);
  // In the order in which they are scraped.
  const http = createHttpMetrics(create);
  const { activeSessions: activeSessionsGauge, ...calls } = createCallMetrics(create);
  const logins = createLoginMetrics(create);
  const limits = createStoreMetrics(create);
  const { connections: connectionsGauge, ...upstreams } = createUpstreamMetrics(create);
  const recordAuditLine = create.counter(
    'audit_lines_total',
    'Lines of the audit log, and those that could not be written.',
    ['event', 'status'],
  );

  return {
    ...http,
    ...calls,
    ...logins,
    ...limits,
    ...upstreams,
    recordAuditLine,
    renderOpenMetrics({ activeSessions, connections }) {
      if (activeSessions === undefined) activeSessionsGauge.remove();
      else activeSessionsGauge.set(activeSessions);
      connectionsGauge.reset();
      for (const { server, state, count } of connections) {
        connectionsGauge.set({ server, state }, count);
      }
      return registry.metrics();
    },
  };
}

type Factories = ReturnType<typeof createFactories>;

function createFactories(registry: Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>) {
  const registers = [registry];

  /** Returns a function that finds a counter by the values of its labels. */
  function series(name: string, help: string, labels: readonly string[]) {
    const counter = new Counter({ name, help, labelNames: labels, registers });
    return cacheSeries<Counter.Internal>((values) => counter.labels(...values));
  }

  return {
    series,
    /** Returns a function that increments a counter. */
    counter<const Labels extends readonly string[]>(name: string, help: string, labels: Labels) {
      const find = series(name, help, labels);
      return (...values: Values<Labels>) => find(values).inc();
    },
    /** Returns a function that observes seconds. */
    histogram<const Labels extends readonly string[]>(
      name: string,
      help: string,
      labels: Labels,
      buckets: number[],
    ) {
      const histogram = new Histogram({ name, help, labelNames: labels, buckets, registers });
      const find = cacheSeries<Histogram.Internal<string>>((values) => histogram.labels(...values));
      return (seconds: number, ...values: Values<Labels>) => find(values).observe(seconds);
    },
    gauge: (name: string, help: string, labelNames: readonly string[]) =>
      new Gauge({ name, help, labelNames, registers }),
  };
}

function createHttpMetrics(create: Factories) {
  const countHttpRequest = create.counter('http_requests_total', 'Requests answered.', [
    'method',
    'route',
    'status_code',
  ]);
  const timeHttpRequest = create.histogram(
    'http_request_duration_seconds',
    'Time from a request to its reply.',
    ['method', 'route', 'status_code'],
    DURATIONS,
  );
  const recordOverloadRefusal = create.counter(
    'http_overload_refusals_total',
    'Calls refused because more came than the process could serve.',
    ['route'],
  );

  return {
    recordHttpRequest(method: string, route: string, statusCode: number, seconds: number) {
      const status = String(statusCode);
      countHttpRequest(method, route, status);
      timeHttpRequest(seconds, method, route, status);
    },
    recordOverloadRefusal,
  };
}

function createCallMetrics(create: Factories) {
  const activeSessions = create.gauge(
    'mcp_sessions_active',
    'Live sessions in the store, the same on every replica.',
    [],
  );
  const findSessions = create.series(
    'mcp_sessions_total',
    'Sessions created, terminated, expired.',
    ['status'],
  );
  const recordMcpRequest = create.counter(
    'mcp_requests_total',
    'JSON-RPC requests, by the era of the protocol and the view.',
    ['method', 'era', 'view'],
  );
  const countToolCall = create.counter('mcp_tool_invocations_total', 'Tool calls.', [
    'tool',
    'status',
    'era',
  ]);
  const timeToolCall = create.histogram(
    'mcp_tool_duration_seconds',
    'Time of a tool call.',
    ['tool', 'status', 'era'],
    DURATIONS,
  );
  const recordApproval = create.counter(
    'mcp_approvals_total',
    'Calls that somebody is asked about before they run, by how they are asked and what came of it.',
    ['ask', 'outcome'],
  );
  const recordDroppedReplicaMessage = create.counter(
    'mcp_replica_messages_dropped_total',
    'Messages on the channel of the replicas that no replica sent just now.',
    ['reason'],
  );
  /** The first tools by their names; further ones are counted as `other`. */
  const tools = new Set<string>();

  return {
    activeSessions,
    recordSessions(status: string, count = 1) {
      if (count > 0) findSessions([status]).inc(count);
    },
    recordMcpRequest,
    recordToolCall(name: string, status: string, era: string, seconds: number) {
      if (tools.size < MAX_TOOLS) tools.add(name);
      const tool = tools.has(name) ? name : 'other';
      countToolCall(tool, status, era);
      timeToolCall(seconds, tool, status, era);
    },
    recordApproval,
    recordDroppedReplicaMessage,
  };
}

function createLoginMetrics(create: Factories) {
  const recordGrant = create.counter('oauth_grants_total', 'Grants issued, refreshed, ended.', [
    'status',
  ]);
  const recordGrantRenewal = create.counter(
    'oauth_grant_renewals_total',
    'Questions to the provider whether a user still may.',
    ['status'],
  );
  const recordLogoutToken = create.counter(
    'oauth_logout_tokens_total',
    'Logout tokens of the provider.',
    ['status'],
  );
  const countAuthAttempt = create.counter('auth_attempts_total', 'Bearer token checks.', [
    'result',
  ]);
  const timeAuthAttempt = create.histogram(
    'auth_token_validation_duration_seconds',
    'Time of a bearer token check.',
    [],
    SHORT_DURATIONS,
  );
  const recordKeySetRefresh = create.counter(
    'jwks_refresh_total',
    "Fetches of the provider's key set.",
    ['status'],
  );
  const countKeySetHit = create.counter('jwks_cache_hits_total', 'Look-ups that found a key.', []);
  const countKeySetMiss = create.counter(
    'jwks_cache_misses_total',
    'Look-ups that found none.',
    [],
  );

  return {
    recordGrant,
    recordGrantRenewal,
    recordLogoutToken,
    recordAuthAttempt(result: string, seconds: number) {
      countAuthAttempt(result);
      timeAuthAttempt(seconds);
    },
    recordKeySetRefresh,
    recordKeySetLookup: (isFound: boolean) => (isFound ? countKeySetHit() : countKeySetMiss()),
  };
}

/** Metrics of the store, of rate limits and of guards. */
function createStoreMetrics(create: Factories) {
  const countStoreOperation = create.counter(
    'redis_operations_total',
    'Operations of the shared store.',
    ['operation', 'status'],
  );
  const timeStoreOperation = create.histogram(
    'redis_operation_duration_seconds',
    'Time of an operation of the shared store.',
    ['operation', 'status'],
    SHORT_DURATIONS,
  );
  const recordRateLimitHit = create.counter(
    'rate_limit_hits_total',
    'Requests refused by a rate limit.',
    ['endpoint', 'scope'],
  );
  const countRateLimitCheck = create.counter(
    'http_request_rate_limit_requests_total',
    'Requests that a rate limit looked at.',
    ['endpoint', 'limited'],
  );
  const countGuard = create.counter('guard_decisions_total', 'What guards said of messages.', [
    'guard',
    'on',
    'outcome',
  ]);
  const timeGuard = create.histogram(
    'guard_duration_seconds',
    'Time until a guard has said something of a message.',
    ['guard'],
    DURATIONS,
  );

  return {
    recordStoreOperation(operation: string, status: string, seconds: number) {
      countStoreOperation(operation, status);
      timeStoreOperation(seconds, operation, status);
    },
    recordRateLimitHit,
    recordRateLimitCheck: (endpoint: string, isLimited: boolean) =>
      countRateLimitCheck(endpoint, String(isLimited)),
    recordGuard(guard: string, on: string, outcome: string, seconds: number) {
      countGuard(guard, on, outcome);
      timeGuard(seconds, guard);
    },
  };
}

function createUpstreamMetrics(create: Factories) {
  const countUpstreamRequest = create.counter(
    'upstream_requests_total',
    'Requests to a server behind the gateway.',
    ['server', 'method', 'status'],
  );
  const timeUpstreamRequest = create.histogram(
    'upstream_request_duration_seconds',
    'Time of a request to a server behind the gateway, with what it asks meanwhile.',
    ['server', 'method'],
    DURATIONS,
  );
  const recordLockRefusal = create.counter(
    'upstream_lock_refusals_total',
    'What the lock hid of a server behind the gateway, each time that it was listed.',
    ['server', 'kind', 'reason'],
  );
  const recordUpstreamTokenRefresh = create.counter(
    'upstream_token_refreshes_total',
    "Renewals of users' connections to servers behind the gateway, by what the token endpoint said.",
    ['server', 'outcome'],
  );
  const connections = create.gauge(
    'upstream_connections',
    "Users' connections to servers behind the gateway in the store, the same on every replica.",
    ['server', 'state'],
  );
  const upGauge = create.gauge(
    'upstream_up',
    'Whether a server behind the gateway could be reached when last tried.',
    ['server'],
  );
  const processesGauge = create.gauge(
    'upstream_processes',
    'Processes of a server behind the gateway that is a program.',
    ['server'],
  );

  return {
    connections,
    recordUpstreamRequest(server: string, method: string, status: string, seconds: number) {
      countUpstreamRequest(server, method, status);
      timeUpstreamRequest(seconds, server, method);
    },
    recordLockRefusal,
    recordUpstreamTokenRefresh,
    recordUpstreamState: (server: string, isUp: boolean) => upGauge.set({ server }, isUp ? 1 : 0),
    recordUpstreamProcesses: (server: string, count: number) =>
      processesGauge.set({ server }, count),
    removeUpstream(server: string) {
      upGauge.remove({ server });
      processesGauge.remove({ server });
    },
  };
}

type Values<Labels extends readonly string[]> = { readonly [Label in keyof Labels]: string };

/**
 * Caches each series by the values of its labels, so that a count costs one lookup per label, without hashing and without
 * building a key.
 */
function cacheSeries<Series>(find: (values: readonly string[]) => Series) {
  const root: SeriesNode<Series> = { series: undefined, next: new Map() };
  return (values: readonly string[]) => {
    let node = root;
    for (const value of values) node = node.next.get(value) ?? addNode(node, value);
    node.series ??= find(values);
    return node.series;
  };
}

/** The series of the label values up to here, and the nodes of the next label. */
interface SeriesNode<Series> {
  series: Series | undefined;
  readonly next: Map<string, SeriesNode<Series>>;
}

function addNode<Series>({ next }: SeriesNode<Series>, value: string) {
  const node: SeriesNode<Series> = { series: undefined, next: new Map() };
  next.set(value, node);
  return node;
}
