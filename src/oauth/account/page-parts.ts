// What the gateway's own pages for users have in common.
import { escapeHtml, ICONS, renderHtmlPage } from '../../endpoint/html-page.ts';
import type { Reply } from '../../endpoint/message.ts';

/** The gateway whose page it is. */
export interface PageOwner {
  /** `SERVICE_DISPLAY_NAME`. */
  readonly displayName: string;
  /** `BASE_URL`. */
  readonly baseUrl: string;
}

interface PageParts {
  readonly status: number;
  readonly title: string;
  /** HTML. */
  readonly mark?: string;
  /** HTML. */
  readonly body: string;
}

export const renderPage = (
  { displayName }: PageOwner,
  { status, title, mark = '', body }: PageParts,
): Reply => ({
  status,
  ...renderHtmlPage(title, body, { before: renderBrand(displayName) + mark }),
});

export const WARNING_MARK = `<div class="mark">${ICONS.warning}</div>`;
export const DONE_MARK = `<div class="mark good">${ICONS.done}</div>`;

/** Above the heading: whose page it is. `service` is `SERVICE_DISPLAY_NAME`. */
export const renderBrand = (service: string): string =>
  `<p class="brand">${ICONS.postern}<span>${escapeHtml(service)}</span></p>`;

/** To the minute, as these pages know no time zone of their reader. */
export function renderTime(time: number): string {
  const iso = new Date(time).toISOString();
  return `<time datetime="${iso}">${iso.slice(0, 16).replace('T', ' ')} UTC</time>`;
}

/** Both are HTML. */
export const renderRows = (
  rows: readonly (readonly [term: string, value: string])[],
): string => `<dl>
${rows.map(([term, value]) => `<div><dt>${term}</dt><dd>${value}</dd></div>`).join('\n')}
</dl>`;
