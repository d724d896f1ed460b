// HTML of the consent page: users are asked before a client may log in.

import {
  createDisplayName,
  renderQuoted,
  renderWarning,
} from '../../http/endpoint/display-name.ts';
import { escapeHtml, ICONS, renderHtmlPage } from '../../http/endpoint/html-page.ts';
import type { Reply } from '../../http/endpoint/message.ts';
import { OPERATORS_CLIENT_ID } from '../../http/endpoint/own-clients.ts';
import {
  renderBrand,
  renderField,
  renderRows,
  renderScopes,
} from '../../http/endpoint/own-page-parts.ts';
import { shorten } from '../../platform/text.ts';
import type { Client } from '../clients/clients.ts';

/** A tool that everybody may see. */
interface ShownTool {
  readonly name: string;
}

export type ListShownTools = () => Promise<readonly ShownTool[] | undefined>;

interface ConsentPageContent {
  /** `SERVICE_DISPLAY_NAME`. */
  readonly service: string;
  readonly client: Client;
  readonly redirectUri: string;
  readonly scopes: readonly string[];
  /** Undefined if the tools are not public. */
  readonly tools: readonly ShownTool[] | undefined;
  /** Target of the form. */
  readonly action: string;
  readonly request: string;
  readonly csrf: string;
}

export function renderConsentPage(content: ConsentPageContent): Reply {
  const { service, client, redirectUri, scopes, tools, action, request, csrf } = content;
  const name = createDisplayName(client);
  const quoted = renderQuoted(name);
  const use = client.id === OPERATORS_CLIENT_ID ? OPERATE : USE + renderTools(tools);
  const grants = [use, ...describeScopes(scopes)];
  const rows = [
    ['App', `<strong>${quoted}</strong>${renderWarning(name)}`],
    ['Publisher', escapeHtml(describePublisher(client))],
    ['Sends you back to', renderDestination(client, redirectUri)],
    ['Requested permissions', scopes.length === 0 ? 'none' : renderScopes(scopes)],
  ] as const;
  const page = renderHtmlPage(
    `Allow “${name.text}” to log in as you?`,
    `<p>It will be able to use <code>${escapeHtml(new URL(action).host)}</code> on your behalf. If you did not
just start this login from an app that you trust, deny it.</p>
<ul class="grants">
${grants.map((grant) => `<li>${ICONS.check}<span>${grant}</span></li>`).join('\n')}
</ul>
${renderRows(rows)}
<form method="post" action="${escapeHtml(action)}">
${renderField('request', request)}
${renderField('csrf', csrf)}
${WITHOUT_SCRIPT}
<div class="choice-place">
<div class="before-choice" role="group" aria-label="Approve and Deny become active after a moment" tabindex="0">
<span class="button primary" aria-hidden="true">Approve</span>
<span class="button" aria-hidden="true">Deny</span>
</div>
<div class="choice">
<button class="primary" name="decision" value="approve">Approve</button>
<button name="decision" value="deny">Deny</button>
</div>
</div>
</form>`,
    {
      before: renderBrand(service),
      heading: `Allow ${quoted} to log in as you?`,
      script: CHOICE_SCRIPT,
    },
  );
  return { status: 200, ...page };
}

/**
 * A page without script cannot tell that it is in front: letters that the user types are meant for it. It stands before the buttons, as
 * Enter presses the first one of a form.
 */
const WITHOUT_SCRIPT = `<noscript>
<p><label for="decision">JavaScript is off in this browser. Type <code>approve</code> or <code>deny</code>:</label></p>
<p><input id="decision" name="decision" required pattern="\\s*([Aa]pprove|APPROVE|[Dd]eny|DENY)\\s*" autocomplete="off" autocapitalize="none">
<button>Continue</button></p>
</noscript>`;

/** Characters. */
const MAX_URI = 300;
const MAX_TOOL_NAME = 60;

/** Number of tools listed by name; the rest is counted. */
const MAX_TOOLS = 12;

/** Applies to every other client. */
const USE = 'Use tools and data as you';
const OPERATE = 'See and end sessions, and delete clients, if you are an operator';

