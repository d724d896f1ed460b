// §5.11: `/account`: users see which clients act for them, and log them out. The gateway itself logs them in.

import type { PublicEndpoint } from '../../http/endpoint/endpoint.ts';
import { escapeHtml } from '../../http/endpoint/html-page.ts';
import {
  createRedirectReply,
  type GatewayRequest,
  type Reply,
  type RequestBody,
} from '../../http/endpoint/message.ts';
import {
  createShowApp,
  listAppRows,
  type PageOwner,
  renderField,
  renderLoggedIn,
  renderLoginFailed,
  renderMinute,
  renderPage,
  renderRows,
  type ShownApp,
} from '../../http/endpoint/own-page-parts.ts';
import { checkCsrf, createOwnPageEndpoint, type OwnPages } from '../../http/endpoint/own-pages.ts';
import {
  createNameCheck,
  failRequest,
  parseBody,
  parseQuery,
} from '../../http/endpoint/parameters.ts';
import { shorten } from '../../platform/text.ts';
import { createSecretRecords } from '../../store/records.ts';
import { auditEnd } from '../broker/ends.ts';
import { buildProviderRequest } from '../broker/login.ts';
import type { Broker } from '../broker/open-broker.ts';
import type { Grant } from '../grants/grant.ts';
import { hashUser } from '../grants/token-codec.ts';
import type {
  FoundBrowserSession,
  StoredBrowserSession,
  StoredBrowserSessions,
} from './browser-sessions.ts';

/** Fields of the forms. */
const checkFieldName = createNameCheck(['csrf', 'action', 'grant']);

export function createAccountEndpoints(
  { runtime, ownTokens: { grants }, endpoints, ends }: Broker,
  browserSessions: StoredBrowserSessions,
  { browsers, beginLogin }: OwnPages,
): readonly PublicEndpoint[] {
  const { config, baseUrl, audit, oauth } = runtime;
  /** Browsers on their way to the provider's logout page; found by the state that they bring back. */
  const ending = createSecretRecords<{
    readonly browser: string | undefined;
    readonly host: string;
  }>(runtime, 'provider-logout', ENDING_SECONDS);
  const url = `${baseUrl}/account`;

  async function show(session: StoredBrowserSession, shown: ShownOnce): Promise<Reply> {
    const [list, endSessionUrl] = await Promise.all([
      grants.listOfUser(session.user),
      endpoints.findEndSessionUrl(),
    ]);
    return renderAccountPage({
      owner: config.server,
      session,
      grants: [...list].sort((one, other) => other.createdAt - one.createdAt),
      providerHost: endSessionUrl && new URL(endSessionUrl).host,
      hasConnections: runtime.servers.hasConnections(),
      ...shown,
    });
  }

  async function get({ query }: GatewayRequest, cookie: string | undefined): Promise<Reply> {
    const parameters = parseQuery(query, () => {});
    const problem = parameters.get('error');
    if (problem !== undefined) return renderLoginFailed(config.server.displayName, problem, url);
    const found = await browserSessions.find(cookie);
    if (found !== undefined) {
      const { session } = found;
      return show(session, {
        asksForAll: parameters.get('all') !== undefined && session.isFresh,
        wasNotAsked: parameters.get('unsure') !== undefined && !session.isFresh,
      });
    }
    const state = parameters.get('state');
    const ended = state && (await ending.get(state));
    const browser = browsers.readHash(cookie);
    // A user who has just logged out at the provider is not asked to log in again. Anybody can write a state into an address: it
    // must belong to this browser.
    return ended && browser !== undefined && ended.browser === browser
      ? renderLoggedOut(config.server, ended.host)
      : beginLogin(cookie, { page: '/account', isFresh: false });
  }

  async function post(
    { clientIp: ip }: GatewayRequest,
    cookie: string | undefined,
    body: RequestBody,
  ): Promise<Reply> {
    const parameters = parseBody(body, checkFieldName);
    const found = await browserSessions.find(cookie);
    // The session has ended: the next visitor logs in first.
    if (found === undefined) return createRedirectReply(url);
    const { session } = found;
    checkCsrf(parameters, session);
    const action = parameters.require('action');
    if (action === 'end') {
      const id = parameters.require('grant');
      const owner = (await grants.read(id))?.grant.user;
      // A login of a different user does not count.
      const isTheirs = owner !== undefined && hashUser(owner) === hashUser(session.user);
      const ended = isTheirs ? await ends.endGrant(id, 'user') : undefined;
      if (ended !== undefined) auditEnd(audit, ended, 'account', ip);
      return createRedirectReply(url);
    }
    const endsAll = action === 'end_all' || action === 'end_all_provider';
    if (action === 'ask_all' || (endsAll && !session.isFresh))
      return session.isFresh
        ? createRedirectReply(`${url}?all=1`)
        : beginLogin(cookie, { page: '/account', isFresh: true });
    if (action === 'end_all') return endAll(found, ip);
    if (action === 'end_all_provider') return endAll(found, ip, () => leave(found, cookie, true));
    if (action === 'leave') return leave(found, cookie, false);
    if (action === 'leave_provider') return leave(found, cookie, true);
    return failRequest(
      'action must be end, ask_all, end_all, end_all_provider, leave or leave_provider.',
    );
  }

  /**
   * `isEverywhere`: at the provider, too, if it has a page for that (§13.5, OpenID Connect RP-Initiated Logout 1.0). The browser
   * goes there.
   */
  async function leave(
    { session, end }: FoundBrowserSession,
    cookie: string | undefined,
    isEverywhere: boolean,
  ): Promise<Reply> {
    await end();
    const atProvider = isEverywhere ? await endpoints.findEndSessionUrl() : undefined;
    let next = `${baseUrl}/`;
    if (atProvider !== undefined) {
      const { host } = new URL(atProvider);
      const state = await ending.put({ browser: browsers.readHash(cookie), host });
      next = buildProviderRequest(atProvider, [
        ['client_id', oauth.providerClient.id],
        ['id_token_hint', session.idToken],
        ['post_logout_redirect_uri', url],
        ['state', state],
      ]);
    }
    return createRedirectReply(next, browserSessions.removal);
  }

  /** Other browsers of the user are logged out of this page, too; this one sees the outcome. */
  async function endAll(found: FoundBrowserSession, ip: string, finish?: () => Promise<Reply>) {
    const { user } = found.session;
    const { failed, logoutMark } = await ends.endSelectedGrants({ user }, 'user', (grant) =>
      auditEnd(audit, grant, 'account', ip),
    );
    if (failed === 0 && finish !== undefined) return finish();
    const { session, headers } = await found.renew(logoutMark);
    if (failed === 0) return createRedirectReply(url, headers);
    const page = await show(session, { asksForAll: true, notEnded: failed });
    return { ...page, headers: { ...page.headers, ...headers } };
  }

  const serve = createOwnPageEndpoint(browserSessions, 'account');
  return [serve('GET', '/account', get), serve('POST', '/account', post)];
}

