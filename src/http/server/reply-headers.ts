// §4.12: the headers of every reply, and the replies that the transport sends by itself.

import type { Config } from '../../config/config.ts';
import type { GatewayError } from '../../errors/gateway-error.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import type { Reply, ReplyHeaders } from '../endpoint/message.ts';
import { JSONRPC, renderError } from '../endpoint/render-error.ts';
import { CORS_FOR_ALL, type CorsHeaderNames, createGetCorsHeaders } from './host-and-origin.ts';

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

// §4.12: the headers of a reply, put together.

interface HeaderSources {
  readonly reply: Pick<Reply, 'headers'>;
  readonly endpoint: Endpoint | undefined;
  /** The origin whose pages may read the reply. */
  readonly grantedOrigin: string | undefined;
  /** `X-RateLimit-*`. */
  readonly limitHeaders: ReplyHeaders | undefined;
}

/** What all replies of an endpoint have in common: made once, copied for each. */
interface HeaderBase {
  readonly list: readonly string[];
  /** Where the value of each name is. */
  readonly positions: ReadonlyMap<string, number>;
}

export function createListHeaders(server: Config['server'], corsHeaders: CorsHeaderNames) {
  const securityHeaders = createSecurityHeaders(server);
  const getCorsHeaders = createGetCorsHeaders(corsHeaders);
  const bases = new Map<Endpoint | undefined, HeaderBase>();
  const grantedBases = new Map<Endpoint | undefined, HeaderBase>();

  function getBase(endpoint: Endpoint | undefined, grantedOrigin: string | undefined): HeaderBase {
    const byEndpoint = grantedOrigin === undefined ? bases : grantedBases;
    const known = byEndpoint.get(endpoint);
    if (known !== undefined) return known;
    const cors = getCorsHeaders(grantedOrigin);
    const base = createBase({
      ...securityHeaders,
      ...(endpoint?.isForAllOrigins ? CORS_FOR_ALL : cors),
      ...endpoint?.headers,
    });
    byEndpoint.set(endpoint, base);
    return base;
  }

  /** All but `Content-Length`. What the reply says itself replaces what is said of all replies. */
  return function listHeaders({
    reply,
    endpoint,
    grantedOrigin,
    limitHeaders,
  }: HeaderSources): HeaderList {
    const { list: common, positions } = getBase(endpoint, grantedOrigin);
    const list = common.slice();
    // The base may have been made for another origin.
    if (grantedOrigin !== undefined) set('Access-Control-Allow-Origin', grantedOrigin);
    for (const name in limitHeaders) set(name, limitHeaders[name]);
    const { headers } = reply;
    for (const name in headers) if (name !== 'Vary') set(name, headers[name]);
    const vary = headers?.Vary;
    list.push('Vary', vary === undefined ? 'Origin' : `Origin, ${vary}`);
    return list;

    function set(name: string, value = ''): void {
      const position = positions.get(name);
      if (position === undefined) list.push(name, value);
      else list[position] = value;
    }
  };
}

function createBase(headers: ReplyHeaders): HeaderBase {
  const names = Object.keys(headers);
  return {
    list: toHeaderList(headers),
    positions: new Map(names.map((name, index) => [name, 2 * index + 1])),
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
