// §4.12: what a browser lets a page of an allowed origin do and read.
import { type GatewayRequest, getHeader, type ReplyHeaders } from '../endpoint/message.ts';

/** Nothing without an Origin, or for one that was refused. */
export type GetCorsHeaders = (allowedOrigin: string | undefined) => ReplyHeaders;

/** Names of a feature's own headers. */
export interface CorsHeaderNames {
  /** Those that pages may send. */
  readonly request: readonly string[];
  /** In lower case: what headers begin with that pages may send, whatever follows; undefined for none. */
  readonly requestPrefix: string | undefined;
  /** Those that pages may read. */
  readonly response: readonly string[];
}

/** Headers of the reply to a preflight, beside those of every reply. */
export type GetPreflightHeaders = (request: GatewayRequest) => ReplyHeaders;

/** A header whose name is not known before is granted where it is asked for. */
export function createGetPreflightHeaders(names: CorsHeaderNames): GetPreflightHeaders {
  const { requestPrefix } = names;
  if (requestPrefix === undefined) return () => ({});

  return function getPreflightHeaders(request) {
    const asked = (getHeader(request, 'access-control-request-headers') ?? '')
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name.toLowerCase().startsWith(requestPrefix) && TOKEN.test(name));
    return asked.length === 0
      ? {}
      : { 'Access-Control-Allow-Headers': listRequestHeaders([...names.request, ...asked]) };
  };
}

/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;

const listRequestHeaders = (names: readonly string[]): string =>
  ['Content-Type', 'Authorization', ...names].join(', ');

export function createGetCorsHeaders({
  request,
  response,
}: Omit<CorsHeaderNames, 'requestPrefix'>): GetCorsHeaders {
  const grant = {
    'Access-Control-Allow-Credentials': 'true',
    'Access-Control-Allow-Methods': 'GET, POST, PUT, DELETE, OPTIONS',
    'Access-Control-Allow-Headers': listRequestHeaders(request),
    'Access-Control-Expose-Headers': [
      'X-RateLimit-Limit',
      'X-RateLimit-Remaining',
      'X-RateLimit-Reset',
      ...response,
      'WWW-Authenticate',
      'Retry-After',
    ].join(', '),
    'Access-Control-Max-Age': '86400',
  };
  return function getCorsHeaders(allowedOrigin) {
    return allowedOrigin === undefined
      ? {}
      : { 'Access-Control-Allow-Origin': allowedOrigin, ...grant };
  };
}
