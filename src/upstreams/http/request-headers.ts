// §18.6: the headers of a request: what the configuration and the credentials say, and what MCP asks for.
// Nothing of the client's request is among them.
import { STATELESS_VERSION } from '../messages/envelope.ts';
import type { UpstreamRequest } from '../upstream.ts';

/** What belongs to a connection, or is decided by the transport (RFC 9110 §7.6.1). */
const OWN_TO_TRANSPORT: ReadonlySet<string> = new Set([
  'accept',
  'connection',
  'content-length',
  'content-type',
  'host',
  'keep-alive',
  'mcp-protocol-version',
  'mcp-session-id',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Names and values in turn, as they are sent. */
export type HeaderList = readonly string[];

export const toHeaderList = (headers: Readonly<Record<string, string>>): HeaderList =>
  Object.entries(headers)
    .filter(([name]) => !OWN_TO_TRANSPORT.has(name.toLowerCase()))
    .flat();

/** MCP 2026-07-28 "Request Metadata". */
export function describeInHeaders(request: UpstreamRequest): HeaderList {
  const { method, name, mirrored } = request;
  const headers = ['mcp-protocol-version', STATELESS_VERSION, 'mcp-method', method];
  if (name !== undefined) headers.push('mcp-name', encodeHeader(name));
  for (const [header, value] of mirrored === undefined ? [] : Object.entries(mirrored)) {
    headers.push(header, encodeHeader(value));
  }
  return headers;
}

/** W3C Trace Context §3. */
export function traceInHeaders({ trace }: UpstreamRequest): HeaderList {
  const { traceparent, tracestate } = trace;
  if (traceparent === undefined) return NO_HEADERS;
  return tracestate === undefined
    ? ['traceparent', traceparent]
    : ['traceparent', traceparent, 'tracestate', tracestate];
}

const NO_HEADERS: HeaderList = [];

/** What a header cannot carry, or would lose at its ends, goes as `=?base64?…?=`. */
export const encodeHeader = (value: string): string =>
  /^(?!=\?base64\?)(?:[\x21-\x7E](?:[\t\x20-\x7E]*[\x21-\x7E])?)?$/.test(value)
    ? value
    : `=?base64?${Buffer.from(value).toString('base64')}?=`;
