// §27.4: the pages on which users see the calls that wait for them, each exactly as it would be sent, and decide.

import { renderQuoted } from '../../http/endpoint/display-name.ts';
import { escapeHtml } from '../../http/endpoint/html-page.ts';
import type { Reply } from '../../http/endpoint/message.ts';
import {
  DONE_MARK,
  listAppRows,
  type PageOwner,
  renderMinute,
  renderPage,
  renderRows,
  type ShownApp,
  WARNING_MARK,
} from '../../http/endpoint/own-page-parts.ts';
import type { BrowserSession } from '../../http/endpoint/own-pages.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { shorten } from '../../platform/text.ts';
import { type ApprovalRequest, showJson } from './approvals.ts';

/** A request, and the app that sent it. */
export interface ShownRequest {
  readonly request: ApprovalRequest;
  readonly app: ShownApp;
}

export const renderListPage = (
  owner: PageOwner,
  session: BrowserSession,
  shown: readonly ShownRequest[],
): Reply =>
  renderPage(owner, {
    status: 200,
    title: 'Waiting for an approval',
    body: `<p>You are logged in as <strong><bdi>${escapeHtml(session.displayName)}</bdi></strong>. Your apps want to do
these things through ${escapeHtml(owner.displayName)}. None of this has happened yet.</p>
${shown.length === 0 ? '<p>There is nothing to decide.</p>' : shown.map((one) => renderEntry(owner, one)).join('\n')}
<p class="links"><a href="${escapeHtml(owner.baseUrl)}/account">Apps that act for you</a>
<a href="${escapeHtml(owner.baseUrl)}/">Start page</a></p>`,
  });

function renderEntry({ baseUrl }: PageOwner, { request, app }: ShownRequest): string {
  const tool = show(request.name);
  const isYours = request.approver === 'page';
  return `<section class="entry">
<div class="entry-head">
<h2>${tool}</h2>
<span class="state ${isYours ? 'bad' : 'plain'}">${isYours ? 'Waits for you' : 'Waits for an operator'}</span>
</div>
<p class="aside">${[renderQuoted(app.name), escapeHtml(app.host), escapeHtml(app.id ?? '')].filter((one) => one !== '').join(', ')}, ${renderMinute(request.createdAt)}</p>
<p><a href="${escapeHtml(baseUrl)}/approvals/${escapeHtml(request.id)}" aria-label="See what it would do: ${tool}">See what it would do</a></p>
</section>`;
}

/** What one is about to approve. */
export function renderRequestPage(
  owner: PageOwner,
  session: BrowserSession,
  { request, app }: ShownRequest,
): Reply {
  const { tool, server, view } = request;
  const isYours = request.approver === 'page';
  const rows = [
    ['Tool', `<strong>${show(tool)}</strong>`],
    ['Server', server === '' ? escapeHtml(owner.displayName) : show(server)],
    ...listAppRows(app),
    ...(view === undefined ? [] : [['View', show(view)] as const]),
    ['For', `<bdi>${escapeHtml(session.displayName)}</bdi>`],
    ['Asked', renderMinute(request.createdAt)],
  ] as const;
  const form = renderForm(owner, session, request.id, [
    '<button class="primary" name="action" value="approve">Approve</button>',
    '<button name="action" value="refuse">Refuse</button>',
  ]);
  return renderPage(owner, {
    status: 200,
    title: isYours ? 'May this app do this?' : 'This waits for an operator',
    body: `<p>An app of yours wants to call a tool, with exactly what is shown here. ${
      isYours
        ? 'If you approve, it may do so once, within ten minutes. If you did not just use that app, refuse.'
        : `Operators of ${escapeHtml(owner.displayName)} decide about it. You have nothing to do.`
    }</p>
${renderRows(rows)}
${renderJson('arguments', 'Arguments', request.args)}${
  request.meta === undefined ? '' : renderJson('metadata', 'Metadata (_meta)', request.meta)
}
${isYours ? form : renderLinks(owner)}`,
  });
}

const renderJson = (id: string, title: string, canonical: string): string =>
  `<h2 id="${id}">${title}</h2>
<pre tabindex="0" role="region" aria-labelledby="${id}">${escapeHtml(showJson(canonical))}</pre>
`;

export const renderDecidedPage = (
  owner: PageOwner,
  { state, name }: Pick<ApprovalRequest, 'state' | 'name'>,
): Reply =>
  state === 'approved'
    ? renderPage(owner, {
        status: 200,
        title: 'Approved',
        mark: DONE_MARK,
        body: `<p><strong>${show(name)}</strong> may be called once, with exactly what you saw, within ten minutes. Go back to
your app: it goes on by itself. If it does not, ask once more.</p>
<p class="aside">You can close this page.</p>
${renderLinks(owner)}`,
      })
    : renderPage(owner, {
        status: 200,
        title: 'Refused',
        body: `<p>Nothing was done, and your app is told so: <strong>${show(name)}</strong> is not called.</p>
<p class="aside">You can close this page.</p>
${renderLinks(owner)}`,
      });

/** It was made for somebody else, who is not named, and nothing of it is shown. */
export const renderForeignApprovalPage = (
  owner: PageOwner,
  session: BrowserSession,
  id: string,
): Reply =>
  renderPage(owner, {
    status: 403,
    title: 'This link is for somebody else',
    mark: WARNING_MARK,
    body: `<p>You are logged in as <strong><bdi>${escapeHtml(session.displayName)}</bdi></strong>, and this link was made for
another login. Nothing was approved.</p>
<p>If somebody sent it to you, tell them that they have to open it themselves. If you have another account, log in with
that one.</p>
${renderForm(owner, session, id, ['<button name="action" value="switch">Log in as somebody else</button>'])}
${renderLinks(owner)}`,
  });

export const renderGonePage = (owner: PageOwner): Reply =>
  renderPage(owner, {
    status: 410,
    title: 'There is nothing to decide here',
    body: `<p>What waited here was decided and used, or nobody decided within ten minutes. Go back to your app and ask once
more.</p>
<p><a class="button primary" href="${escapeHtml(owner.baseUrl)}/approvals">What waits for you</a></p>`,
  });

const renderLinks = ({ baseUrl }: PageOwner): string =>
  `<p class="links"><a href="${escapeHtml(baseUrl)}/approvals">What waits for you</a></p>`;

const renderForm = (
  { baseUrl }: PageOwner,
  { csrf }: BrowserSession,
  id: string,
  buttons: readonly string[],
): string => `<form method="post" action="${escapeHtml(baseUrl)}/approvals" class="actions">
<input type="hidden" name="csrf" value="${escapeHtml(csrf)}">
<input type="hidden" name="request" value="${escapeHtml(id)}">
${buttons.join('\n')}
</form>`;

/** Servers choose names. HTML. */
const show = (name: string): string => escapeHtml(shorten(escapeInvisible(name), MAX_NAME));

/** Characters. */
const MAX_NAME = 200;
