// §21.2: what is told of a request to OpenTelemetry. Without a collector there is none of this, and nothing is wrapped.

export interface Tracing {
  /**
   * A request has come. Its span begins now, but is made only when it is asked for: who is the parent may be said
   * until then.
   */
  startRequest(parent: TraceParent): RequestTrace;
  /** The one that this runs for; undefined where nothing is recorded. */
  getActiveSpan(): Span | undefined;
  /** A span below the one that is active now; undefined where nothing is recorded. */
  startChild(description: SpanDescription): Span | undefined;
  /** The work, for the request for which this runs now, whoever calls it later. */
  bind<Result>(work: () => Result): () => Result;
  /** Sends what was not sent yet, for 2 s at most, and ends. */
  close(): Promise<void>;
}

/** W3C Trace Context §3, well-formed; without `traceparent` there is none. */
export interface TraceParent {
  readonly traceparent?: string;
  readonly tracestate?: string;
}

export interface SpanDescription {
  readonly name: string;
  readonly kind: 'client' | 'internal';
  readonly attributes: Attributes;
}

/** By the names of OpenTelemetry's semantic conventions. Undefined ones are left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Span {
  /** What a request to another service says of it. */
  getContext(): TraceParent;
  /** It is the active one for what the work starts. */
  run<Result>(work: () => Result): Result;
  setAttributes(attributes: Attributes): void;
  /** Another request that led to this one, perhaps of another trace; once for each. */
  link(context: TraceParent): void;
  /** `type` is one of few (`error.type`). */
  fail(type: string, message?: string): void;
  end(): void;
}

export interface RequestTrace {
  /** Counts where the request's headers have no parent, and the span is not made yet. */
  offerParent(parent: TraceParent): void;
  /** Runs work for the request: where that is recorded, all that the work starts belongs to it. */
  run<Result>(work: () => Result): Result;
  /** What a request to another service says of it, be it recorded or not. */
  getContext(): TraceParent;
  /** Undefined where it is not recorded. */
  getSpan(): Span | undefined;
  /** A better name than `end` has. */
  setName(name: string): void;
  /** The span is named so unless it was named. */
  end(name: string): void;
}
