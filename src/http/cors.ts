// §4.12: what a browser lets a page of an allowed origin do and read.
import type { ReplyHeaders } from '../core/message.ts';

const GRANT = {
  'Access-Control-Allow-Credentials': 'true',
  'Access-Control-Allow-Methods': 'GET, POST, PUT, DELETE, OPTIONS',
  'Access-Control-Allow-Headers':
    'Content-Type, Authorization, mcp-session-id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID',
  'Access-Control-Expose-Headers':
    'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, mcp-session-id, X-Session-Expires-At, WWW-Authenticate, Retry-After',
  'Access-Control-Max-Age': '86400',
};

/** Nothing without an Origin, or for one that was refused. */
export type GetCorsHeaders = (allowedOrigin: string | undefined) => ReplyHeaders;

/** `furtherHeaders` are those that pages may send beside the service's own. */
export function createGetCorsHeaders(furtherHeaders: readonly string[]): GetCorsHeaders {
  const allowed = [GRANT['Access-Control-Allow-Headers'], ...furtherHeaders].join(', ');
  const grant = { ...GRANT, 'Access-Control-Allow-Headers': allowed };
  return function getCorsHeaders(allowedOrigin) {
    return allowedOrigin === undefined
      ? {}
      : { 'Access-Control-Allow-Origin': allowedOrigin, ...grant };
  };
}
