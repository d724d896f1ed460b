import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client';
import {
  createAuditInstruments,
  createAuthInstruments,
  createHttpInstruments,
  createLimitInstruments,
  createMcpInstruments,
  createStoreInstruments,
  createUpstreamInstruments,
  type InstrumentMakers,
  type OpenMetricsRegistry,
} from './instruments.ts';
import type { Metrics } from './metrics.ts';

/** Servers behind the gateway name their tools as they like, and anew at any time. */
const MAX_TOOLS = 1000;

/** §4.11 over prom-client: one registry per gateway. */
export function createPrometheusMetrics(): Metrics {
  const registry: OpenMetricsRegistry = new Registry();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  collectDefaultMetrics({ register: registry });
  const makers = createMakers(registry);
  const http = createHttpInstruments(makers);
  const mcp = createMcpInstruments(makers);
  const auth = createAuthInstruments(makers);
  const store = createStoreInstruments(makers);
  const limits = createLimitInstruments(makers);
  const upstreams = createUpstreamInstruments(makers);
  const audit = createAuditInstruments(makers);
  const limitTool = createLimitValues(MAX_TOOLS);

  return {
    recordHttpRequest(method, route, statusCode, seconds) {
      const status = String(statusCode);
      http.requests(method, route, status).inc();
      http.durations(method, route, status).observe(seconds);
    },
    recordOverloadRefusal(route) {
      http.overloadRefusals(route).inc();
    },
    recordSessions(status, count = 1) {
      if (count > 0) mcp.sessions(status).inc(count);
    },
    recordMcpRequest(method, era) {
      mcp.requests(method, era).inc();
    },
    recordToolCall(name, status, era, seconds) {
      const tool = limitTool(name);
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
    recordUpstreamRequest(server, method, status, seconds) {
      upstreams.requests(server, method, status).inc();
      upstreams.durations(server, method).observe(seconds);
    },
    recordUpstreamState(server, isUp) {
      upstreams.up.set({ server }, isUp ? 1 : 0);
    },
    recordUpstreamProcesses(server, count) {
      upstreams.processes.set({ server }, count);
    },
    recordLockRefusal(server, kind, reason) {
      upstreams.lockRefusals(server, kind, reason).inc();
    },
    recordAuditLine(event, status) {
      audit.lines(event, status).inc();
    },
    removeUpstream(server) {
      upstreams.up.remove({ server });
      upstreams.processes.remove({ server });
    },
    renderOpenMetrics(activeSessions) {
      // When the store cannot be asked the gauge is left out: an old figure would be untrue.
      if (activeSessions === undefined) mcp.activeSessions.remove();
      else mcp.activeSessions.set(activeSessions);
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

// Instruments whose series are kept.

const createMakers = (registry: OpenMetricsRegistry): InstrumentMakers => ({
  counter(name, help, labels) {
    const counter = new Counter({ name, help, labelNames: labels, registers: [registry] });
    return cacheSeries((values) => counter.labels(...values));
  },
  histogram(name, help, labels, buckets) {
    const settings = { name, help, labelNames: labels, buckets, registers: [registry] };
    const histogram = new Histogram(settings);
    return cacheSeries((values) => histogram.labels(...values));
  },
  registry,
});

/**
 * Keeps each series by the values of its labels, so that a count costs a look-up for each label: no
 * hashing, and no key to be built.
 */
function cacheSeries<Series>(find: (values: readonly string[]) => Series) {
  const root: SeriesNode<Series> = { series: undefined, next: new Map() };
  return (...values: readonly string[]): Series => {
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
