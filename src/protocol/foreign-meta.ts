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
