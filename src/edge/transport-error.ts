// Errors that the transport sends by itself, and that end their connections.

import type { Reply, ReplyHeaders } from '../endpoint/message.ts';
import { JSONRPC, renderError } from '../endpoint/render-error.ts';
import type { GatewayError } from '../errors/gateway-error.ts';

/** The reply with the headers of every reply, to be the connection's last. */
export function renderTransportError(error: GatewayError, securityHeaders: ReplyHeaders): Reply {
  const reply = renderError(error, JSONRPC);
  return {
    ...reply,
    headers: { ...securityHeaders, ...reply.headers, Vary: 'Origin', Connection: 'close' },
  };
}

/** The same as it goes over the wire, for a connection on which node:http sends no more responses. */
export function serializeTransportError(
  error: GatewayError,
  securityHeaders: ReplyHeaders,
): string {
  const { status, headers, body = '' } = renderTransportError(error, securityHeaders);
  const sent = { ...headers, 'Content-Length': String(Buffer.byteLength(body)) };
  const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${error.row.jsonrpc?.message}\r\n${lines.join('')}\r\n${body}`;
}
