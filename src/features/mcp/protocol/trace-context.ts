// W3C Trace Context and Baggage, as MCP carries them in `_meta`: what is not well-formed is left out,
// so that a tool can send it on in headers as it is.
import type { JsonObject } from '../../../core/json.ts';

export interface TraceContext {
  readonly traceparent?: string;
  readonly tracestate?: string;
  readonly baggage?: string;
}

/** Trace Context §3.2: no version ff, and no id of zeros only. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Characters of a header; W3C asks for 512 of tracestate and 8,192 bytes of baggage at least. */
const VALUE = /^[\x20-\x7E]{1,8192}$/;

/** For calls without one, which are most: they share this object. */
const NO_TRACE: TraceContext = Object.freeze({});

export function readTraceContext(meta: JsonObject): TraceContext {
  const { traceparent, tracestate, baggage } = meta;
  if (traceparent === undefined && baggage === undefined) return NO_TRACE;
  const isTraced = typeof traceparent === 'string' && TRACEPARENT.test(traceparent);
  return {
    ...(isTraced && { traceparent }),
    // Without a parent its state means nothing (Trace Context §3.3).
    ...(isTraced && isValue(tracestate) && { tracestate }),
    ...(isValue(baggage) && { baggage }),
  };
}

/** For the log: by it the lines of all services about one request are found. */
export const getTraceId = ({ traceparent }: TraceContext): string | undefined =>
  traceparent === undefined ? undefined : TRACEPARENT.exec(traceparent)?.[1];

const isValue = (value: unknown): value is string => typeof value === 'string' && VALUE.test(value);
