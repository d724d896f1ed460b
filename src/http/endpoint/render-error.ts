import type { OAuthErrorCode } from '../../errors/catalogue.ts';
import type { GatewayError, JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import type { JsonObject } from '../../platform/json.ts';
import { toErrorDescription } from '../../platform/text.ts';
import { escapeHtml, ICONS, renderHtmlPage } from './html-page.ts';
import { createRedirectReply, type Reply } from './message.ts';

/** The form in which a route speaks of errors (§7.1 or §7.3). */
export type ErrorFormat = { readonly form: 'jsonrpc' } | OAuthErrorFormat;

interface OAuthErrorFormat {
  readonly form: 'oauth';
  /** The code for a body that cannot be read (§7.3). */
  readonly body: OAuthErrorCode;
  /** The code for a request that comes too soon; without one limits answer as §7.2 says. */
  readonly limit?: OAuthErrorCode;
}

export const JSONRPC: ErrorFormat = { form: 'jsonrpc' };
export const OAUTH = { form: 'oauth', body: 'invalid_request' } as const satisfies ErrorFormat;

/** The reply for an error of a request that has no id, or whose id is not known yet. */
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

/** The members of a reply that the log tells of an error. */
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

// An error as a page, for a browser that cannot be redirected safely.

/** The same status and headers as the reply for programs, with a page for its body. */
export function renderErrorPage(
  error: GatewayError,
  format: ErrorFormat,
  /** True if it is a login by an app that failed. */
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

/** The user decides: nobody has checked who is behind this address. */
export function renderReturnLink(address: string): string {
  const url = new URL(address);
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:';
  const place = isWeb ? url.host : address.replace(/\?.*$/s, '');
  return `
<p>You can go back to the app that sent you here. Do this only if you started the login yourself, from an
app that you trust.</p>
<p><a class="button" href="${escapeHtml(address)}" rel="noreferrer">Go back to <code>${escapeHtml(place)}</code></a></p>`;
}
