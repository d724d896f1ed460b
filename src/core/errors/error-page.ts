// An error for whoever looks at a browser, where no redirect is safe.
import { escapeHtml, htmlPage } from '../html.ts';
import type { Reply } from '../message.ts';
import type { GatewayError } from './gateway-error.ts';
import { type ErrorFormat, renderError } from './render.ts';

/** The same status and headers as the reply for programs, with a page for its body. */
export function renderErrorPage(error: GatewayError, format: ErrorFormat): Reply {
  const reply = renderError(error, format);
  const { redirect } = error.failure;
  if (redirect?.isAutomatic) return reply;
  const code = error.row.oauth === 'body' ? error.key : (error.row.oauth ?? error.key);
  const page = htmlPage(
    'The log-in cannot go on',
    `<p>${escapeHtml(error.message)}</p>
<p class="aside">If this comes again after a new start from your program, show this page to whoever
runs this gateway: <code>${escapeHtml(code)}</code>, status ${error.row.status}.</p>${redirect ? wayBack(redirect.url) : ''}`,
  );
  return { ...reply, headers: { ...reply.headers, ...page.headers }, body: page.body };
}

/** A choice of the user's: nobody has looked at who is there. */
function wayBack(address: string): string {
  const url = new URL(address);
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:';
  const place = isWeb ? url.host : address.replace(/\?.*$/s, '');
  return `
<p>The program that sent you here can be told. Go there only if you started this from a program that
you know.</p>
<p><a class="button" href="${escapeHtml(address)}" rel="noreferrer">Go back to <code>${escapeHtml(place)}</code></a></p>`;
}
