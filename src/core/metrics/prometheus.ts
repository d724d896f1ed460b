import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Metrics } from './metrics.ts';

const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SHORT_DURATIONS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25];

/** Spec §4.11 over prom-client: one registry per gateway, series looked up once and kept. */
export function createPrometheusMetrics(): Metrics {
  const registry = new Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  collectDefaultMetrics({ register: registry as unknown as Registry });
  const registers = [registry as unknown as Registry];

  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]) => {
    const metric = new Counter({ name, help, labelNames, registers });
    return kept((labels: Record<Label, string>) => metric.labels(labels));
  };
  const histogram = <Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    buckets: number[],
  ) => {
    const metric = new Histogram({ name, help, labelNames, buckets, registers });
    return kept((labels: Record<Label, string>) => metric.labels(labels));
  };

  const requests = counter('http_requests_total', 'Requests answered.', [
    'method',
    'route',
    'status_code',
  ]);
  const requestDurations = histogram(
    'http_request_duration_seconds',
    'Time from a request to its reply.',
    ['method', 'route', 'status_code'],
    DURATIONS,
  );
  const active = new Gauge({
    name: 'mcp_sessions_active',
    help: 'Live sessions in the store, the same on every replica.',
    registers,
  });
  const sessions = counter('mcp_sessions_total', 'Sessions created, terminated, expired.', [
    'status',
  ]);
  const calls = counter('mcp_requests_total', 'JSON-RPC requests, by the era of the protocol.', [
    'method',
    'era',
  ]);
  const tools = counter('mcp_tool_invocations_total', 'Tool calls.', ['tool', 'status', 'era']);
  const toolDurations = histogram(
    'mcp_tool_duration_seconds',
    'Time of a tool call.',
    ['tool', 'status', 'era'],
    DURATIONS,
  );
  const attempts = counter('auth_attempts_total', 'Bearer token checks.', ['result']);
  const validations = new Histogram({
    name: 'auth_token_validation_duration_seconds',
    help: 'Time of a bearer token check.',
    buckets: SHORT_DURATIONS,
    registers,
  });
  const refreshes = counter('jwks_refresh_total', "Fetches of the provider's key set.", ['status']);
  const hits = new Counter({
    name: 'jwks_cache_hits_total',
    help: 'Look-ups that found a key.',
    registers,
  });
  const misses = new Counter({
    name: 'jwks_cache_misses_total',
    help: 'Look-ups that found none.',
    registers,
  });
  const operations = counter('redis_operations_total', 'Operations of the shared store.', [
    'operation',
    'status',
  ]);
  const operationDurations = histogram(
    'redis_operation_duration_seconds',
    'Time of an operation of the shared store.',
    ['operation', 'status'],
    SHORT_DURATIONS,
  );
  const limitHits = counter('rate_limit_hits_total', 'Requests refused by a rate limit.', [
    'endpoint',
    'scope',
  ]);
  const limited = counter(
    'http_request_rate_limit_requests_total',
    'Requests that a rate limit looked at.',
    ['endpoint', 'limited'],
  );
  const dropped = counter(
    'mcp_replica_messages_dropped_total',
    'Messages on the channel of the replicas that no replica sent just now.',
    ['reason'],
  );

  return {
    httpRequest(method, route, status, seconds) {
      const labels = { method, route, status_code: String(status) };
      requests(labels, method, route, labels.status_code).inc();
      requestDurations(labels, method, route, labels.status_code).observe(seconds);
    },
    session(status, count = 1) {
      if (count > 0) sessions({ status }, status).inc(count);
    },
    mcpRequest(method, era) {
      calls({ method, era }, method, era).inc();
    },
    toolInvocation(tool, status, era, seconds) {
      tools({ tool, status, era }, tool, status, era).inc();
      toolDurations({ tool, status, era }, tool, status, era).observe(seconds);
    },
    authAttempt(result, seconds) {
      attempts({ result }, result).inc();
      validations.observe(seconds);
    },
    keySetRefresh(status) {
      refreshes({ status }, status).inc();
    },
    keySetLookup(found) {
      (found ? hits : misses).inc();
    },
    storeOperation(operation, status, seconds) {
      operations({ operation, status }, operation, status).inc();
      operationDurations({ operation, status }, operation, status).observe(seconds);
    },
    rateLimitRequest(endpoint, refused) {
      const value = String(refused);
      limited({ endpoint, limited: value }, endpoint, value).inc();
    },
    rateLimitHit(endpoint, scope) {
      limitHits({ endpoint, scope }, endpoint, scope).inc();
    },
    replicaMessageDropped(reason) {
      dropped({ reason }, reason).inc();
    },
    exposition(activeSessions) {
      // When the store cannot be asked the gauge is left out: an old figure would be untrue.
      if (activeSessions === undefined) active.remove();
      else active.set(activeSessions);
      return registry.metrics();
    },
  };
}

/** Keeps a labelled series by its label values, so that a count costs a look-up and no hashing. */
function kept<Labels, Series>(find: (labels: Labels) => Series) {
  const series = new Map<string, Series>();
  return (labels: Labels, ...values: string[]): Series => {
    const key = values.join(' ');
    const known = series.get(key);
    if (known !== undefined) return known;
    const found = find(labels);
    series.set(key, found);
    return found;
  };
}
