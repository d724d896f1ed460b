// Spec §4.12, decisions 0.7: what a browser lets a page of an allowed origin do and read.

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
export type Cors = (allowedOrigin: string | undefined) => Readonly<Record<string, string>>;

/** `headers` are further ones that pages may send. */
export function createCors(headers: readonly string[]): Cors {
  const allowed = [GRANT['Access-Control-Allow-Headers'], ...headers].join(', ');
  const grant = { ...GRANT, 'Access-Control-Allow-Headers': allowed };
  return (allowedOrigin) =>
    allowedOrigin === undefined ? {} : { 'Access-Control-Allow-Origin': allowedOrigin, ...grant };
}
