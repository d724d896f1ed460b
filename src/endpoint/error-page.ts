// An error as a page, for a browser that cannot be redirected safely.

import type { GatewayError } from '../errors/gateway-error.ts';
import { escapeHtml, ICONS, renderHtmlPage } from './html-page.ts';
import type { Reply } from './message.ts';
import { type ErrorFormat, renderError } from './render-error.ts';

/** The same status and headers as the reply for programs, with a page for its body. */
export function renderErrorPage(error: GatewayError, format: ErrorFormat): Reply {
  const reply = renderError(error, format);
  const { redirect } = error.failure;
  if (redirect?.isAutomatic) return reply;
  const code = error.row.oauth === 'body' ? error.key : (error.row.oauth ?? error.key);
  const page = renderHtmlPage(
    'Login failed',
    `<p>${escapeHtml(error.message)}</p>
<p class="aside">If this happens again when you start over from your app, send this page to the administrator
of this gateway: <code>${escapeHtml(code)}</code>, status ${error.row.status}.</p>${redirect ? renderReturnLink(redirect.url) : ''}`,
    { before: `<div class="mark">${ICONS.warning}</div>` },
  );
  return { ...reply, headers: { ...reply.headers, ...page.headers }, body: page.body };
}

/** The user decides: nobody has checked who is behind this address. */
function renderReturnLink(address: string): string {
  const url = new URL(address);
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:';
  const place = isWeb ? url.host : address.replace(/\?.*$/s, '');
  return `
<p>You can go back to the app that sent you here. Do this only if you started the login yourself, from an
app that you trust.</p>
<p><a class="button" href="${escapeHtml(address)}" rel="noreferrer">Go back to <code>${escapeHtml(place)}</code></a></p>`;
}
