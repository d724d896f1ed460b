// §24.3: HTML of the pages about one connection: before it is made, its outcome, and problems.

import { escapeHtml, renderHtmlPage } from '../../http/endpoint/html-page.ts';
import type { Reply } from '../../http/endpoint/message.ts';
import {
  DONE_MARK,
  type PageOwner,
  renderBrand,
  renderField,
  renderForeignPage,
  renderForm,
  renderLoggedIn,
  renderMinute,
  renderPage,
  renderRows,
  renderScopes,
  SWITCH,
  WARNING_MARK,
} from '../../http/endpoint/own-page-parts.ts';
import type { BrowserSession } from '../../http/endpoint/own-pages.ts';
import type {
  ConnectionInfo,
  ConnectionProblem,
  ConnectionServer,
} from '../../mcp/upstream/connections.ts';
import { shorten } from '../../platform/text.ts';

/** Asks the user before the login begins. */
export function renderConnectPage(
  owner: PageOwner,
  {
    server,
    session,
    requestId,
    scopes,
    hosts,
  }: {
    readonly server: ConnectionServer;
    readonly session: BrowserSession;
    /** ID of the link that led here; undefined for users who came without one. */
    readonly requestId: string | undefined;
    /** Requested scopes; undefined for those that the server names. */
    readonly scopes: readonly string[] | undefined;
    /** Host of the login, then hosts of the other endpoints; undefined if unknown. */
    readonly hosts: readonly string[] | undefined;
  },
): Reply {
  const { displayName } = owner;
  const name = escapeHtml(server.name);
  const isShared = server.auth.owner === 'shared';
  const rows = [
    [
      'Server',
      `<strong>${name}</strong><br><span class="aside"><code>${escapeHtml(shorten(new URL(server.url).host, MAX_HOST))}</code></span>`,
    ],
    [
      isShared ? 'For' : 'For you',
      isShared
        ? '<strong>all users</strong> who may use this server here'
        : `<strong><bdi>${escapeHtml(session.displayName)}</bdi></strong><br><span class="aside">your account at ${escapeHtml(displayName)}</span>`,
    ],
    ['Login at', renderHosts(hosts)],
    ['Permissions', scopes?.length ? renderScopes(scopes) : 'shown by the server on the next page'],
  ] as const;
  const what = isShared
    ? `All users of <strong>${name}</strong> in ${escapeHtml(displayName)} will act as the account that you log in with
on the next page. Use an account for this purpose, not your own.`
    : `Your apps will be able to use <strong>${name}</strong> as you, through ${escapeHtml(displayName)}. On the next page, log
in there with your account.`;
  const advice =
    requestId === undefined
      ? ''
      : '\n<p class="aside">An app sent you here. If you did not just use one, do not continue.</p>';
  return renderPage(owner, {
    status: 200,
    title: `Connect ${server.name}?`,
    body: `<p>${what}</p>
${renderRows(rows)}${advice}
${renderServerForm(owner, session, { server: server.name, requestId, hosts }, [
  '<button class="primary" name="action" value="connect">Continue</button>',
  '<button name="action" value="decline">Not now</button>',
])}`,
  });
}

function renderHosts(hosts: readonly string[] | undefined) {
  const [host, ...others] = (hosts ?? []).map(
    (one) => `<code>${escapeHtml(shorten(one, MAX_HOST))}</code>`,
  );
  if (host === undefined) return 'not available right now; continue to see why';
  return others.length === 0
    ? host
    : `${host}<br><span class="aside">the result also goes to ${others.join(' and ')}</span>`;
}

/** The connection is established. */
export const renderConnectedPage = (
  owner: PageOwner,
  { server, account, problem }: Pick<ConnectionInfo, 'server' | 'account' | 'problem'>,
): Reply =>
  renderPage(owner, {
    status: 200,
    title: `You are connected to ${server}`,
    mark: DONE_MARK,
    body: `<p>${
      account === undefined
        ? ''
        : `The account there is <strong><bdi>${escapeHtml(shorten(account, MAX_ACCOUNT))}</bdi></strong>. `
    }Go back to your app: your request continues automatically. If it does not, ask again.</p>${
      problem === undefined ? '' : `\n<p class="warning">${escapeHtml(problem)}.</p>`
    }
<p class="aside">You can close this page.</p>
${renderLinks(owner)}`,
  });

