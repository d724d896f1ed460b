// The page on which users see which apps may act for them, and end that.
import { escapeHtml } from '../../http/endpoint/html-page.ts';
import type { Reply } from '../../http/endpoint/message.ts';
import {
  createShowApp,
  listAppRows,
  type PageOwner,
  renderMinute,
  renderPage,
  renderRows,
  type ShownApp,
} from '../../http/endpoint/own-page-parts.ts';
import { shorten } from '../../platform/text.ts';
import type { Grant } from '../grants/grant.ts';
import type { StoredBrowserSession } from './browser-sessions.ts';

export interface AccountPageContent {
  readonly owner: PageOwner;
  readonly session: StoredBrowserSession;
  /** The latest first. */
  readonly grants: readonly Grant[];
  /** The host that logs browsers out at the provider; undefined without one. */
  readonly providerHost: string | undefined;
  /** Users connect servers, at a page of its own. */
  readonly hasConnections: boolean;
  /** Asks once more before all logins end. */
  readonly asksForAll: boolean;
  /** The provider was to ask who it is, and did not say that it did. */
  readonly wasNotAsked: boolean;
  /** The number of logins that were to end and did not. */
  readonly notEnded: number;
}

export function renderAccountPage(content: AccountPageContent): Reply {
  const { owner, session, grants, wasNotAsked, notEnded } = content;
  const showApp = createShowApp(grants.map(({ client }) => client));
  return renderPage(owner, {
    status: 200,
    title: 'Apps that act for you',
    body: `${notEnded === 0 ? '' : renderNotEnded(notEnded)}${wasNotAsked ? NOT_ASKED : ''}
<p>You are logged in as <strong><bdi>${escapeHtml(session.displayName)}</bdi></strong>. These apps may use
${escapeHtml(owner.displayName)} on your behalf. One that you log out has to ask you again before it can do anything.</p>
${grants.length === 0 ? '<p>There are none.</p>' : grants.map((grant) => renderGrant(grant, showApp(grant.client), content)).join('\n')}
${grants.length < 2 ? '' : renderAll(content)}
${renderForm(content, '<button name="action" value="leave">Leave this page</button>')}
${renderAtProvider(content, '<button name="action" value="leave_provider">', 'Leave this page, and log out at')}
${content.hasConnections ? `<p class="links"><a href="${escapeHtml(owner.baseUrl)}/connections">Your connections to servers</a></p>` : ''}`,
  });
}

const renderNotEnded = (count: number): string =>
  `<p class="warning" role="alert">${count === 1 ? 'One app' : `${count} apps`} could not be logged out. Try again in a moment.</p>`;

const NOT_ASKED =
  '<p class="warning" role="alert">Your identity provider did not say that it asked who you are, so not all apps can be logged out at once. Log them out one by one.</p>';

function renderGrant(grant: Grant, app: ShownApp, content: AccountPageContent): string {
  const rows: readonly (readonly [string, string])[] = [
    ...listAppRows(app),
    ['Since', renderMinute(grant.createdAt)],
    ['Last refreshed', renderMinute(grant.issued.issuedAt)],
  ];
  return `<section>
${renderRows(rows)}
${renderForm(
  content,
  `<input type="hidden" name="grant" value="${escapeHtml(grant.id)}">
<button name="action" value="end" aria-label="Log out ${escapeHtml([app.name.text, app.id].filter(Boolean).join(', '))}">Log out</button>`,
)}
</section>`;
}

function renderAll(content: AccountPageContent): string {
  if (!content.asksForAll) {
    return renderForm(content, '<button name="action" value="ask_all">Log out everywhere</button>');
  }
  return `<p class="warning" role="alert">All apps in this list will have to log in again.</p>
${renderForm(
  content,
  '<button class="primary" name="action" value="end_all">Log out everywhere now</button>',
)}
${renderAtProvider(content, '<button name="action" value="end_all_provider">', 'Log out everywhere now, and at')}`;
}

/** Nothing where the provider has no page for it. */
const renderAtProvider = (content: AccountPageContent, button: string, label: string): string =>
  content.providerHost === undefined
    ? ''
    : renderForm(
        content,
        `${button}${label} ${escapeHtml(shorten(content.providerHost, MAX_HOST))}</button>`,
      );

const renderForm = (
  { owner, session }: AccountPageContent,
  fields: string,
): string => `<form method="post" action="${escapeHtml(owner.baseUrl)}/account">
<input type="hidden" name="csrf" value="${escapeHtml(session.csrf)}">
${fields}
</form>`;

/** Characters. */
const MAX_HOST = 200;

/** For who comes back from the provider, where the browser was logged out. */
export const renderLoggedOut = (owner: PageOwner, host: string): Reply =>
  renderPage(owner, {
    status: 200,
    title: 'You are logged out',
    body: `<p>You are logged out of this page. To log you out there, too, it sent you to
<strong>${escapeHtml(shorten(host, MAX_HOST))}</strong>, from where you come back.</p>
<p><a class="button" href="${escapeHtml(owner.baseUrl)}/account">Log in again</a></p>`,
  });
