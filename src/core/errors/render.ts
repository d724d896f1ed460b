import { createRedirectReply, type Reply } from '../message.ts';
import { toErrorDescription } from '../text.ts';
import type { OAuthErrorCode } from './catalogue.ts';
import type { GatewayError, JsonRpcErrorObject } from './gateway-error.ts';

/** How a route speaks of errors (§7.1 or §7.3). */
export type ErrorFormat =
  | { readonly form: 'jsonrpc' }
  /** `body` is the code for a body that cannot be read (§7.3). */
  | { readonly form: 'oauth'; readonly body: OAuthErrorCode };

export const JSONRPC: ErrorFormat = { form: 'jsonrpc' };
export const OAUTH: ErrorFormat = { form: 'oauth', body: 'invalid_request' };

/** The reply for an error of a request that has no id, or whose id is not known yet. */
export function renderError(error: GatewayError, format: ErrorFormat): Reply {
  const { row, failure } = error;
  if (failure.redirect?.isAutomatic) {
    return { ...createRedirectReply(failure.redirect.url), ...toLogMembers(error) };
  }
  const asOAuth = row.oauth !== undefined && (format.form === 'oauth' || row.jsonrpc === undefined);
  return {
    status: row.status,
    headers: { 'Content-Type': 'application/json', ...failure.headers },
    body: JSON.stringify(asOAuth ? renderOAuthBody(error, format) : renderJsonRpcBody(error)),
    ...toLogMembers(error),
  };
}

/** The members of a reply that the log tells of an error. */
export const toLogMembers = (error: GatewayError): Pick<Reply, 'error' | 'facts'> => ({
  error,
  ...(error.failure.facts && { facts: error.failure.facts }),
});

const renderJsonRpcBody = (error: GatewayError) => ({
  jsonrpc: '2.0',
  error: toJsonRpcError(error),
  id: null,
});

/** §7.1: the member `error` of a JSON-RPC response. */
export function toJsonRpcError({ row, message, failure }: GatewayError): JsonRpcErrorObject {
  if (failure.jsonRpc !== undefined) return failure.jsonRpc;
  const { code, message: title, reason } = row.jsonrpc ?? { code: -32000, message: 'Error' };
  return {
    code,
    message: failure.message ?? title,
    data: { ...(reason && { reason }), details: message, ...failure.data },
  };
}

/** §7.3, RFC 6749 §5.2. */
function renderOAuthBody(error: GatewayError, format: ErrorFormat) {
  const { code, description } = describeOAuthError(error, format);
  return { error: code, error_description: description };
}

export function describeOAuthError({ row, message }: GatewayError, format: ErrorFormat = JSONRPC) {
  const code = row.oauth === 'body' && format.form === 'oauth' ? format.body : row.oauth;
  return { code, description: toErrorDescription(message) };
}
