// §24.3: the page on which users see the servers that want a login of theirs, and connect and disconnect.

import { escapeHtml, renderHtmlPage } from '../../http/endpoint/html-page.ts';
import type { Reply } from '../../http/endpoint/message.ts';
import {
  renderBrand,
  renderMinute,
  renderRows,
  renderScopes,
} from '../../http/endpoint/own-page-parts.ts';
import type { BrowserSession } from '../../http/endpoint/own-pages.ts';

import type { ConnectionInfo, ConnectionServer } from '../../mcp/upstream/connection.ts';
import { shorten } from '../../platform/text.ts';

export interface ShownConnection {
  readonly server: ConnectionServer;
  readonly info: ConnectionInfo;
}

export interface ConnectionsPageContent {
  /** `SERVICE_DISPLAY_NAME`. */
  readonly service: string;
  /** `BASE_URL`. */
  readonly baseUrl: string;
  readonly session: BrowserSession;
  /** In the order of the configuration file. */
  readonly shown: readonly ShownConnection[];
  /** A connection that has just ended, and what its server did not do for it. */
  readonly ended: { readonly server: string; readonly problem: string } | undefined;
}

export function renderConnectionsPage(content: ConnectionsPageContent): Reply {
  const { service, baseUrl, session, shown, ended } = content;
  const page = renderHtmlPage(
    'Your connections',
    `${ended === undefined ? '' : renderEnded(ended)}
<p>You are logged in as <strong><bdi>${escapeHtml(session.displayName)}</bdi></strong>. These servers want to know who you
are: once you connect one, your apps can use it as you, through ${escapeHtml(service)}.</p>
${shown.length === 0 ? '<p>There are none.</p>' : shown.map((one) => renderConnection(one, content)).join('\n')}
<p class="links"><a href="${escapeHtml(baseUrl)}/account">Apps that act for you</a>
<a href="${escapeHtml(baseUrl)}/">Start page</a></p>`,
    { before: renderBrand(service) },
  );
  return { status: 200, ...page };
}

const renderEnded = ({ server, problem }: { readonly server: string; readonly problem: string }) =>
  `<p class="warning" role="alert"><strong>${escapeHtml(server)}</strong> is disconnected here, and what was kept of it is
deleted. But ${escapeHtml(problem)}.</p>`;

const STATES = {
  active: 'Connected',
  missing: 'Not connected',
  'login needed': 'Login needed',
} as const;

/** Classes of the style sheet. */
const LOOKS = { active: 'good', missing: 'plain', 'login needed': 'bad' } as const;

function renderConnection(one: ShownConnection, content: ConnectionsPageContent): string {
  const { server, info } = one;
  const isShared = server.auth.owner === 'shared';
  const mayChange = !isShared || content.session.isOperator;
  return `<section class="entry" aria-labelledby="server-${escapeHtml(server.name)}">
<div class="entry-head">
<h2 id="server-${escapeHtml(server.name)}">${escapeHtml(server.name)}</h2>
<span class="state ${LOOKS[info.state]}">${STATES[info.state]}</span>
</div>
<p class="aside"><code>${escapeHtml(shorten(new URL(server.url).host, MAX_HOST))}</code></p>
${isShared ? `<p class="aside">${describeShared(content.session.isOperator)}</p>` : ''}
${info.state === 'missing' || !mayChange ? '' : renderFacts(info)}
${info.problem === undefined || !mayChange ? '' : `<p class="warning">${escapeHtml(info.problem)}</p>`}
${mayChange ? renderActions(one, content) : ''}
</section>`;
}

const describeShared = (isOperator: boolean): string =>
  isOperator
    ? 'One connection for everybody. It is made by your operators, of whom you are one.'
    : 'Made by your operators, for everybody.';

function renderFacts({ account, since, scopes }: ConnectionInfo): string {
  const rows = [
    account === undefined
      ? undefined
      : (['Account', `<bdi>${escapeHtml(shorten(account, MAX_ACCOUNT))}</bdi>`] as const),
    since === undefined ? undefined : (['Since', renderMinute(since)] as const),
    scopes === undefined || scopes.length === 0
      ? undefined
      : (['Permissions', renderScopes(scopes)] as const),
  ].filter((row) => row !== undefined);
  return rows.length === 0 ? '' : renderRows(rows);
}

/** What is wanted of who sees it stands first, and stands out. */
function renderActions(
  { server: { name }, info: { state } }: ShownConnection,
  { baseUrl, session }: ConnectionsPageContent,
): string {
  const label = escapeHtml(name);
  const connect =
    state === 'missing'
      ? `<button class="primary" name="action" value="connect" aria-label="Connect ${label}">Connect</button>`
      : `<button${state === 'active' ? '' : ' class="primary"'} name="action" value="connect" aria-label="Reconnect ${label}">Reconnect</button>`;
  const disconnect = `<button name="action" value="disconnect" aria-label="Disconnect ${label}">Disconnect</button>`;
  return `<form method="post" action="${escapeHtml(baseUrl)}/connections" class="actions">
<input type="hidden" name="csrf" value="${escapeHtml(session.csrf)}">
<input type="hidden" name="server" value="${label}">
${connect}${state === 'missing' ? '' : `\n${disconnect}`}
</form>`;
}

/** Characters. */
const MAX_HOST = 200;
const MAX_ACCOUNT = 100;
