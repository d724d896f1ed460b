// §21.2: what is told of a request to OpenTelemetry. Without a collector there is none of this, and nothing is wrapped.
import type { JsonObject } from '../../platform/json.ts';

export interface Tracing {
  /**
   * A request has come. Its span begins now, but is made only when it is asked for: who is the parent may be said
   * until then.
   */
  startRequest(parent: TraceContext): RequestTrace;
  /** The one that this runs for; undefined where nothing is recorded. */
  getActiveSpan(): Span | undefined;
  /** A span below the one that is active now; undefined where nothing is recorded. */
  startChild(description: {
    readonly name: string;
    readonly kind: 'client' | 'internal';
    readonly attributes: Attributes;
  }): Span | undefined;
  /** The work, for the request for which this runs now, whoever calls it later. */
  bind<Result>(work: () => Result): () => Result;
  /** Sends what was not sent yet, for 2 s at most, and ends. */
  close(): Promise<void>;
}

/** Named by OpenTelemetry's semantic conventions. Undefined ones are left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Span {
  /** The context that a request to another service names. */
  getContext(): TraceContext;
  /** It is the active one for what the work starts. */
  run<Result>(work: () => Result): Result;
  setAttributes(attributes: Attributes): void;
  /** Another request that led to this one, perhaps of another trace; once for each. */
  link(context: TraceContext): void;
  /** `type` is one of few (`error.type`). */
  fail(type: string, message?: string): void;
  end(): void;
}

export interface RequestTrace {
  /** Counts where the request's headers have no parent, and the span is not made yet. */
  offerParent(parent: TraceContext): void;
  /** Runs work for the request: where that is recorded, all that the work starts belongs to it. */
  run<Result>(work: () => Result): Result;
  /** The context that a request to another service names, be it recorded or not. */
  getContext(): TraceContext;
  /** Undefined where it is not recorded. */
  getSpan(): Span | undefined;
  /** A better name than `end` has. */
  setName(name: string): void;
  /** The span is named so unless it was named. */
  end(name: string): void;
}

// W3C Trace Context, as HTTP carries it in headers and MCP in `_meta`: what is not well-formed is left out, so that a tool can
// send it on in headers as it is. W3C Baggage is left out always: programs take what it says of a user or tenant for their own
// word.

/** W3C Trace Context §3, well-formed; without `traceparent` there is none. */
export interface TraceContext {
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** Trace Context §3.2: no version ff, and no id of zeros only. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Characters of a header; W3C asks for 512 of tracestate at least. */
const VALUE = /^[\x20-\x7E]{1,8192}$/;

/** For calls without one, which are most: they share this object. */
const NO_TRACE: TraceContext = Object.freeze({});

export function readTraceContext(meta: JsonObject): TraceContext {
  const { traceparent, tracestate } = meta;
  // Without a parent its state means nothing (Trace Context §3.3).
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return NO_TRACE;
  return isValue(tracestate) ? { traceparent, tracestate } : { traceparent };
}

const isValue = (value: unknown): value is string => typeof value === 'string' && VALUE.test(value);

/** `traceparent` is `00-<trace>-<span>-<flags>`. */
export const readTraceId = ({ traceparent }: TraceContext): string | undefined =>
  traceparent?.slice(3, 35);

/** The trace of the span that the gateway has for the request, else of the headers. */
export const getTraceId = ({
  trace,
  headers,
}: {
  readonly trace?: RequestTrace | undefined;
  readonly headers: JsonObject;
}): string | undefined => readTraceId(trace?.getContext() ?? readTraceContext(headers));
