// HTML that the gateway's own pages for users have in common.

import { escapeInvisible } from '../../platform/invisible.ts';
import { shorten } from '../../platform/text.ts';
import {
  createDisplayName,
  type DisplayName,
  type NamedClient,
  renderQuoted,
  renderWarning,
} from './display-name.ts';
import { escapeHtml, ICONS, renderHtmlPage } from './html-page.ts';
import type { Reply } from './message.ts';

/** The gateway whose page it is. */
export interface PageOwner {
  /** `SERVICE_DISPLAY_NAME`. */
  readonly displayName: string;
  /** `BASE_URL`. */
  readonly baseUrl: string;
}

interface PageContent {
  readonly status: number;
  readonly title: string;
  /** HTML. */
  readonly mark?: string;
  /** HTML. */
  readonly body: string;
}

export const renderPage = (
  { displayName }: Pick<PageOwner, 'displayName'>,
  { status, title, mark = '', body }: PageContent,
): Reply => ({
  status,
  ...renderHtmlPage(title, body, { before: renderBrand(displayName) + mark }),
});

export const WARNING_MARK = `<div class="mark">${ICONS.warning}</div>`;
export const DONE_MARK = `<div class="mark good">${ICONS.done}</div>`;

/** Above the heading: whose page it is. `service` is `SERVICE_DISPLAY_NAME`. */
export const renderBrand = (service: string): string =>
  `<p class="brand">${ICONS.postern}<span>${escapeHtml(service)}</span></p>`;

/** An app as its user sees it. Anybody may register under any name. */
export interface ShownApp {
  readonly name: DisplayName;
  /** The host where it logs in. */
  readonly host: string;
  /** Undefined unless another app of the user has the same name. */
  readonly id: string | undefined;
}

/** `clients` are all that the user has. */
export function createShowApp(clients: readonly NamedClient[]): (client: NamedClient) => ShownApp {
  const ids = new Map<string, Set<string>>();
  for (const client of clients) {
    const { text } = createDisplayName(client);
    ids.set(text, (ids.get(text) ?? new Set()).add(client.id));
  }
  return function showApp(client) {
    const name = createDisplayName(client);
    const others = ids.get(name.text) ?? new Set();
    const isAlone = others.size <= (others.has(client.id) ? 1 : 0);
    const host = shorten(client.redirectHost ?? '', MAX_HOST);
    return { name, host, id: isAlone ? undefined : escapeInvisible(shorten(client.id, MAX_ID)) };
  };
}

/** As `renderRows` takes them. */
export const listAppRows = ({
  name,
  host,
  id,
}: ShownApp): readonly (readonly [string, string])[] => [
  ['App', `<strong>${renderQuoted(name)}</strong>${renderWarning(name)}`],
  ...(host === '' ? [] : [['Logs in at', `<code>${escapeHtml(host)}</code>`] as const]),
  ...(id === undefined
    ? []
    : [['Its ID, as another has this name', `<code>${escapeHtml(id)}</code>`] as const]),
];

/** Characters. */
const MAX_HOST = 200;
const MAX_ID = 300;

/** To the minute, as these pages know no time zone of their reader. */
export function renderMinute(time: number): string {
  const iso = new Date(time).toISOString();
  return `<time datetime="${iso}">${iso.slice(0, 16).replace('T', ' ')} UTC</time>`;
}

/** Both are HTML. */
export const renderRows = (
  rows: readonly (readonly [term: string, value: string])[],
): string => `<dl>
${rows.map(([term, value]) => `<div><dt>${term}</dt><dd>${value}</dd></div>`).join('\n')}
</dl>`;

/** RFC 6749 §3.3: printable ASCII; whatever else a link may have in it is not shown as it is. */
export const renderScopes = (scopes: readonly string[]): string =>
  scopes
    .map((scope) => scope.replace(/[^\x21-\x7E]/g, '?'))
    .map((scope) => `<code>${escapeHtml(shorten(scope, MAX_SCOPE))}</code>`)
    .join(' ');

/** Characters. */
const MAX_SCOPE = 1000;

// The page for a login that came to nothing.

/** `error` is that of the address, `url` leads to the page once more. */
export function renderLoginFailed(service: string, error: string, url: string): Reply {
  // Anybody can write what stands in an address: of that nothing is shown.
  const explanation =
    error === 'access_denied'
      ? 'The identity provider did not let you in, or the login was cancelled.'
      : 'The identity provider could not log you in. Try again; if it fails again, tell whoever runs this gateway.';
  return renderPage(
    { displayName: service },
    {
      status: 200,
      title: 'The login did not work',
      body: `<p>${escapeHtml(explanation)}</p>
<p><a class="button primary" href="${escapeHtml(url)}">Try again</a></p>`,
    },
  );
}
