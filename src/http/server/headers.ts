// §4.12: checks headers of each request, and lists the headers of each reply. First the Host check, against DNS rebinding.

import type { Config } from '../../config/config.ts';
import { fail, type GatewayError } from '../../errors/gateway-error.ts';
import { IPV4_LOOPBACK_HOSTS, LOOPBACK_HOSTS } from '../../platform/address.ts';
import { truncateForLog } from '../../platform/log.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import {
  type GatewayRequest,
  getHeader,
  type Reply,
  type ReplyHeaders,
} from '../endpoint/message.ts';
import { JSONRPC, renderError } from '../endpoint/render-error.ts';

const HOST = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/;
/** Maximum number of allowed hosts in a log line. */
const MAX_SHOWN_HOSTS = 10;

export function createHostCheck({ server, http }: Config) {
  const base = new URL(server.baseUrl);
  const defaultPort = base.protocol === 'https:' ? '443' : '80';
  const basePort = base.port || defaultPort;
  const namesWithAnyPort = new Set(server.environment === 'production' ? [] : LOOPBACK_HOSTS);
  const exactHosts = new Set([`${base.hostname}:${basePort}`]);
  for (const entry of http.allowedHosts) {
    const [, name = '', port] = HOST.exec(entry) ?? [];
    if (port === undefined) namesWithAnyPort.add(name);
    else exactHosts.add(`${name}:${port}`);
  }

  /** For the log, as an operator writes them. */
  const expected = [base.host, ...http.allowedHosts].slice(0, MAX_SHOWN_HOSTS);

  /**
   * Checks the `Host` header (several arrive joined by commas) and, for a target in absolute form, its authority. A probe may use
   * any host, or none in HTTP/1.0.
   *
   * @throws GatewayError `bad_request` unless there is exactly one Host, `invalid_host` for a foreign one.
   */
  return function checkHost(
    host: string | undefined,
    authority: string | undefined,
    isProbe: boolean,
  ): void {
    // Nearly all clients write it this way: no parsing is needed.
    if (host === base.host && authority === undefined) return;
    if (isProbe && host === undefined) return;
    if (!host || host.includes(','))
      fail('bad_request', { details: 'The request must have exactly one Host header.' });
    const lowerCase = host.toLowerCase();
    if (authority !== undefined && authority.toLowerCase() !== lowerCase)
      fail('bad_request', { details: 'The Host header differs from the request target.' });
    if (isProbe) return;
    const [, name = '', port = defaultPort] = HOST.exec(lowerCase) ?? [];
    if (!namesWithAnyPort.has(name) && !exactHosts.has(`${name}:${port}`))
      fail('invalid_host', { facts: { found: truncateForLog(lowerCase), expected } });
  };
}

// §4.12, §7.4: allowed origins.

const HTTP_ORIGIN = /^http:\/\/([^/:]+)(?::\d{1,5})?$/;

export interface RequestOrigin {
  /** Value of the `Origin` header. */
  readonly value: string | undefined;
  readonly isAllowed: boolean;
}

export function createReadOrigin({ server, http }: Config) {
  const allowed = new Set([new URL(server.baseUrl).origin, ...http.allowedOrigins]);
  const isLocalAllowed = server.environment !== 'production';

  return function readOrigin(request: GatewayRequest): RequestOrigin {
    const value = getHeader(request, 'origin');
    if (value === undefined) return NO_ORIGIN;
    const lowerCase = value.toLowerCase();
    // `http://localhost` or `http://127.0.0.1`, with any port.
    const isLocal = IPV4_LOOPBACK_HOSTS.includes(HTTP_ORIGIN.exec(lowerCase)?.[1] ?? '');
    const isAllowed = allowed.has(lowerCase) || (isLocalAllowed && isLocal);
    return { value, isAllowed };
  };
}

export const NO_ORIGIN: RequestOrigin = { value: undefined, isAllowed: false };

