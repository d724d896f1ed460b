// §4.11 over prom-client: one registry per gateway.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Metrics } from './metrics.ts';

const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SHORT_DURATIONS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25];

/** Servers behind the gateway name their tools as they like, and anew at any time. */
const MAX_TOOLS = 1000;

export function createPrometheusMetrics(): Metrics {
  const registry: Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE> = new Registry();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  collectDefaultMetrics({ register: registry });
  const registers = [registry];

  function createCounter<const Labels extends readonly string[]>(
    name: string,
    help: string,
    labels: Labels,
  ) {
    const counter = new Counter({ name, help, labelNames: labels, registers });
    return cacheSeries<Labels, Counter.Internal>((values) => counter.labels(...values));
  }

  function createHistogram<const Labels extends readonly string[]>(
    name: string,
    help: string,
    labels: Labels,
    buckets: number[],
  ) {
    const histogram = new Histogram({ name, help, labelNames: labels, buckets, registers });
    return cacheSeries<Labels, Histogram.Internal<string>>((values) => histogram.labels(...values));
  }

  const http = {
    requests: createCounter('http_requests_total', 'Requests answered.', [
      'method',
      'route',
      'status_code',
    ]),
    durations: createHistogram(
      'http_request_duration_seconds',
      'Time from a request to its reply.',
      ['method', 'route', 'status_code'],
      DURATIONS,
    ),
    overloadRefusals: createCounter(
      'http_overload_refusals_total',
      'Calls refused because more came than the process could serve.',
      ['route'],
    ),
  };
  const mcp = {
    activeSessions: new Gauge({
      name: 'mcp_sessions_active',
      help: 'Live sessions in the store, the same on every replica.',
      registers,
    }),
    sessions: createCounter('mcp_sessions_total', 'Sessions created, terminated, expired.', [
      'status',
    ]),
    requests: createCounter(
      'mcp_requests_total',
      'JSON-RPC requests, by the era of the protocol and the view.',
      ['method', 'era', 'view'],
    ),
    toolCalls: createCounter('mcp_tool_invocations_total', 'Tool calls.', [
      'tool',
      'status',
      'era',
    ]),
    toolDurations: createHistogram(
      'mcp_tool_duration_seconds',
      'Time of a tool call.',
      ['tool', 'status', 'era'],
      DURATIONS,
    ),
    approvals: createCounter(
      'mcp_approvals_total',
      'Calls that somebody is asked about before they run, by how they are asked and what came of it.',
      ['ask', 'outcome'],
    ),
    droppedReplicaMessages: createCounter(
      'mcp_replica_messages_dropped_total',
      'Messages on the channel of the replicas that no replica sent just now.',
      ['reason'],
    ),
  };
  const grants = {
    changes: createCounter('oauth_grants_total', 'Grants issued, refreshed, ended.', ['status']),
    renewals: createCounter(
      'oauth_grant_renewals_total',
      'Questions to the provider whether a user still may.',
      ['status'],
    ),
    logoutTokens: createCounter('oauth_logout_tokens_total', 'Logout tokens of the provider.', [
      'status',
    ]),
  };
  const auth = {
    attempts: createCounter('auth_attempts_total', 'Bearer token checks.', ['result']),
    durations: createHistogram(
      'auth_token_validation_duration_seconds',
      'Time of a bearer token check.',
      [],
      SHORT_DURATIONS,
    ),
    keySetRefreshes: createCounter('jwks_refresh_total', "Fetches of the provider's key set.", [
      'status',
    ]),
    keySetHits: createCounter('jwks_cache_hits_total', 'Look-ups that found a key.', []),
    keySetMisses: createCounter('jwks_cache_misses_total', 'Look-ups that found none.', []),
  };
  const store = {
    operations: createCounter('redis_operations_total', 'Operations of the shared store.', [
      'operation',
      'status',
    ]),
    durations: createHistogram(
      'redis_operation_duration_seconds',
      'Time of an operation of the shared store.',
      ['operation', 'status'],
      SHORT_DURATIONS,
    ),
  };
  const limits = {
    hits: createCounter('rate_limit_hits_total', 'Requests refused by a rate limit.', [
      'endpoint',
      'scope',
    ]),
    checks: createCounter(
      'http_request_rate_limit_requests_total',
      'Requests that a rate limit looked at.',
      ['endpoint', 'limited'],
    ),
  };
  const guards = {
    decisions: createCounter('guard_decisions_total', 'What guards said of messages.', [
      'guard',
      'on',
      'outcome',
    ]),
    durations: createHistogram(
      'guard_duration_seconds',
      'Time until a guard has said something of a message.',
      ['guard'],
      DURATIONS,
    ),
  };
  const upstreams = {
    requests: createCounter('upstream_requests_total', 'Requests to a server behind the gateway.', [
      'server',
      'method',
      'status',
    ]),
    durations: createHistogram(
      'upstream_request_duration_seconds',
      'Time of a request to a server behind the gateway, with what it asks meanwhile.',
      ['server', 'method'],
      DURATIONS,
    ),
    lockRefusals: createCounter(
      'upstream_lock_refusals_total',
      'What the lock hid of a server behind the gateway, each time that it was listed.',
      ['server', 'kind', 'reason'],
    ),
    tokenRefreshes: createCounter(
      'upstream_token_refreshes_total',
      "Renewals of users' connections to servers behind the gateway, by what the token endpoint said.",
      ['server', 'outcome'],
    ),
    connections: new Gauge({
      name: 'upstream_connections',
      help: "Users' connections to servers behind the gateway in the store, the same on every replica.",
      labelNames: ['server', 'state'],
      registers,
    }),
    up: new Gauge({
      name: 'upstream_up',
      help: 'Whether a server behind the gateway could be reached when last tried.',
      labelNames: ['server'],
      registers,
    }),
    processes: new Gauge({
      name: 'upstream_processes',
      help: 'Processes of a server behind the gateway that is a program.',
      labelNames: ['server'],
      registers,
    }),
  };
  const audit = {
    lines: createCounter(
      'audit_lines_total',
      'Lines of the audit log, and those that could not be written.',
      ['event', 'status'],
    ),
  };
  const limitTool = createLimitValues(MAX_TOOLS);

  return {
    recordHttpRequest(method, route, statusCode, seconds) {
      const status = String(statusCode);
      http.requests(method, route, status).inc();
      http.durations(method, route, status).observe(seconds);
    },
    recordOverloadRefusal: (route) => http.overloadRefusals(route).inc(),
    recordSessions(status, count = 1) {
      if (count > 0) mcp.sessions(status).inc(count);
    },
    recordMcpRequest: (method, era, view) => mcp.requests(method, era, view).inc(),
    recordToolCall(name, status, era, seconds) {
      const tool = limitTool(name);
      mcp.toolCalls(tool, status, era).inc();
      mcp.toolDurations(tool, status, era).observe(seconds);
    },
    recordGrant: (status) => grants.changes(status).inc(),
    recordGrantRenewal: (status) => grants.renewals(status).inc(),
    recordLogoutToken: (status) => grants.logoutTokens(status).inc(),
    recordAuthAttempt(result, seconds) {
      auth.attempts(result).inc();
      auth.durations().observe(seconds);
    },
    recordKeySetRefresh: (status) => auth.keySetRefreshes(status).inc(),
    recordKeySetLookup: (isFound) => (isFound ? auth.keySetHits : auth.keySetMisses)().inc(),
    recordStoreOperation(operation, status, seconds) {
      store.operations(operation, status).inc();
      store.durations(operation, status).observe(seconds);
    },
    recordRateLimitCheck: (endpoint, isLimited) => limits.checks(endpoint, String(isLimited)).inc(),
    recordRateLimitHit: (endpoint, scope) => limits.hits(endpoint, scope).inc(),
    recordDroppedReplicaMessage: (reason) => mcp.droppedReplicaMessages(reason).inc(),
    recordUpstreamRequest(server, method, status, seconds) {
      upstreams.requests(server, method, status).inc();
      upstreams.durations(server, method).observe(seconds);
    },
    recordUpstreamState: (server, isUp) => upstreams.up.set({ server }, isUp ? 1 : 0),
    recordUpstreamProcesses: (server, count) => upstreams.processes.set({ server }, count),
    recordLockRefusal: (server, kind, reason) => upstreams.lockRefusals(server, kind, reason).inc(),
    recordGuard(guard, on, outcome, seconds) {
      guards.decisions(guard, on, outcome).inc();
      guards.durations(guard).observe(seconds);
    },
    recordAuditLine: (event, status) => audit.lines(event, status).inc(),
    recordUpstreamTokenRefresh: (server, outcome) =>
      upstreams.tokenRefreshes(server, outcome).inc(),
    recordApproval: (ask, outcome) => mcp.approvals(ask, outcome).inc(),
    removeUpstream(server) {
      upstreams.up.remove({ server });
      upstreams.processes.remove({ server });
    },
    renderOpenMetrics({ activeSessions, connections }) {
      if (activeSessions === undefined) mcp.activeSessions.remove();
      else mcp.activeSessions.set(activeSessions);
      upstreams.connections.reset();
      for (const { server, state, count } of connections) {
        upstreams.connections.set({ server, state }, count);
      }
      return registry.metrics();
    },
  };
}

// §4.11: values of a label that somebody else chooses must not make series without end.

/** The first `max` values as they are, all further ones as `other`. */
function createLimitValues(max: number): (value: string) => string {
  const known = new Set<string>();

  return function limitValue(value) {
    if (known.has(value)) return value;
    if (known.size >= max) return 'other';
    known.add(value);
    return value;
  };
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
