// What a client writes into `_meta` for whoever answers its request: MCP has no word for it, and the gateway neither.
import { hasLevels, type JsonObject } from '../platform/json.ts';

/** It is kept for as long as its call goes on, beside the arguments. */
const MAX_BYTES = 8_192;
const MAX_LEVELS = 16;

/** Undefined where there is none; and where there is too much, as no part of it means anything by itself. */
export function readForeignMeta(meta: JsonObject): JsonObject | undefined {
  let foreign: [string, unknown][] | undefined;
  for (const key of Object.keys(meta)) {
    if (isOfOneHop(key) || isReserved(key)) continue;
    foreign ??= [];
    foreign.push([key, meta[key]]);
  }
  if (foreign === undefined || !foreign.every(([, value]) => hasLevels(value, MAX_LEVELS))) {
    return undefined;
  }
  const members = Object.fromEntries(foreign);
  return Buffer.byteLength(JSON.stringify(members)) > MAX_BYTES ? undefined : members;
}

/**
 * What MCP keeps for itself (the second label of the prefix says so), and what carries a trace or its baggage under other
 * names: servers would take it for the gateway's word.
 */
const isReserved = (key: string): boolean => {
  const name = key.toLowerCase();
  return isOfOneHop(name) || RESERVED.test(name);
};

const RESERVED =
  /^(?:[^/]*\.)?(?:modelcontextprotocol|mcp)(?:\.[^/]*)?\/|^(?:b3|x-b3-.*|uber-trace-id|uberctx-.*|__proto__)$/;

// `_meta` of MCP: members that are about one connection, and mean nothing on the next.

const PREFIX = 'io.modelcontextprotocol/';
/** `baggage` is nobody's: no server is told any. */
const NAMES: readonly string[] = ['progressToken', 'traceparent', 'tracestate', 'baggage'];

/** Whether the gateway writes it itself towards a server, or nobody does. */
export const isOfOneHop = (key: string): boolean => key.startsWith(PREFIX) || NAMES.includes(key);

// W3C Trace Context, as MCP carries it in `_meta`: what is not well-formed is left out, so that a tool can send it on in
// headers as it is. W3C Baggage is left out always: programs take what it says of a user or tenant for their own word.

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