/** @throws GatewayError `invalid_origin`. */
export function checkOrigin({ value, isAllowed }: RequestOrigin): void {
  if (value !== undefined && !isAllowed)
    fail('invalid_origin', { facts: { found: truncateForLog(value) } });
}

/** @throws GatewayError `invalid_origin` for pages of other origins. Programs send no Origin. */
export function checkOwnOrigin({ value }: RequestOrigin, ownOrigin: string): void {
  if (value !== undefined && value.toLowerCase() !== ownOrigin)
    fail('invalid_origin', {
      details: "Only the gateway's own pages may call this address.",
      facts: { found: truncateForLog(value) },
    });
}

/**
 * Checks a request for a page of a login, which only the user may see and answer. Browsers send cookies with requests of
 * same-site pages of any origin: a script there could read the consent page and answer it. Fetch Metadata shows how a request
 * came about.
 *
 * @throws GatewayError `invalid_origin`.
 */
export function checkNavigation(request: GatewayRequest, ownOrigin: string): void {
  const origin = getHeader(request, 'origin');
  const isForeign = origin !== undefined && origin !== ownOrigin;
  // Programs send no Fetch Metadata, or only the mode.
  const isBrowser = getHeader(request, 'sec-fetch-site') !== undefined;
  const isNavigation =
    getHeader(request, 'sec-fetch-mode') === 'navigate' &&
    getHeader(request, 'sec-fetch-dest') === 'document';
  if (!isForeign && (!isBrowser || isNavigation)) return;
  fail('invalid_origin', {
    details: 'This address must be opened in a browser; a script on a web page cannot call it.',
    facts: { found: origin && truncateForLog(origin) },
  });
}

// §4.12: CORS for pages of allowed origins.

/** CORS headers of public documents. Without credentials: the reply is the same for all. */
export const CORS_FOR_ALL = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'GET',
  'Access-Control-Allow-Headers': 'Content-Type',
} as const satisfies ReplyHeaders;

/** Names of a feature's own headers. */
export interface CorsHeaderNames {
  /** Headers that pages may send. */
  readonly request: readonly string[];
  /** Prefix of further headers that pages may send, in lower case; undefined for none. */
  readonly requestPrefix: string | undefined;
  /** Headers that pages may read. */
  readonly response: readonly string[];
}

/** Renders the CORS headers of a preflight, in addition to those of every reply: grants requested headers with the prefix. */
export function renderPreflightHeaders(
  request: GatewayRequest,
  { requestPrefix, request: names }: CorsHeaderNames,
): ReplyHeaders {
  if (requestPrefix === undefined) return {};
  const asked = (getHeader(request, 'access-control-request-headers') ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name.toLowerCase().startsWith(requestPrefix) && TOKEN.test(name));
  return asked.length === 0
    ? {}
    : { 'Access-Control-Allow-Headers': listRequestHeaders([...names, ...asked]) };
}

/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;

const listRequestHeaders = (names: readonly string[]) =>
  ['Content-Type', 'Authorization', ...names].join(', ');

const renderCorsHeaders = (allowedOrigin: string, names: CorsHeaderNames): ReplyHeaders => ({
  'Access-Control-Allow-Origin': allowedOrigin,
  'Access-Control-Allow-Credentials': 'true',
  'Access-Control-Allow-Methods': 'GET, POST, PUT, DELETE, OPTIONS',
  'Access-Control-Allow-Headers': listRequestHeaders(names.request),
  'Access-Control-Expose-Headers': [
    'X-RateLimit-Limit',
    'X-RateLimit-Remaining',
    'X-RateLimit-Reset',
    ...names.response,
    'WWW-Authenticate',
    'Retry-After',
  ].join(', '),
  'Access-Control-Max-Age': '86400',
});

// §4.12: the headers of every reply, and the error replies of the transport itself.

/**
 * Alternating names and values, each name once. Of all forms that node:http accepts, this one is the cheapest to build and to
 * send.
 */
export type HeaderList = string[];

