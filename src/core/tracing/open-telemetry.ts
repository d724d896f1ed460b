// §21.2: spans by OpenTelemetry's own API and SDK. Loaded only where a collector is set.
import {
  type Span as ApiSpan,
  type Context,
  context,
  createContextKey,
  createTraceState,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { systemClock } from '../clock.ts';
import type { CollectorConfig } from '../config/groups/tracing.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../version.ts';
import { createProvider, type ProviderDeps } from './provider.ts';
import type { RequestTrace, Span, TraceParent, Tracing } from './tracing.ts';

const KINDS = { client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const;

/** A request, and the span that it gets once it is needed. */
interface TracedRequest extends RequestTrace {
  getApiSpan(): ApiSpan;
}

/** One storage for all: on Node.js 20 each costs time for every promise of the process. */
const REQUEST = createContextKey('postern.request');

/** A context says nothing of the types of its values. */
const REQUESTS = new WeakMap<object, TracedRequest>();

function getActiveRequest(): TracedRequest | undefined {
  const key = context.active().getValue(REQUEST);
  return typeof key === 'object' && key !== null ? REQUESTS.get(key) : undefined;
}

export async function createOpenTelemetry(
  config: CollectorConfig,
  deps: ProviderDeps,
): Promise<Tracing> {
  const { provider, close } = await createProvider(config, deps);
  // Global, so that spans which tools make by the API have their parents, and are sent. The first in a process stays.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const isGlobal = trace.setGlobalTracerProvider(provider);
  const tracer = provider.getTracer(PACKAGE_NAME, PACKAGE_VERSION);

  /** That of the request has to be made first. */
  const getActiveSpan = (): ApiSpan | undefined =>
    trace.getActiveSpan() ?? getActiveRequest()?.getApiSpan();

  return {
    traceRequest(parent, work) {
      const request = createRequest(tracer, parent);
      const key = {};
      REQUESTS.set(key, request);
      return context.with(ROOT_CONTEXT.setValue(REQUEST, key), () => work(request));
    },
    getRequest: getActiveRequest,
    startChild({ name, kind, attributes }) {
      const parent = getActiveSpan();
      if (parent?.isRecording() !== true) return undefined;
      const below = trace.setSpan(context.active(), parent);
      return toSpan(tracer.startSpan(name, { kind: KINDS[kind], attributes }, below));
    },
    bind: (work) => context.bind(context.active(), work),
    getTraceContext() {
      const span = getActiveSpan();
      return span === undefined ? {} : renderTraceContext(span);
    },
    async close() {
      if (isGlobal) trace.disable();
      await close();
    },
  };
}

function createRequest(tracer: Tracer, fromHeaders: TraceParent): TracedRequest {
  const startTime = systemClock.monotonic();
  let parent = readParent(fromHeaders);
  let apiSpan: ApiSpan | undefined;
  let span: Span | undefined;
  let chosenName: string | undefined;

  function getApiSpan(): ApiSpan {
    apiSpan ??= tracer.startSpan('request', { kind: SpanKind.SERVER, startTime }, parent);
    return apiSpan;
  }

  return {
    offerParent(offered) {
      if (parent === ROOT_CONTEXT) parent = readParent(offered);
    },
    getApiSpan,
    getSpan() {
      span ??= toSpan(getApiSpan());
      return span;
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
  get context() {
    return renderTraceContext(span);
  },
  run: (work) => context.with(trace.setSpan(context.active(), span), work),
  setAttributes(attributes) {
    span.setAttributes(attributes);
  },
  fail(type, message) {
    span.setAttributes({ 'error.type': type });
    span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) });
  },
  // By the same clock as its start.
  end: () => span.end(systemClock.monotonic()),
});

function readParent({ traceparent, tracestate }: TraceParent): Context {
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

function renderTraceContext(span: ApiSpan): TraceParent {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  const traceparent = `00-${traceId}-${spanId}-0${traceFlags & 1}`;
  const tracestate = traceState?.serialize();
  return tracestate ? { traceparent, tracestate } : { traceparent };
}
