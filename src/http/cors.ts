// §4.12: what a browser lets a page of an allowed origin do and read.
import type { ReplyHeaders } from '../core/message.ts';

/** Nothing without an Origin, or for one that was refused. */
export type GetCorsHeaders = (allowedOrigin: string | undefined) => ReplyHeaders;

/** Names of a feature's own headers. */
export interface CorsHeaderNames {
  /** Those that pages may send. */
  readonly request: readonly string[];
  /** Those that pages may read. */
  readonly response: readonly string[];
}

export function createGetCorsHeaders({ request, response }: CorsHeaderNames): GetCorsHeaders {
  const grant = {
    'Access-Control-Allow-Credentials': 'true',
    'Access-Control-Allow-Methods': 'GET, POST, PUT, DELETE, OPTIONS',
    'Access-Control-Allow-Headers': ['Content-Type', 'Authorization', ...request].join(', '),
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