export const toHeaderList = (headers: ReplyHeaders = {}): HeaderList =>
  Object.entries(headers).flat();

export function createSecurityHeaders({ environment, baseUrl }: Config['server']): ReplyHeaders {
  const isHttps = environment === 'production' && baseUrl.toLowerCase().startsWith('https:');
  return {
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'X-DNS-Prefetch-Control': 'off',
    'Referrer-Policy': 'strict-origin-when-cross-origin',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'cross-origin',
    ...(isHttps && { 'Strict-Transport-Security': 'max-age=31536000; includeSubDomains; preload' }),
  };
}

/** The headers that all replies of an endpoint share: created once, copied for each. */
interface HeaderBase {
  readonly list: readonly string[];
  /** The index of each name's value. */
  readonly positions: ReadonlyMap<string, number>;
}

export function createListHeaders(securityHeaders: ReplyHeaders, corsHeaders: CorsHeaderNames) {
  const bases = new Map<Endpoint | undefined, HeaderBase>();
  const grantedBases = new Map<Endpoint | undefined, HeaderBase>();

  /** No CORS headers without an Origin, or for a refused one. */
  function createBase(
    endpoint: Endpoint | undefined,
    grantedOrigin: string | undefined,
  ): HeaderBase {
    const headers = {
      ...securityHeaders,
      ...(grantedOrigin !== undefined && renderCorsHeaders(grantedOrigin, corsHeaders)),
      ...(endpoint?.isForAllOrigins && CORS_FOR_ALL),
      ...endpoint?.headers,
    };
    const names = Object.keys(headers);
    return {
      list: toHeaderList(headers),
      positions: new Map(names.map((name, index) => [name, 2 * index + 1])),
    };
  }

  /**
   * Lists all headers except `Content-Length`. Headers of the reply replace common ones. Pages of `grantedOrigin` may read the
   * reply. `limitHeaders` are `X-RateLimit-*`.
   */
  return function listHeaders(
    reply: Reply,
    endpoint: Endpoint | undefined,
    grantedOrigin: string | undefined,
    limitHeaders: ReplyHeaders | undefined,
  ): HeaderList {
    const byEndpoint = grantedOrigin === undefined ? bases : grantedBases;
    let base = byEndpoint.get(endpoint);
    if (base === undefined) {
      base = createBase(endpoint, grantedOrigin);
      byEndpoint.set(endpoint, base);
    }
    const { positions } = base;
    const list = base.list.slice();
    // The base may have been created for a different origin.
    const origin: ReplyHeaders | undefined =
      grantedOrigin === undefined ? undefined : { 'Access-Control-Allow-Origin': grantedOrigin };
    let vary = 'Origin';
    for (const headers of [origin, limitHeaders, reply.headers]) {
      if (!headers) continue;
      for (const name in headers) {
        const value = headers[name] ?? '';
        const position = positions.get(name);
        if (name === 'Vary') vary = `Origin, ${value}`;
        else if (position === undefined) list.push(name, value);
        else list[position] = value;
      }
    }
    list.push('Vary', vary);
    return list;
  };
}

// Errors of the transport itself, which end their connections.

/** Renders the last reply of a connection, with the headers of every reply. */
export function renderTransportError(error: GatewayError, securityHeaders: ReplyHeaders): Reply {
  const reply = renderError(error, JSONRPC);
  return {
    ...reply,
    headers: { ...securityHeaders, ...reply.headers, Vary: 'Origin', Connection: 'close' },
  };
}

/** Serializes the same reply for a connection that node:http sends no more responses on. */
export function serializeTransportError(
  error: GatewayError,
  securityHeaders: ReplyHeaders,
): string {
  const { status, headers, body = '' } = renderTransportError(error, securityHeaders);
  const sent = { ...headers, 'Content-Length': String(Buffer.byteLength(body)) };
  const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${error.row.jsonrpc?.message}\r\n${lines.join('')}\r\n${body}`;
}
