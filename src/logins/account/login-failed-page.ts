// Where the login for a page of the gateway's own came to nothing.
import { escapeHtml, renderHtmlPage } from '../../http/endpoint/html-page.ts';
import type { Reply } from '../../http/endpoint/message.ts';
import { renderBrand } from './page-parts.ts';

/** `error` is that of the address, `url` leads to the page once more. */
export function renderLoginFailed(service: string, error: string, url: string): Reply {
  const page = renderHtmlPage(
    'The login did not work',
    `<p>${escapeHtml(explain(error))}</p>
<p><a class="button primary" href="${escapeHtml(url)}">Try again</a></p>`,
    { before: renderBrand(service) },
  );
  return { status: 200, ...page };
}

/** Anybody can write what stands in an address: of that nothing is shown. */
const explain = (error: string): string =>
  error === 'access_denied'
    ? 'The identity provider did not let you in, or the login was cancelled.'
    : 'The identity provider could not log you in. Try again; if it fails again, tell whoever runs this gateway.';
