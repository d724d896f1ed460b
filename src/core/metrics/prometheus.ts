import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Metrics } from './metrics.ts';

type OpenMetricsRegistry = Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>;

/** Spec §4.11 over prom-client: one registry per gateway. */
export function createPrometheusMetrics(): Metrics {
  const registry: OpenMetricsRegistry = new Registry();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  collectDefaultMetrics({ register: registry });
  const http = createHttpMetrics(registry);
  const mcp = createMcpMetrics(registry);
  const auth = createAuthMetrics(registry);
  const store = createStoreMetrics(registry);
  const limits = createLimitMetrics(registry);

  return {
    recordHttpRequest(method, route, statusCode, seconds) {
      const status = String(statusCode);
      http.requests(method, route, status).inc();
      http.durations(method, route, status).observe(seconds);
    },
    recordSessions(status, count = 1) {
      if (count > 0) mcp.sessions(status).inc(count);
    },
    recordMcpRequest(method, era) {
      mcp.requests(method, era).inc();
    },
    recordToolCall(tool, status, era, seconds) {
      mcp.toolCalls(tool, status, era).inc();
      mcp.toolDurations(tool, status, era).observe(seconds);
    },
    recordAuthAttempt(result, seconds) {
      auth.attempts(result).inc();
      auth.durations().observe(seconds);
    },
    recordKeySetRefresh(status) {
      auth.keySetRefreshes(status).inc();
    },
    recordKeySetLookup(isFound) {
      (isFound ? auth.keySetHits : auth.keySetMisses)().inc();
    },
    recordStoreOperation(operation, status, seconds) {
      store.operations(operation, status).inc();
      store.durations(operation, status).observe(seconds);
    },
    recordRateLimitCheck(endpoint, isLimited) {
      limits.checks(endpoint, String(isLimited)).inc();
    },
    recordRateLimitHit(endpoint, scope) {
      limits.hits(endpoint, scope).inc();
    },
    recordDroppedReplicaMessage(reason) {
      mcp.droppedReplicaMessages(reason).inc();
    },
    renderOpenMetrics(activeSessions) {
      // When the store cannot be asked the gauge is left out: an old figure would be untrue.
      if (activeSessions === undefined) mcp.activeSessions.remove();
      else mcp.activeSessions.set(activeSessions);
      return registry.metrics();
    },
  };
}

const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SHORT_DURATIONS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25];

function createHttpMetrics(registry: OpenMetricsRegistry) {
  const labels = ['method', 'route', 'status_code'] as const;
  return {
    requests: createCounter(registry, 'http_requests_total', 'Requests answered.', labels),
    durations: createHistogram(
      registry,
      'http_request_duration_seconds',
      'Time from a request to its reply.',
      labels,
      DURATIONS,
    ),
  };
}

function createMcpMetrics(registry: OpenMetricsRegistry) {
  const toolLabels = ['tool', 'status', 'era'] as const;
  return {
    activeSessions: new Gauge({
      name: 'mcp_sessions_active',
      help: 'Live sessions in the store, the same on every replica.',
      registers: [registry],
    }),
    sessions: createCounter(
      registry,
      'mcp_sessions_total',
      'Sessions created, terminated, expired.',
      ['status'],
    ),
    requests: createCounter(
      registry,
      'mcp_requests_total',
      'JSON-RPC requests, by the era of the protocol.',
      ['method', 'era'],
    ),
    toolCalls: createCounter(registry, 'mcp_tool_invocations_total', 'Tool calls.', toolLabels),
    toolDurations: createHistogram(
      registry,
      'mcp_tool_duration_seconds',
      'Time of a tool call.',
      toolLabels,
      DURATIONS,
    ),
    droppedReplicaMessages: createCounter(
      registry,
      'mcp_replica_messages_dropped_total',
      'Messages on the channel of the replicas that no replica sent just now.',
      ['reason'],
    ),
  };
}

const createAuthMetrics = (registry: OpenMetricsRegistry) => ({
  attempts: createCounter(registry, 'auth_attempts_total', 'Bearer token checks.', ['result']),
  durations: createHistogram(
    registry,
    'auth_token_validation_duration_seconds',
    'Time of a bearer token check.',
    [],
    SHORT_DURATIONS,
  ),
  keySetRefreshes: createCounter(
    registry,
    'jwks_refresh_total',
    "Fetches of the provider's key set.",
    ['status'],
  ),
  keySetHits: createCounter(registry, 'jwks_cache_hits_total', 'Look-ups that found a key.', []),
  keySetMisses: createCounter(registry, 'jwks_cache_misses_total', 'Look-ups that found none.', []),
});

function createStoreMetrics(registry: OpenMetricsRegistry) {
  const labels = ['operation', 'status'] as const;
  return {
    operations: createCounter(
      registry,
      'redis_operations_total',
      'Operations of the shared store.',
      labels,
    ),
    durations: createHistogram(
      registry,
      'redis_operation_duration_seconds',
      'Time of an operation of the shared store.',
      labels,
      SHORT_DURATIONS,
    ),
  };
}

const createLimitMetrics = (registry: OpenMetricsRegistry) => ({
  hits: createCounter(registry, 'rate_limit_hits_total', 'Requests refused by a rate limit.', [
    'endpoint',
    'scope',
  ]),
  checks: createCounter(
    registry,
    'http_request_rate_limit_requests_total',
    'Requests that a rate limit looked at.',
    ['endpoint', 'limited'],
  ),
});

function createCounter<const Labels extends readonly string[]>(
  registry: OpenMetricsRegistry,
  name: string,
  help: string,
  labels: Labels,
) {
  const counter = new Counter({ name, help, labelNames: labels, registers: [registry] });
  return findSeriesOnce<Labels, Counter.Internal>((values) => counter.labels(...values));
}

function createHistogram<const Labels extends readonly string[]>(
  registry: OpenMetricsRegistry,
  name: string,
  help: string,
  labels: Labels,
  buckets: number[],
) {
  const settings = { name, help, labelNames: labels, buckets, registers: [registry] };
  const histogram = new Histogram(settings);
  return findSeriesOnce<Labels, Histogram.Internal<string>>((values) =>
    histogram.labels(...values),
  );
}

/** Keeps each series by the values of its labels, so that a count costs a look-up and no hashing. */
function findSeriesOnce<Labels extends readonly string[], Series>(
  find: (values: readonly string[]) => Series,
) {
  const seriesByValues = new Map<string, Series>();
  return (...values: { readonly [Label in keyof Labels]: string }): Series => {
    const key = values.join(' ');
    const known = seriesByValues.get(key);
    if (known !== undefined) return known;
    const series = find(values);
    seriesByValues.set(key, series);
    return series;
  };
}
