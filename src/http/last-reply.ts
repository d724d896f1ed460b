// Replies that the transport gives by itself, and that end their connections.
import type { GatewayError } from '../core/errors/gateway-error.ts';
import { JSONRPC, renderError } from '../core/errors/render.ts';
import type { Reply } from '../core/message.ts';

/** The reply with the headers of every reply, to be the connection's last. */
export function lastReply(
  error: GatewayError,
  securityHeaders: Readonly<Record<string, string>>,
): Reply {
  const reply = renderError(error, JSONRPC);
  return {
    ...reply,
    headers: {
      ...securityHeaders,
      ...reply.headers,
      Vary: 'Origin',
      'Content-Length': String(Buffer.byteLength(reply.body ?? '')),
      Connection: 'close',
    },
  };
}

/** The same as bytes, for a connection on which node:http does not answer any more. */
export function lastBytes(
  error: GatewayError,
  securityHeaders: Readonly<Record<string, string>>,
): string {
  const { status, headers = {}, body } = lastReply(error, securityHeaders);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${error.row.jsonrpc?.message}\r\n${lines.join('')}\r\n${body}`;
}
