// What the gateway's own pages for users have in common.
import { escapeHtml, ICONS } from '../../endpoint/html-page.ts';

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
