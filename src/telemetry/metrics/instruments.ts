// §4.11: the counters and histograms, by what they are about.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export type OpenMetricsRegistry = Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>;

const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SHORT_DURATIONS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25];

export function createHttpInstruments(registry: OpenMetricsRegistry) {
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
    overloadRefusals: createCounter(
      registry,
      'http_overload_refusals_total',
      'Calls refused because more came than the process could serve.',
      ['route'],
    ),
  };
}

export function createMcpInstruments(registry: OpenMetricsRegistry) {
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

export const createAuthInstruments = (registry: OpenMetricsRegistry) => ({
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

export function createStoreInstruments(registry: OpenMetricsRegistry) {
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

export const createLimitInstruments = (registry: OpenMetricsRegistry) => ({
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

/** §18.8. */
export const createUpstreamInstruments = (registry: OpenMetricsRegistry) => ({
  requests: createCounter(
    registry,
    'upstream_requests_total',
    'Requests to a server behind the gateway.',
    ['server', 'method', 'status'],
  ),
  durations: createHistogram(
    registry,
    'upstream_request_duration_seconds',
    'Time of a request to a server behind the gateway, with what it asks meanwhile.',
    ['server', 'method'],
    DURATIONS,
  ),
  lockRefusals: createCounter(
    registry,
    'upstream_lock_refusals_total',
    'What the lock hid of a server behind the gateway, each time that it was listed.',
    ['server', 'kind', 'reason'],
  ),
  up: new Gauge({
    name: 'upstream_up',
    help: 'Whether a server behind the gateway could be reached when last tried.',
    labelNames: ['server'],
    registers: [registry],
  }),
  processes: new Gauge({
    name: 'upstream_processes',
    help: 'Processes of a server behind the gateway that is a program.',
    labelNames: ['server'],
    registers: [registry],
  }),
});

/** §21.1. */
export const createAuditInstruments = (registry: OpenMetricsRegistry) => ({
  lines: createCounter(
    registry,
    'audit_lines_total',
    'Lines of the audit log, and those that could not be written.',
    ['event', 'status'],
  ),
});

function createCounter<const Labels extends readonly string[]>(
  registry: OpenMetricsRegistry,
  name: string,
  help: string,
  labels: Labels,
) {
  const counter = new Counter({ name, help, labelNames: labels, registers: [registry] });
  return cacheSeries<Labels, Counter.Internal>((values) => counter.labels(...values));
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
  return cacheSeries<Labels, Histogram.Internal<string>>((values) => histogram.labels(...values));
}

/**
 * Keeps each series by the values of its labels, so that a count costs a look-up for each label: no
 * hashing, and no key to be built.
 */
function cacheSeries<Labels extends readonly string[], Series>(
  find: (values: readonly string[]) => Series,
) {
  const root: SeriesNode<Series> = { series: undefined, next: new Map() };
  return (...values: { readonly [Label in keyof Labels]: string }): Series => {
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

function addNode<Series>({ next }: SeriesNode<Series>, value: string): SeriesNode<Series> {
  const node: SeriesNode<Series> = { series: undefined, next: new Map() };
  next.set(value, node);
  return node;
}
