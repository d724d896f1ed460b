// W3C Trace Context, as HTTP carries it in headers and MCP in `_meta`: what is not well-formed is left out, so that a tool can
// send it on in headers as it is. W3C Baggage is left out always: programs take what it says of a user or tenant for their own
// word.
import type { JsonObject } from '../../platform/json.ts';
import type { RequestTrace } from './tracing.ts';

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

interface TracedRequest {
  readonly trace?: RequestTrace;
  readonly headers: JsonObject;
}

/** Of the span that the gateway has for the request, else of the headers. */
export const getTraceId = ({ trace, headers }: TracedRequest): string | undefined =>
  readTraceId(trace?.getContext() ?? readTraceContext(headers));
