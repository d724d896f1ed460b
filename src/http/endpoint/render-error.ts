import type { OAuthErrorCode } from '../../errors/catalogue.ts';
import type { GatewayError, JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import type { JsonObject } from '../../platform/json.ts';
import { toErrorDescription } from '../../platform/text.ts';
import { escapeHtml, ICONS, renderHtmlPage } from './html-page.ts';
import { createRedirectReply, type Reply } from './message.ts';

/** The form of a route's error responses (§7.1 or §7.3). */
export type ErrorFormat = { readonly form: 'jsonrpc' } | OAuthErrorFormat;

interface OAuthErrorFormat {
  readonly form: 'oauth';
  /** The code for an unreadable body (§7.3). */
  readonly body: OAuthErrorCode;
  /** The code for a rate limit; without one, limits respond as in §7.2. */
  readonly limit?: OAuthErrorCode;
}

export const JSONRPC: ErrorFormat = { form: 'jsonrpc' };
export const OAUTH = { form: 'oauth', body: 'invalid_request' } as const satisfies ErrorFormat;

/** The reply for an error of a request without an ID, or before the ID is known. */
export function renderError(error: GatewayError, format: ErrorFormat): Reply {
  const { row, failure } = error;
  if (failure.redirect?.isAutomatic)
    return { ...createRedirectReply(failure.redirect.url), ...toLogMembers(error) };
  return {
    status: row.status,
    headers: { 'Content-Type': 'application/json', ...failure.headers },
    body: JSON.stringify(renderBody(error, format)),
    ...toLogMembers(error),
  };
}

function renderBody(error: GatewayError, format: ErrorFormat): JsonObject {
  const { oauth, jsonrpc } = error.row;
  const hasOAuthForm = format.form === 'oauth' && (oauth !== 'limit' || format.limit !== undefined);
  if (oauth === undefined || (jsonrpc !== undefined && !hasOAuthForm))
    return { jsonrpc: '2.0', error: toJsonRpcError(error), id: null };
  // §7.3, RFC 6749 §5.2.
  const { code, description } = describeOAuthError(error, format);
  return { error: code, error_description: description };
}

/** The part of an error that is logged with the reply. */
export const toLogMembers = (error: GatewayError): Pick<Reply, 'error' | 'facts'> => ({
  error,
  ...(error.failure.facts && { facts: error.failure.facts }),
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

export function describeOAuthError({ row, message }: GatewayError, format: ErrorFormat = JSONRPC) {
  const isOwn = row.oauth === 'body' || row.oauth === 'limit';
  const code = isOwn && format.form === 'oauth' ? format[row.oauth] : row.oauth;
  return { code, description: toErrorDescription(message) };
}

// Renders an error as a page, for a browser that cannot be redirected safely.

/** The same status and headers as the reply for programs, with a page as the body. */
export function renderErrorPage(
  error: GatewayError,
  format: ErrorFormat,
  /** True for a failed login of an app. */
  isLogin = true,
): Reply {
  const reply = renderError(error, format);
  const { redirect } = error.failure;
  if (redirect?.isAutomatic) return reply;
  const code = error.row.oauth === 'body' ? error.key : (error.row.oauth ?? error.key);
  const page = renderHtmlPage(
    isLogin ? 'Login failed' : 'That did not work',
    `<p>${escapeHtml(error.message)}</p>
<p class="aside">If this happens again${isLogin ? ' when you start over from your app' : ''}, send this page to the administrator
of this gateway: <code>${escapeHtml(code)}</code>, status ${error.row.status}.</p>${redirect ? renderReturnLink(redirect.url) : ''}`,
    { before: `<div class="mark">${ICONS.warning}</div>` },
  );
  return { ...reply, headers: { ...reply.headers, ...page.headers }, body: page.body };
}

/** The user decides: the owner of this address is unverified. */
export function renderReturnLink(address: string): string {
  const url = new URL(address);
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:';
  const place = isWeb ? url.host : address.replace(/\?.*$/s, '');
  return `
<p>You can go back to the app that sent you here. Do this only if you started the login yourself, from an
app that you trust.</p>
<p><a class="button" href="${escapeHtml(address)}" rel="noreferrer">Go back to <code>${escapeHtml(place)}</code></a></p>`;
}
