// What somebody sees who may not use this gateway: as whom they are logged in, and how to go on.
import { escapeHtml, ICONS, renderHtmlPage } from '../../http/endpoint/html-page.ts';
import type { Reply } from '../../http/endpoint/message.ts';
import { renderReturnLink } from '../../http/endpoint/render-error.ts';
import { UNSEEN } from '../../platform/invisible.ts';
import { shorten } from '../../platform/text.ts';

export interface LoginRefusalLinks {
  /** Begins the login anew, with the choice of another account. */
  readonly retryUrl: string;
  /** Tells the client `access_denied`. */
  readonly clientUrl: string;
}

export interface LoginRefusedPageContent extends LoginRefusalLinks {
  /** `SERVICE_DISPLAY_NAME`. */
  readonly service: string;
  /** As the provider calls the person. */
  readonly who: string;
  /** What the person can do. */
  readonly advice: string;
}

/** Characters. */
const MAX_WHO = 200;

const INVISIBLE = new RegExp(`[${UNSEEN}]`, 'gu');

export function renderLoginRefusedPage(content: LoginRefusedPageContent): Reply {
  const { service, who, advice, retryUrl, clientUrl } = content;
  const shown = shorten(who.replace(INVISIBLE, '\u{fffd}'), MAX_WHO);
  const page = renderHtmlPage(
    'You may not use this gateway',
    `<p>You are logged in as <strong><bdi>${escapeHtml(shown)}</bdi></strong>, who may not use this gateway.</p>
<p>${escapeHtml(advice)}</p>
<p><a class="button" href="${escapeHtml(retryUrl)}">Use another account</a></p>${renderReturnLink(clientUrl)}`,
    { before: `<p class="brand">${ICONS.postern}<span>${escapeHtml(service)}</span></p>` },
  );
  return { status: 403, ...page };
}
