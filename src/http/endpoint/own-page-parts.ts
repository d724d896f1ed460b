// Renders common HTML of the gateway's own pages for users.

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

/** The gateway that the page belongs to. */
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

/** HTML for the beginning of a sentence. `name` is what the user recognizes the login by. */
export const renderLoggedIn = (name: string): string =>
  `You are logged in as <strong><bdi>${escapeHtml(name)}</bdi></strong>`;

/** HTML: a form that posts to `action`; fields and buttons are HTML. */
export const renderForm = (
  action: string,
  { csrf }: { readonly csrf: string },
  fields: string,
): string => `<form method="post" action="${escapeHtml(action)}" class="actions">
${renderField('csrf', csrf)}
${fields}
</form>`;

/** HTML: a hidden field. */
export const renderField = (name: string, value: string): string =>
  `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;

/** The page for a link that was made for another user, who is not named and can still use it. `rest` is HTML. */
export const renderForeignPage = (
  owner: PageOwner,
  name: string,
  done: 'approved' | 'connected',
  rest: string,
): Reply =>
  renderPage(owner, {
    status: 403,
    title: 'This link is for another user',
    mark: WARNING_MARK,
    body: `<p>${renderLoggedIn(name)}, and this link was made for
another login. Nothing was ${done}.</p>
<p>If someone sent it to you, tell them that they have to open it themselves. If you have another account, log in with
that one.</p>
${rest}`,
  });

/** The button for logging in as another user. */
export const SWITCH = '<button name="action" value="switch">Log in as another user</button>';

export const WARNING_MARK = `<div class="mark">${ICONS.warning}</div>`;
export const DONE_MARK = `<div class="mark good">${ICONS.done}</div>`;

/** Shown above the heading: the service that the page belongs to. `service` is `SERVICE_DISPLAY_NAME`. */
export const renderBrand = (service: string): string =>
  `<p class="brand">${ICONS.postern}<span>${escapeHtml(service)}</span></p>`;

/** An app as shown to its user. Any client may register under any name. */
export interface ShownApp {
  readonly name: DisplayName;
  /** The host of its redirect URI. */
  readonly host: string;
  /** Undefined unless another app of the user has the same name. */
  readonly id: string | undefined;
}

/** `clients` are all clients of the user. */
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

/** In the form that `renderRows` expects. */
export const listAppRows = ({
  name,
  host,
  id,
}: ShownApp): readonly (readonly [string, string])[] => [
  ['App', `<strong>${renderQuoted(name)}</strong>${renderWarning(name)}`],
  ...(host === '' ? [] : [['Logs in at', `<code>${escapeHtml(host)}</code>`] as const]),
  ...(id === undefined
    ? []
    : [['ID, as another app has this name', `<code>${escapeHtml(id)}</code>`] as const]),
];

/** In characters. */
const MAX_HOST = 200;
const MAX_ID = 300;

/** To the minute, in UTC, since these pages do not know the reader's time zone. */
export function renderMinute(time: number): string {
  const iso = new Date(time).toISOString();
  return `<time datetime="${iso}">${iso.slice(0, 16).replace('T', ' ')} UTC</time>`;
}

/** Both columns are HTML. */
export const renderRows = (
  rows: readonly (readonly [term: string, value: string])[],
): string => `<dl>
${rows.map(([term, value]) => `<div><dt>${term}</dt><dd>${value}</dd></div>`).join('\n')}
</dl>`;

/** RFC 6749 §3.3: scopes are printable ASCII; any other text in a link is not shown unchanged. */
export const renderScopes = (scopes: readonly string[]): string =>
  scopes
    .map((scope) => scope.replace(/[^\x21-\x7E]/g, '?'))
    .map((scope) => `<code>${escapeHtml(shorten(scope, MAX_SCOPE))}</code>`)
    .join(' ');

/** In characters. */
const MAX_SCOPE = 1000;

// The page for a failed login.

/** `error` is from the URL; `url` leads to the page again. */
export function renderLoginFailed(service: string, error: string, url: string): Reply {
  // URLs can be forged: no text from the URL is shown.
  const explanation =
    error === 'access_denied'
      ? 'The identity provider refused the login, or it was cancelled.'
      : 'The identity provider could not log you in. Try again; if it fails again, tell the administrator of this gateway.';
  return renderPage(
    { displayName: service },
    {
      status: 200,
      title: 'Login failed',
      body: `<p>${escapeHtml(explanation)}</p>
<p><a class="button primary" href="${escapeHtml(url)}">Try again</a></p>`,
    },
  );
}
