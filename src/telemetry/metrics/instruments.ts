// §4.11: the counters and histograms, by what they are about.
import { type Counter, Gauge, type Histogram, type Registry } from 'prom-client';

export type OpenMetricsRegistry = Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>;

/** The series of an instrument that has these values of its labels. */
type FindSeries<Labels extends readonly string[], Series> = (
  ...values: { readonly [Label in keyof Labels]: string }
) => Series;

/** What instruments are made by. */
export interface InstrumentMakers {
  counter<const Labels extends readonly string[]>(
    name: string,
    help: string,
    labels: Labels,
  ): FindSeries<Labels, Counter.Internal>;
  histogram<const Labels extends readonly string[]>(
    name: string,
    help: string,
    labels: Labels,
    buckets: number[],
  ): FindSeries<Labels, Histogram.Internal<string>>;
  readonly registry: OpenMetricsRegistry;
}

const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SHORT_DURATIONS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25];

export function createHttpInstruments({ counter, histogram }: InstrumentMakers) {
  const labels = ['method', 'route', 'status_code'] as const;
  return {
    requests: counter('http_requests_total', 'Requests answered.', labels),
    durations: histogram(
      'http_request_duration_seconds',
      'Time from a request to its reply.',
      labels,
      DURATIONS,
    ),
    overloadRefusals: counter(
      'http_overload_refusals_total',
      'Calls refused because more came than the process could serve.',
      ['route'],
    ),
  };
}

export function createMcpInstruments({ counter, histogram, registry }: InstrumentMakers) {
  const toolLabels = ['tool', 'status', 'era'] as const;
  return {
    activeSessions: new Gauge({
      name: 'mcp_sessions_active',
      help: 'Live sessions in the store, the same on every replica.',
      registers: [registry],
    }),
    sessions: counter('mcp_sessions_total', 'Sessions created, terminated, expired.', ['status']),
    requests: counter('mcp_requests_total', 'JSON-RPC requests, by the era of the protocol.', [
      'method',
      'era',
    ]),
    toolCalls: counter('mcp_tool_invocations_total', 'Tool calls.', toolLabels),
    toolDurations: histogram(
      'mcp_tool_duration_seconds',
      'Time of a tool call.',
      toolLabels,
      DURATIONS,
    ),
    droppedReplicaMessages: counter(
      'mcp_replica_messages_dropped_total',
      'Messages on the channel of the replicas that no replica sent just now.',
      ['reason'],
    ),
  };
}

export const createAuthInstruments = ({ counter, histogram }: InstrumentMakers) => ({
  attempts: counter('auth_attempts_total', 'Bearer token checks.', ['result']),
  durations: histogram(
    'auth_token_validation_duration_seconds',
    'Time of a bearer token check.',
    [],
    SHORT_DURATIONS,
  ),
  keySetRefreshes: counter('jwks_refresh_total', "Fetches of the provider's key set.", ['status']),
  keySetHits: counter('jwks_cache_hits_total', 'Look-ups that found a key.', []),
  keySetMisses: counter('jwks_cache_misses_total', 'Look-ups that found none.', []),
});

export function createStoreInstruments({ counter, histogram }: InstrumentMakers) {
  const labels = ['operation', 'status'] as const;
  return {
    operations: counter('redis_operations_total', 'Operations of the shared store.', labels),
    durations: histogram(
      'redis_operation_duration_seconds',
      'Time of an operation of the shared store.',
      labels,
      SHORT_DURATIONS,
    ),
  };
}

export const createLimitInstruments = ({ counter }: InstrumentMakers) => ({
  hits: counter('rate_limit_hits_total', 'Requests refused by a rate limit.', [
    'endpoint',
    'scope',
  ]),
  checks: counter(
    'http_request_rate_limit_requests_total',
    'Requests that a rate limit looked at.',
    ['endpoint', 'limited'],
  ),
});

/** §18.8. */
export const createUpstreamInstruments = ({ counter, histogram, registry }: InstrumentMakers) => ({
  requests: counter('upstream_requests_total', 'Requests to a server behind the gateway.', [
    'server',
    'method',
    'status',
  ]),
  durations: histogram(
    'upstream_request_duration_seconds',
    'Time of a request to a server behind the gateway, with what it asks meanwhile.',
    ['server', 'method'],
    DURATIONS,
  ),
  lockRefusals: counter(
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
export const createAuditInstruments = ({ counter }: InstrumentMakers) => ({
  lines: counter(
    'audit_lines_total',
    'Lines of the audit log, and those that could not be written.',
    ['event', 'status'],
  ),
});