export const renderDeclinedPage = (owner: PageOwner, server: string): Reply =>
  renderPage(owner, {
    status: 200,
    title: 'Nothing was connected',
    body: `<p>Your apps cannot use <strong>${escapeHtml(server)}</strong> as you. You can connect it later, at
<a href="${escapeHtml(owner.baseUrl)}/connections">your connections</a>.</p>
<p class="aside">You can close this page.</p>`,
  });

/** The link still works for its own user. */
export const renderForeignConnectionPage = (
  owner: PageOwner,
  session: BrowserSession,
  link: { readonly server: string; readonly requestId: string },
): Reply =>
  renderForeignPage(
    owner,
    session.displayName,
    'connected',
    `${renderServerForm(owner, session, link, [SWITCH])}
${renderLinks(owner)}`,
  );

export const renderExpiredPage = (owner: PageOwner): Reply =>
  renderPage(owner, {
    status: 410,
    title: 'This link has expired',
    body: `<p>It was valid for ten minutes. Go back to your app and ask again, or connect the server on your connections page.</p>
${renderButton(owner)}`,
  });

/** Shows no part of the URL, which anybody can forge. */
export const renderUnknownPage = (owner: PageOwner): Reply =>
  renderPage(owner, {
    status: 404,
    title: 'There is no such server',
    body: `<p>No server with this name requires you to log in. It may have been renamed or removed.</p>
${renderButton(owner)}`,
  });

export const renderOperatorsOnlyPage = (owner: PageOwner, server: string): Reply =>
  renderPage(owner, {
    status: 403,
    title: 'Your operators connect this server',
    mark: WARNING_MARK,
    body: `<p><strong>${escapeHtml(server)}</strong> has one shared connection, which only operators of
${escapeHtml(owner.displayName)} can create and end. Ask them to connect it.</p>
${renderLinks(owner)}`,
  });

/** Title and advice by the cause of the problem; the problem itself has the details. */
const PROBLEMS = {
  browser: {
    status: 400,
    title: 'This login cannot continue here',
    advice: 'It has to return to the browser in which it started, with cookies turned on.',
  },
  person: {
    status: 403,
    title: 'Nothing was connected',
    advice: 'You can try again at any time.',
  },
  server: {
    status: 502,
    title: 'The server did not let us connect',
    advice: 'If this happens again in a few minutes, tell the administrator of this gateway.',
  },
  operator: {
    status: 502,
    title: 'This server is not set up yet',
    advice: 'Send this page to the administrator of this gateway. Trying again does not help.',
  },
  gateway: {
    status: 503,
    title: 'That did not work',
    advice: 'Nothing was lost. Try again in a moment.',
  },
} satisfies Record<ConnectionProblem['fault'], object>;

export function renderProblemPage(owner: PageOwner, problem: ConnectionProblem): Reply {
  const { status, title, advice } = PROBLEMS[problem.fault];
  const { message, cause } = problem;
  return {
    ...renderPage(owner, {
      status,
      title,
      mark: WARNING_MARK,
      body: `<p>${escapeHtml(message)}</p>
<p>${advice}</p>
${renderButton(owner)}`,
    }),
    error: { key: 'connection_failed', message, cause },
  };
}

const renderButton = ({ baseUrl }: PageOwner) =>
  `<p><a class="button primary" href="${escapeHtml(baseUrl)}/connections">Your connections</a></p>`;

const renderLinks = ({ baseUrl }: PageOwner) =>
  `<p class="links"><a href="${escapeHtml(baseUrl)}/connections">Your connections</a></p>`;

const renderServerForm = (
  { baseUrl }: PageOwner,
  session: BrowserSession,
  link: {
    readonly server: string;
    readonly requestId: string | undefined;
    readonly hosts?: readonly string[] | undefined;
  },
  buttons: readonly string[],
): string =>
  renderForm(
    `${baseUrl}/connections`,
    session,
    [
      renderField('server', link.server),
      ...(link.requestId === undefined ? [] : [renderField('request', link.requestId)]),
      ...(link.hosts === undefined ? [] : [renderField('login', link.hosts.join(' '))]),
      ...buttons,
    ].join('\n'),
  );

