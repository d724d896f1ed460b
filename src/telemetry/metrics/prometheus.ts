// §4.11 over prom-client: one registry per gateway.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Metrics } from './metrics.ts';

const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SHORT_DURATIONS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25];

/** Servers behind the gateway name their tools as they like, and anew at any time: series must have an end. */
const MAX_TOOLS = 1000;

export function createPrometheusMetrics(): Metrics {
  const registry: Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE> = new Registry();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  collectDefaultMetrics({ register: registry });
  const registers = [registry];

  /** Finds a counter by the values of its labels. */
  function createSeries(name: string, help: string, labels: readonly string[]) {
    const counter = new Counter({ name, help, labelNames: labels, registers });
    return cacheSeries<Counter.Internal>((values) => counter.labels(...values));
  }

  /** Counts one more, by the values of its labels. */
  function createCounter<const Labels extends readonly string[]>(
    name: string,
    help: string,
    labels: Labels,
  ) {
    const find = createSeries(name, help, labels);
    return (...values: Values<Labels>) => find(values).inc();
  }

  /** Notes seconds, by the values of its labels. */
  function createHistogram<const Labels extends readonly string[]>(
    name: string,
    help: string,
    labels: Labels,
    buckets: number[],
  ) {
    const histogram = new Histogram({ name, help, labelNames: labels, buckets, registers });
    const find = cacheSeries<Histogram.Internal<string>>((values) => histogram.labels(...values));
    return (seconds: number, ...values: Values<Labels>) => find(values).observe(seconds);
  }

  const createGauge = (name: string, help: string, labelNames: readonly string[]) =>
    new Gauge({ name, help, labelNames, registers });

  // In the order in which they are scraped.
  const countHttpRequest = createCounter('http_requests_total', 'Requests answered.', [
    'method',
    'route',
    'status_code',
  ]);
  const timeHttpRequest = createHistogram(
    'http_request_duration_seconds',
    'Time from a request to its reply.',
    ['method', 'route', 'status_code'],
    DURATIONS,
  );
  const recordOverloadRefusal = createCounter(
    'http_overload_refusals_total',
    'Calls refused because more came than the process could serve.',
    ['route'],
  );
  const activeSessionsGauge = createGauge(
    'mcp_sessions_active',
    'Live sessions in the store, the same on every replica.',
    [],
  );
  const findSessions = createSeries(
    'mcp_sessions_total',
    'Sessions created, terminated, expired.',
    ['status'],
  );
  const recordMcpRequest = createCounter(
    'mcp_requests_total',
    'JSON-RPC requests, by the era of the protocol and the view.',
    ['method', 'era', 'view'],
  );
  const countToolCall = createCounter('mcp_tool_invocations_total', 'Tool calls.', [
    'tool',
    'status',
    'era',
  ]);
  const timeToolCall = createHistogram(
    'mcp_tool_duration_seconds',
    'Time of a tool call.',
    ['tool', 'status', 'era'],
    DURATIONS,
  );
  const recordApproval = createCounter(
    'mcp_approvals_total',
    'Calls that somebody is asked about before they run, by how they are asked and what came of it.',
    ['ask', 'outcome'],
  );
  const recordDroppedReplicaMessage = createCounter(
    'mcp_replica_messages_dropped_total',
    'Messages on the channel of the replicas that no replica sent just now.',
    ['reason'],
  );
  const recordGrant = createCounter('oauth_grants_total', 'Grants issued, refreshed, ended.', [
    'status',
  ]);
  const recordGrantRenewal = createCounter(
    'oauth_grant_renewals_total',
    'Questions to the provider whether a user still may.',
    ['status'],
  );
  const recordLogoutToken = createCounter(
    'oauth_logout_tokens_total',
    'Logout tokens of the provider.',
    ['status'],
  );
  const countAuthAttempt = createCounter('auth_attempts_total', 'Bearer token checks.', ['result']);
  const timeAuthAttempt = createHistogram(
    'auth_token_validation_duration_seconds',
    'Time of a bearer token check.',
    [],
    SHORT_DURATIONS,
  );
  const recordKeySetRefresh = createCounter(
    'jwks_refresh_total',
    "Fetches of the provider's key set.",
    ['status'],
  );
  const countKeySetHit = createCounter('jwks_cache_hits_total', 'Look-ups that found a key.', []);
  const countKeySetMiss = createCounter('jwks_cache_misses_total', 'Look-ups that found none.', []);
  const countStoreOperation = createCounter(
    'redis_operations_total',
    'Operations of the shared store.',
    ['operation', 'status'],
  );
  const timeStoreOperation = createHistogram(
    'redis_operation_duration_seconds',
    'Time of an operation of the shared store.',
    ['operation', 'status'],
    SHORT_DURATIONS,
  );
  const recordRateLimitHit = createCounter(
    'rate_limit_hits_total',
    'Requests refused by a rate limit.',
    ['endpoint', 'scope'],
  );
  const countRateLimitCheck = createCounter(
    'http_request_rate_limit_requests_total',
    'Requests that a rate limit looked at.',
    ['endpoint', 'limited'],
  );
  const countGuard = createCounter('guard_decisions_total', 'What guards said of messages.', [
    'guard',
    'on',
    'outcome',
  ]);
  const timeGuard = createHistogram(
    'guard_duration_seconds',
    'Time until a guard has said something of a message.',
    ['guard'],
    DURATIONS,
  );
  const countUpstreamRequest = createCounter(
    'upstream_requests_total',
    'Requests to a server behind the gateway.',
    ['server', 'method', 'status'],
  );
  const timeUpstreamRequest = createHistogram(
    'upstream_request_duration_seconds',
    'Time of a request to a server behind the gateway, with what it asks meanwhile.',
    ['server', 'method'],
    DURATIONS,
  );
  const recordLockRefusal = createCounter(
    'upstream_lock_refusals_total',
    'What the lock hid of a server behind the gateway, each time that it was listed.',
    ['server', 'kind', 'reason'],
  );
  const recordUpstreamTokenRefresh = createCounter(
    'upstream_token_refreshes_total',
    "Renewals of users' connections to servers behind the gateway, by what the token endpoint said.",
    ['server', 'outcome'],
  );
  const connectionsGauge = createGauge(
    'upstream_connections',
    "Users' connections to servers behind the gateway in the store, the same on every replica.",
    ['server', 'state'],
  );
  const upGauge = createGauge(
    'upstream_up',
    'Whether a server behind the gateway could be reached when last tried.',
    ['server'],
  );
  const processesGauge = createGauge(
    'upstream_processes',
    'Processes of a server behind the gateway that is a program.',
    ['server'],
  );
  const recordAuditLine = createCounter(
    'audit_lines_total',
    'Lines of the audit log, and those that could not be written.',
    ['event', 'status'],
  );

  /** The first tools by their names, all further ones as `other`. */
  const tools = new Set<string>();
  function limitTool(name: string) {
    if (tools.has(name)) return name;
    if (tools.size >= MAX_TOOLS) return 'other';
    tools.add(name);
    return name;
  }

  return {
    recordHttpRequest(method, route, statusCode, seconds) {
      const status = String(statusCode);
      countHttpRequest(method, route, status);
      timeHttpRequest(seconds, method, route, status);
    },
    recordOverloadRefusal,
    recordSessions(status, count = 1) {
      if (count > 0) findSessions([status]).inc(count);
    },
    recordMcpRequest,
    recordToolCall(name, status, era, seconds) {
      const tool = limitTool(name);
      countToolCall(tool, status, era);
      timeToolCall(seconds, tool, status, era);
    },
    recordGrant,
    recordGrantRenewal,
    recordLogoutToken,
    recordAuthAttempt(result, seconds) {
      countAuthAttempt(result);
      timeAuthAttempt(seconds);
    },
    recordKeySetRefresh,
    recordKeySetLookup: (isFound) => (isFound ? countKeySetHit() : countKeySetMiss()),
    recordStoreOperation(operation, status, seconds) {
      countStoreOperation(operation, status);
      timeStoreOperation(seconds, operation, status);
    },
    recordRateLimitCheck: (endpoint, isLimited) => countRateLimitCheck(endpoint, String(isLimited)),
    recordRateLimitHit,
    recordDroppedReplicaMessage,
    recordUpstreamRequest(server, method, status, seconds) {
      countUpstreamRequest(server, method, status);
      timeUpstreamRequest(seconds, server, method);
    },
    recordUpstreamState: (server, isUp) => upGauge.set({ server }, isUp ? 1 : 0),
    recordUpstreamProcesses: (server, count) => processesGauge.set({ server }, count),
    recordLockRefusal,
    recordGuard(guard, on, outcome, seconds) {
      countGuard(guard, on, outcome);
      timeGuard(seconds, guard);
    },
    recordAuditLine,
    recordUpstreamTokenRefresh,
    recordApproval,
    removeUpstream(server) {
      upGauge.remove({ server });
      processesGauge.remove({ server });
    },
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

type Values<Labels extends readonly string[]> = { readonly [Label in keyof Labels]: string };

/**
 * Keeps each series by the values of its labels, so that a count costs a look-up for each label: no
 * hashing, and no key to be built.
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

/** The series of the label values up to here, and the nodes behind each further one. */
interface SeriesNode<Series> {
  series: Series | undefined;
  readonly next: Map<string, SeriesNode<Series>>;
}

function addNode<Series>({ next }: SeriesNode<Series>, value: string) {
  const node: SeriesNode<Series> = { series: undefined, next: new Map() };
  next.set(value, node);
  return node;
}
