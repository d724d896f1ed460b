import { type Reply, seeOther } from '../message.ts';
import type { OAuthErrorCode } from './catalogue.ts';
import type { GatewayError } from './gateway-error.ts';

/** How a route speaks of errors (Spec §7.1 or §7.3). */
export type ErrorFormat =
  | { readonly form: 'jsonrpc' }
  /** `body` is the code for a body that cannot be read (Spec §7.3). */
  | { readonly form: 'oauth'; readonly body: OAuthErrorCode };

export const JSONRPC: ErrorFormat = { form: 'jsonrpc' };
export const OAUTH: ErrorFormat = { form: 'oauth', body: 'invalid_request' };

/** The reply for an error. `id` is the JSON-RPC request's, null when there is none. */
export function renderError(
  error: GatewayError,
  format: ErrorFormat,
  id: string | number | null = null,
): Reply {
  const { row, failure } = error;
  if (failure.redirect?.isAutomatic)
    return { ...seeOther(failure.redirect.url), ...toLogMembers(error) };
  const asOAuth = row.oauth !== undefined && (format.form === 'oauth' || row.jsonrpc === undefined);
  return {
    status: row.status,
    headers: { 'Content-Type': 'application/json', ...failure.headers },
    body: JSON.stringify(asOAuth ? renderOAuthBody(error, format) : renderJsonRpcBody(error, id)),
    ...toLogMembers(error),
  };
}

const toLogMembers = (error: GatewayError): Pick<Reply, 'error' | 'facts'> => ({
  error,
  ...(error.failure.facts && { facts: error.failure.facts }),
});

/** Spec §7.1. */
function renderJsonRpcBody({ row, message, failure }: GatewayError, id: string | number | null) {
  const { code, message: title, reason } = row.jsonrpc ?? { code: -32000, message: 'Error' };
  const data = { ...(reason && { reason }), details: message, ...failure.data };
  return { jsonrpc: '2.0', error: { code, message: title, data }, id };
}

/** Spec §7.3, RFC 6749 §5.2. */
function renderOAuthBody(error: GatewayError, format: ErrorFormat) {
  const { code, description } = describeOAuthError(error, format);
  return { error: code, error_description: description };
}

/** RFC 6749 §4.1.2.1, §5.2: the description is printable ASCII without quote and backslash. */
export function describeOAuthError({ row, message }: GatewayError, format: ErrorFormat = JSONRPC) {
  const code = row.oauth === 'body' && format.form === 'oauth' ? format.body : row.oauth;
  return { code, description: message.replace(/[^\x20-\x21\x23-\x5B\x5D-\x7E]/g, "'") };
}