// Characters.
/** The longest possible DNS name; its end tells who owns it. */
const MAX_HOST = 260;
const MAX_ACCOUNT = 100;

// §24.3: HTML of the page where users see, connect and disconnect the servers that need a login.

interface ShownConnection {
  readonly server: ConnectionServer;
  readonly info: ConnectionInfo;
}

/** A connection that has just ended, and what could not be revoked at the authorization server. */
export interface UnfinishedEnd {
  readonly server: string;
  readonly problem: string;
}

/** `shown` is in the order of the configuration file. */
export function renderConnectionsPage(
  owner: PageOwner,
  session: BrowserSession,
  shown: readonly ShownConnection[],
  ended: UnfinishedEnd | undefined,
): Reply {
  const { displayName: service, baseUrl } = owner;
  const entries = shown.map((one) => renderConnection(owner, session, one));
  const warning =
    ended &&
    `<p class="warning" role="alert"><strong>${escapeHtml(ended.server)}</strong> is disconnected here, and its stored tokens are
deleted. But ${escapeHtml(ended.problem)}.</p>`;
  const page = renderHtmlPage(
    'Your connections',
    `${warning ?? ''}
<p>${renderLoggedIn(session.displayName)}. ${shown.length === 0 ? NO_SERVERS : SERVERS} ${escapeHtml(service)}.</p>
${entries.join('\n')}
<p class="links"><a href="${escapeHtml(baseUrl)}/account">Apps that act for you</a>
<a href="${escapeHtml(baseUrl)}/">Start page</a></p>`,
    { before: renderBrand(service) },
  );
  return { status: 200, ...page };
}

const NO_SERVERS = 'You need no login of your own at any server behind';
const SERVERS = `These servers need to know who you are: once you connect to one, your apps can use it
as you, through`;

const STATES = {
  active: 'Connected',
  missing: 'Not connected',
  'login needed': 'Login needed',
} as const;

/** Classes of the style sheet. */
const LOOKS = { active: 'good', missing: 'plain', 'login needed': 'bad' } as const;

function renderConnection(
  owner: PageOwner,
  session: BrowserSession,
  { server, info }: ShownConnection,
): string {
  const isShared = server.auth.owner === 'shared';
  const mayChange = !isShared || session.isOperator;
  return `<section class="entry" aria-labelledby="server-${escapeHtml(server.name)}">
<div class="entry-head">
<h2 id="server-${escapeHtml(server.name)}">${escapeHtml(server.name)}</h2>
<span class="state ${LOOKS[info.state]}">${STATES[info.state]}</span>
</div>
<p class="aside"><code>${escapeHtml(shorten(new URL(server.url).host, MAX_LISTED_HOST))}</code></p>
${isShared ? `<p class="aside">${mayChange ? OF_OPERATORS : OF_OTHERS}</p>` : ''}
${info.state === 'missing' || !mayChange ? '' : renderFacts(info)}
${info.problem === undefined || !mayChange ? '' : `<p class="warning">${escapeHtml(info.problem)}</p>`}
${mayChange ? renderActions(owner, session, info) : ''}
</section>`;
}

const OF_OPERATORS = 'Shared connection. It is made by operators, and you are one of them.';
const OF_OTHERS = 'Shared connection, made by your operators.';

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

/** Servers that need action come first, and stand out. */
function renderActions(
  owner: PageOwner,
  session: BrowserSession,
  { server: name, state }: ConnectionInfo,
): string {
  const label = escapeHtml(name);
  const connect =
    state === 'missing'
      ? `<button class="primary" name="action" value="connect" aria-label="Connect ${label}">Connect</button>`
      : `<button${state === 'active' ? '' : ' class="primary"'} name="action" value="connect" aria-label="Reconnect ${label}">Reconnect</button>`;
  const disconnect = `<button name="action" value="disconnect" aria-label="Disconnect ${label}">Disconnect</button>`;
  const buttons = state === 'missing' ? [connect] : [connect, disconnect];
  return renderServerForm(owner, session, { server: name, requestId: undefined }, buttons);
}

/** Characters. */
const MAX_LISTED_HOST = 200;