/** The provider may ask for confirmation. */
const ENDING_SECONDS = 600;

// HTML of the page where users see which apps may act for them, and end that.

interface AccountPageContent extends ShownOnce {
  readonly owner: PageOwner;
  readonly session: StoredBrowserSession;
  /** Latest first. */
  readonly grants: readonly Grant[];
  /** Host of the provider's logout page; undefined without one. */
  readonly providerHost: string | undefined;
  /** Users connect servers on another page. */
  readonly hasConnections: boolean;
}

/** Parts of the page about the previous request. */
interface ShownOnce {
  /** Asks for confirmation before all logins end. */
  readonly asksForAll?: boolean;
  /** The provider should have authenticated the user again, and did not confirm that it did. */
  readonly wasNotAsked?: boolean;
  /** Number of logins that could not be ended. */
  readonly notEnded?: number;
}

function renderAccountPage(content: AccountPageContent): Reply {
  const { owner, session, grants, wasNotAsked, notEnded = 0 } = content;
  const showApp = createShowApp(grants.map(({ client }) => client));
  return renderPage(owner, {
    status: 200,
    title: 'Apps that act for you',
    body: `${notEnded === 0 ? '' : `<p class="warning" role="alert">${notEnded === 1 ? 'One app' : `${notEnded} apps`} could not be logged out. Try again in a moment.</p>`}${wasNotAsked ? NOT_ASKED : ''}
<p>${renderLoggedIn(session.displayName)}. ${
      grants.length === 0
        ? `No app may use ${escapeHtml(owner.displayName)} on your behalf.`
        : `These apps may use ${escapeHtml(owner.displayName)} on your behalf. An app that you log out has to ask you again before it can do anything.`
    }</p>
${grants.map((grant) => renderGrant(grant, showApp(grant.client), content)).join('\n')}
${grants.length < 2 ? '' : renderAll(content)}
${renderForm(content, '<button name="action" value="leave">Leave this page</button>')}
${renderAtProvider(content, '<button name="action" value="leave_provider">', 'Leave this page, and log out at')}
${content.hasConnections ? `<p class="links"><a href="${escapeHtml(owner.baseUrl)}/connections">Your connections to servers</a></p>` : ''}`,
  });
}

const NOT_ASKED =
  '<p class="warning" role="alert">Your identity provider did not confirm that you logged in again, so you cannot log out all apps at once. Log them out one by one.</p>';

function renderGrant(grant: Grant, app: ShownApp, content: AccountPageContent) {
  return `<section>
${renderRows([
  ...listAppRows(app),
  ['Since', renderMinute(grant.createdAt)],
  ['Last refreshed', renderMinute(grant.issued.issuedAt)],
])}
${renderForm(
  content,
  `${renderField('grant', grant.id)}
<button name="action" value="end" aria-label="Log out ${escapeHtml([app.name.text, app.id].filter(Boolean).join(', '))}">Log out</button>`,
)}
</section>`;
}

function renderAll(content: AccountPageContent) {
  if (!content.asksForAll)
    return renderForm(content, '<button name="action" value="ask_all">Log out everywhere</button>');
  return `<p class="warning" role="alert">All apps in this list will have to log in again.</p>
${renderForm(
  content,
  '<button class="primary" name="action" value="end_all">Log out everywhere now</button>',
)}
${renderAtProvider(content, '<button name="action" value="end_all_provider">', 'Log out everywhere now, and at')}`;
}

/** Empty if the provider has no logout page. */
const renderAtProvider = (content: AccountPageContent, button: string, label: string) =>
  content.providerHost === undefined
    ? ''
    : renderForm(
        content,
        `${button}${label} ${escapeHtml(shorten(content.providerHost, MAX_HOST))}</button>`,
      );

const renderForm = (
  { owner, session }: AccountPageContent,
  fields: string,
) => `<form method="post" action="${escapeHtml(owner.baseUrl)}/account">
${renderField('csrf', session.csrf)}
${fields}
</form>`;

/** Characters. */
const MAX_HOST = 200;

/** For users who come back from the provider, logged out. */
const renderLoggedOut = (owner: PageOwner, host: string) =>
  renderPage(owner, {
    status: 200,
    title: 'You are logged out',
    body: `<p>You are logged out of this page. To log you out there, too, it sent you to
<strong>${escapeHtml(shorten(host, MAX_HOST))}</strong>, which sends you back here.</p>
<p><a class="button" href="${escapeHtml(owner.baseUrl)}/account">Log in again</a></p>`,
  });
