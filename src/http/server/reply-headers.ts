// §4.12: the headers of every reply, and the replies that the transport sends by itself.

import type { Config } from '../../config/config.ts';
import type { GatewayError } from '../../errors/gateway-error.ts';
import type { Reply, ReplyHeaders } from '../endpoint/message.ts';
import { JSONRPC, renderError } from '../endpoint/render-error.ts';

/**
 * Names and values by turns. Of all forms that node:http takes, this one costs least to build and to
 * send; each name is there once.
 */
export type HeaderList = string[];

export const toHeaderList = (headers: ReplyHeaders = {}): HeaderList =>
  Object.entries(headers).flat();

// §4.12: on every reply.

export function createSecurityHeaders({ environment, baseUrl }: Config['server']): ReplyHeaders {
  const isHttps = environment === 'production' && baseUrl.toLowerCase().startsWith('https:');
  return {
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'X-DNS-Prefetch-Control': 'off',
    'Referrer-Policy': 'strict-origin-when-cross-origin',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'cross-origin',
    ...(isHttps && {
      'Strict-Transport-Security': 'max-age=31536000; includeSubDomains; preload',
    }),
  };
}

// Errors that the transport sends by itself, and that end their connections.

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
