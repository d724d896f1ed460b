// §21.2: implements tracing with OpenTelemetry's API and SDK. Loaded only if a collector is configured.
import { randomUUID } from 'node:crypto';
import {
  type Span as ApiSpan,
  context,
  createTraceState,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { CollectorConfig } from '../../config/groups/telemetry.ts';
import { pause, systemClock } from '../../platform/clock.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../../platform/own-files.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { RequestTrace, Span, TraceContext, Tracing } from './tracing.ts';

const KINDS = { client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const;

export async function createOpenTelemetry(
  config: CollectorConfig,
  watch: ClockAndLog,
  hasOwnTools: boolean,
): Promise<Tracing> {
  const { provider, close } = await createProvider(config, watch);
  // Global, so that spans which tools create with the API have parents, and are exported. The first one in a process stays.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const isGlobal = trace.setGlobalTracerProvider(provider);
  const tracer = provider.getTracer(PACKAGE_NAME, PACKAGE_VERSION);

  /** True once a request has had a context. */
  let hasContexts = false;

  // A request that is not recorded only needs a context for spans of tools, which are not recorded, either: on Node.js 20, the
  // first context makes every promise of the process more expensive.
  function runBelow<Result>(span: ApiSpan, work: () => Result) {
    if (!(span.isRecording() || hasOwnTools)) return work();
    hasContexts = true;
    return context.with(trace.setSpan(ROOT_CONTEXT, span), work);
  }

  return {
    startRequest: (parent) => createRequest(tracer, runBelow, parent),
    getActiveSpan() {
      const span = trace.getActiveSpan();
      return span?.isRecording() === true ? toSpan(span) : undefined;
    },
    startChild({ name, kind, attributes }) {
      if (trace.getActiveSpan()?.isRecording() !== true) return undefined;
      return toSpan(tracer.startSpan(name, { kind: KINDS[kind], attributes }));
    },
    bind: (work) => (hasContexts ? context.bind(context.active(), work) : work),
    async close() {
      if (isGlobal) trace.disable();
      await close();
    },
  };
}

function createRequest(
  tracer: Tracer,
  runBelow: <Result>(span: ApiSpan, work: () => Result) => Result,
  fromHeaders: TraceContext,
): RequestTrace {
  const startTime = systemClock.monotonic();
  let parent = readParent(fromHeaders);
  let apiSpan: ApiSpan | undefined;
  let chosenName: string | undefined;

  function getApiSpan() {
    apiSpan ??= tracer.startSpan('request', { kind: SpanKind.SERVER, startTime }, parent);
    return apiSpan;
  }

  return {
    offerParent(offered) {
      if (parent === ROOT_CONTEXT) parent = readParent(offered);
    },
    run: (work) => runBelow(getApiSpan(), work),
    getContext: () => renderTraceContext(getApiSpan()),
    getSpan() {
      const made = getApiSpan();
      return made.isRecording() ? toSpan(made) : undefined;
    },
    setName(name) {
      chosenName = name;
    },
    end(name) {
      getApiSpan()
        .updateName(chosenName ?? name)
        .end(systemClock.monotonic());
    },
  };
}

const toSpan = (span: ApiSpan): Span => ({
  getContext: () => renderTraceContext(span),
  run: (work) => context.with(trace.setSpan(context.active(), span), work),
  setAttributes(attributes) {
    span.setAttributes(attributes);
  },
  link(other) {
    const linked = trace.getSpanContext(readParent(other));
    // A request may read a context that it wrote itself.
    if (linked?.spanId === span.spanContext().spanId) return;
    if (linked === undefined || getLinks(span).has(linked.spanId)) return;
    getLinks(span).add(linked.spanId);
    span.addLink({ context: linked });
  },
  fail(type, message) {
    span.setAttributes({ 'error.type': type });
    span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) });
  },
  // On the same clock as its start.
  end: () => span.end(systemClock.monotonic()),
});

/** IDs of the spans that each span links to. */
const links = new WeakMap<ApiSpan, Set<string>>();

function getLinks(span: ApiSpan) {
  const known = links.get(span) ?? new Set();
  links.set(span, known);
  return known;
}

function readParent({ traceparent, tracestate }: TraceContext) {
  if (traceparent === undefined) return ROOT_CONTEXT;
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-');
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & 1,
    isRemote: true,
    ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
  });
}

function renderTraceContext(span: ApiSpan): TraceContext {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  const traceparent = `00-${traceId}-${spanId}-0${traceFlags & 1}`;
  const tracestate = traceState?.serialize();
  return tracestate ? { traceparent, tracestate } : { traceparent };
}

// §21.2: exports spans to the collector in batches, by OTLP over HTTP.

/** Milliseconds that the shutdown waits for the collector. */
const CLOSE_MS = 2000;

async function createProvider(config: CollectorConfig, watch: ClockAndLog) {
  const { OTLPTraceExporter } =
    config.protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  const { url, headers } = config;
  const exporter = watchExporter(new OTLPTraceExporter({ url, headers }), config, watch);
  const { ratio, followsCaller } = config.sampler;
  const root = new TraceIdRatioBasedSampler(ratio);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.version': PACKAGE_VERSION,
      'service.instance.id': randomUUID(),
      ...config.resourceAttributes,
      'service.name': config.serviceName,
    }),
    sampler: followsCaller ? new ParentBasedSampler({ root }) : root,
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  return {
    provider,
    async close() {
      const ended = provider.shutdown().catch(() => {});
      await Promise.race([ended, pause(watch.clock, CLOSE_MS)]);
    },
  };
}

/** The SDK itself does not report lost spans. */
function watchExporter(
  exporter: SpanExporter,
  { url }: CollectorConfig,
  { clock, log }: ClockAndLog,
): SpanExporter {
  const warn = createWarnThrottle(clock, (cause: unknown) =>
    log.warn(
      'The collector does not take traces, and they are lost. Check OTEL_EXPORTER_OTLP_ENDPOINT, and that it speaks OTLP over HTTP.',
      { collector: url, cause },
    ),
  );
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.code !== 0) warn(result.error);
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}
