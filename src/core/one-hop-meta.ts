// `_meta` of MCP: members that are about one connection, and mean nothing on the next.

const PREFIX = 'io.modelcontextprotocol/';
/** `baggage` is nobody's: no server is told any. */
const NAMES: readonly string[] = ['progressToken', 'traceparent', 'tracestate', 'baggage'];

/** Whether the gateway writes it itself towards a server, or nobody does. */
export const isOfOneHop = (key: string): boolean => key.startsWith(PREFIX) || NAMES.includes(key);
