// §21.2: the interface of traces, and W3C trace contexts. Without a collector there are no traces, and nothing is wrapped.
import type { JsonObject } from '../../platform/json.ts';

export interface Tracing {
  /**
   * Starts the trace of a request. Its span begins now, but is created on first use: its parent may be offered until then.
   */
  startRequest(parent: TraceContext): RequestTrace;
  /** Returns the active span; undefined if nothing is recorded. */
  getActiveSpan(): Span | undefined;
  /** Starts a child of the active span; undefined if nothing is recorded. */
  startChild(description: {
    readonly name: string;
    readonly kind: 'client' | 'internal';
    readonly attributes: Attributes;
  }): Span | undefined;
  /** Binds the work to the current request, for a later call from another context. */
  bind<Result>(work: () => Result): () => Result;
  /** Flushes spans for 2 s at most, and ends. */
  close(): Promise<void>;
}

/** Named by OpenTelemetry's semantic conventions. Undefined values are left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Span {
  /** Returns the context to propagate to another service. */
  getContext(): TraceContext;
  /** Runs the work with this span as the active one. */
  run<Result>(work: () => Result): Result;
  setAttributes(attributes: Attributes): void;
  /** Links a request that led to this one, maybe of another trace; at most once per request. */
  link(context: TraceContext): void;
  /** `type` has few values (`error.type`). */
  fail(type: string, message?: string): void;
  end(): void;
}

export interface RequestTrace {
  /** Sets the parent, unless the request's headers have one or the span is created already. */
  offerParent(parent: TraceContext): void;
  /** Runs work for the request: if it is recorded, all spans that the work starts belong to it. */
  run<Result>(work: () => Result): Result;
  /** Returns the context to propagate to another service, recorded or not. */
  getContext(): TraceContext;
  /** Undefined if it is not recorded. */
  getSpan(): Span | undefined;
  /** Sets a name that overrides that of `end`. */
  setName(name: string): void;
  /** Ends the span, with this name unless it has one. */
  end(name: string): void;
}

// W3C Trace Context, in headers of HTTP and in `_meta` of MCP. Malformed contexts are dropped, so that a tool can forward them in
// headers. W3C Baggage is always dropped: programs trust its statements about users or tenants.

/** A well-formed context (W3C Trace Context §3); empty without `traceparent`. */
export interface TraceContext {
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** Trace Context §3.2: no version ff, and no ID of zeros only. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Maximum length of a header, in characters; W3C requires at least 512 for tracestate. */
const VALUE = /^[\x20-\x7E]{1,8192}$/;

/** Shared by calls without a context, which are most. */
export const NO_TRACE: TraceContext = Object.freeze({});

export function readTraceContext(meta: JsonObject): TraceContext {
  const { traceparent, tracestate } = meta;
  // Without a parent, `tracestate` has no meaning (Trace Context §3.3).
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return NO_TRACE;
  return isValue(tracestate) ? { traceparent, tracestate } : { traceparent };
}

const isValue = (value: unknown): value is string => typeof value === 'string' && VALUE.test(value);

/** `traceparent` is `00-<trace>-<span>-<flags>`. */
export const readTraceId = ({ traceparent }: TraceContext): string | undefined =>
  traceparent?.slice(3, 35);

/** Returns the trace ID of the request's span, or that of its headers. */
export const getTraceId = ({
  trace,
  headers,
}: {
  readonly trace?: RequestTrace | undefined;
  readonly headers: JsonObject;
}): string | undefined => readTraceId(trace?.getContext() ?? readTraceContext(headers));