function renderTools(tools: readonly ShownTool[] = []) {
  if (tools.length === 0) return '';
  const names = tools
    .slice(0, MAX_TOOLS)
    .map(({ name }) => escapeHtml(shorten(name, MAX_TOOL_NAME)));
  const others = tools.length - names.length;
  const list = `${names.join(', ')}${others > 0 ? `, and ${others} more` : ''}`;
  return `<span class="aside">${list}</span>`;
}

function describePublisher(client: Client) {
  if (client.kind === 'own') return 'this gateway: it is one of its own pages';
  return client.kind === 'registered'
    ? 'not verified: the app registered itself under this name'
    : `${client.host}, which publishes the description of this app`;
}

/** In full and in ASCII, so that look-alikes look different. */
function renderDestination({ kind }: Client, redirectUri: string) {
  const { protocol, host } = new URL(redirectUri);
  if (kind === 'own') return `this gateway (<code>${escapeHtml(redirectUri)}</code>)`;
  const shown = `<code>${escapeHtml(host)}</code>`;
  if (protocol === 'http:') return `an app on this computer (${shown})`;
  if (protocol === 'https:')
    return `the website ${shown}<br><span class="aside"><code>${escapeHtml(shorten(redirectUri, MAX_URI))}</code></span>`;
  // Several apps may register the same scheme: the rest distinguishes them.
  return `the app on this computer that opens <code>${escapeHtml(redirectUri)}</code>`;
}

// The meaning of scopes, for users.

/** In order of display. The first row with all of its scopes present gives the words for them. */
const WORDS: readonly (readonly [scopes: readonly string[], words: string])[] = [
  [['profile', 'email'], 'See your name and e-mail address'],
  [['profile'], 'See your name'],
  [['email'], 'See your e-mail address'],
  [['openid'], 'See your user ID'],
  [['address'], 'See your postal address'],
  [['phone'], 'See your phone number'],
  [['groups'], 'See your groups'],
  [['roles'], 'See your roles'],
  [['offline_access'], 'Stay signed in while you are away'],
];

const OTHERS = 'Use the other permissions listed below';

/** One sentence for each permission that the scopes give. */
function describeScopes(scopes: readonly string[]): readonly string[] {
  const rest = new Set(scopes);
  const described = WORDS.flatMap(([names, words]) => {
    if (!names.every((name) => rest.has(name))) return [];
    for (const name of names) rest.delete(name);
    // A name or an address identifies the user.
    if (names.includes('profile') || names.includes('email')) rest.delete('openid');
    return [words];
  });
  return rest.size === 0 ? described : [...described, OTHERS];
}

// Detects whether the consent page is in front. CSS alone cannot: it knows neither tabs nor windows, and in a hidden page its clock runs
// on, and it remembers the pointer.

/**
 * The class `in-front` is set while the page is visible, has the focus of its window, and is drawn; the delay before the buttons starts
 * with it (html-page.ts). A page that goes behind others resets the delay, and the keyboard's focus moves from the buttons to the text in
 * their place. A key that is held down repeats, and must not press a button either.
 */
export const CHOICE_SCRIPT = `
(() => {
  const page = document.documentElement;
  const choice = document.querySelector('.choice');
  const isInFront = () => document.visibilityState === 'visible' && document.hasFocus();
  function goBehind() {
    page.classList.remove('in-front');
    if (choice.contains(document.activeElement)) document.querySelector('.before-choice').focus();
  }
  // A page that is not drawn gets no frame.
  function comeToFront() {
    requestAnimationFrame(() => {
      // Forces a style computation without the class: only then does the animation start again.
      if (!page.classList.contains('in-front')) getComputedStyle(choice).animationName;
      if (isInFront()) page.classList.add('in-front');
    });
  }
  addEventListener('focus', comeToFront);
  addEventListener('pageshow', comeToFront);
  addEventListener('blur', goBehind);
  addEventListener('pagehide', goBehind);
  document.addEventListener('visibilitychange', () => (isInFront() ? comeToFront() : goBehind()));
  addEventListener('keydown', (event) => {
    if (event.repeat && (event.key === 'Enter' || event.key === ' ')) event.preventDefault();
  });
  comeToFront();
})();
`;
