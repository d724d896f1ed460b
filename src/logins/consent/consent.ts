// The gateway's own consent page: a provider that knows only one client cannot ask for consent to each of the gateway's clients
// (the "confused deputy" of the MCP specification).

import { fail } from '../../errors/gateway-error.ts';
import {
  createDisplayName,
  renderQuoted,
  renderWarning,
} from '../../http/endpoint/display-name.ts';
import type { JudgedRequest } from '../../http/endpoint/endpoint.ts';
import { escapeHtml, ICONS, renderHtmlPage } from '../../http/endpoint/html-page.ts';
import {
  createRedirectReply,
  type GatewayRequest,
  getHeader,
  type PendingReply,
  type Reply,
  type RequestBody,
} from '../../http/endpoint/message.ts';
import { OPERATORS_CLIENT_ID } from '../../http/endpoint/own-clients.ts';
import {
  renderBrand,
  renderField,
  renderRows,
  renderScopes,
} from '../../http/endpoint/own-page-parts.ts';
import type { Browser } from '../../http/endpoint/own-pages.ts';
import { createNameCheck, failRequest, parseBody } from '../../http/endpoint/parameters.ts';
import { generateSecret, isEqualSecret } from '../../platform/ids.ts';
import { shorten } from '../../platform/text.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createSecretRecords, type SealedStore } from '../../store/records.ts';
import type { Client } from '../clients/clients.ts';
import type { ModeAtEndpoints } from '../endpoints.ts';
import type { Parties } from '../parties.ts';
import { addToRedirectUri } from '../redirect-uri.ts';
import type { AuthorizationRequest } from '../request/authorization-request.ts';
import { addFacts, readAskedFacts } from '../request/login-facts.ts';

/** Fields of the page's form. */
const checkFieldName = createNameCheck(['request', 'csrf', 'decision']);

/** `postern doctor` recognizes replicas with different secrets by this sentence. */
export const PAGE_EXPIRED = 'This page has expired. Log in again from your app.';

/** Maximum length, in characters. Each page leaves a record, and anybody may request one. */
const MAX_QUERY = 4096;

/** `listTools` returns those that everyone may see; undefined if strangers see none. */
export function createConsent(
  runtime: Runtime & SealedStore,
  { browsers, approvals, listShownScopes }: Parties,
  { readRequest, redirectToProvider, issuer }: ModeAtEndpoints,
  listTools: ListShownTools | undefined,
) {
  const { server, oauth } = runtime.config;
  const { baseUrl, displayName } = server;
  // In the store `oauth:question:…`, a name that replicas of other versions read, too.
  const pendingConsents = createSecretRecords<PendingConsent>(runtime, 'question', TTL_SECONDS);

  async function showPage(request: AuthorizationRequest, browser: Browser): Promise<Reply> {
    const { client, query, redirectUri, parameters } = request;
    // The provider knows such a client itself, and asks for consent under the client's own name.
    if (client === undefined) return redirectToProvider(request, browser);
    const csrf = generateSecret();
    const page = renderConsentPage({
      service: displayName,
      client,
      redirectUri,
      scopes: listShownScopes(parameters.get('scope')),
      tools: await listTools?.(),
      action: `${baseUrl}/oauth/consent`,
      // Two secrets, which the form sends back.
      request: await pendingConsents.put({ query, browser: browser.hash, csrf }),
      csrf,
    });
    return { ...page, headers: { ...page.headers, ...browser.headers } };
  }

  async function approve(request: AuthorizationRequest, browser: Browser): Promise<Reply> {
    const approval = await approvals.create(request, browser.hash);
    // 303: the browser posted a form, and continues with a GET.
    return { ...(await redirectToProvider(request, browser, approval)), status: 303 };
  }

  function deny({ redirectUri, parameters }: AuthorizationRequest): Reply {
    const error = { key: 'access_denied', message: 'The user denied the request.' };
    const url = addToRedirectUri(redirectUri, [
      ['error', error.key],
      ['error_description', error.message],
      ['state', parameters.get('state')],
      ['iss', issuer],
    ]);
    return { ...createRedirectReply(url), error };
  }

  return {
    async authorize({ query, headers }: GatewayRequest): Promise<PendingReply> {
      const cookie = getHeader({ headers }, 'cookie');
      if (query.length > MAX_QUERY)
        failRequest(`The query is longer than ${MAX_QUERY} characters.`);
      const request = await readRequest(query, cookie);
      // With the provider's own client, any caller would get past this page.
      if (isSameClient(request.clientId, oauth.providerClient.id)) fail('unknown_client');
      return async function continueLogin() {
        const browser = browsers.getOrCreate(cookie);
        const approval = await approvals.find(request, browser.hash);
        return approval === undefined
          ? showPage(request, browser)
          : redirectToProvider(request, browser, approval);
      };
    },

    /**
     * Handles the form of the page. The record is not used up: a user who goes back in the browser, or clicks twice, may answer
     * again. It is valid only in the browser that was shown the page.
     */
    async consent({ headers }: GatewayRequest, body: RequestBody): Promise<JudgedRequest> {
      const cookie = getHeader({ headers }, 'cookie');
      const form = parseBody(body, checkFieldName);
      const secret = form.require('request');
      const csrf = form.require('csrf');
      const pending = await pendingConsents.get(secret);
      if (pending === undefined) return failRequest(PAGE_EXPIRED);
      if (pending.browser !== browsers.readHash(cookie) || !isEqualSecret(pending.csrf, csrf))
        failRequest(
          'This page was opened in another browser, or cookies are turned off. Turn on cookies and log in again from your app.',
        );
      const { query } = pending;
      return addFacts(readAskedFacts(query), decide());

      async function decide() {
        // Checked again: the client may have ended in the meantime.
        const request = await readRequest(query, cookie);
        // Without JavaScript the user types the decision.
        const isApproved = form.get('decision')?.trim().toLowerCase() === 'approve';
        return () => (isApproved ? approve(request, browsers.getOrCreate(cookie)) : deny(request));
      }
    },
  };
}

/** Some providers compare client IDs without case, and trim them. */
const isSameClient = (one: string, other = '') =>
  one.trim().toLowerCase() === other.trim().toLowerCase();

/** A consent page that waits for its user: everything that the decision needs. */
interface PendingConsent {
  readonly query: string;
  /** Hash of the browser's cookie: the record is worthless in another one. */
  readonly browser: string;
  readonly csrf: string;
}

const TTL_SECONDS = 600;

// HTML of the page: users are asked before a client may log in.

/** A tool that everyone may see. */
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

function renderConsentPage(content: ConsentPageContent): Reply {
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
 * A page without script cannot tell that it is in front: letters that the user types are meant for it. It comes before the
 * buttons, since Enter presses the first one of a form.
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

/** In full and in ASCII, so that look-alikes can be told apart. */
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

// Detects whether the consent page is in front. CSS alone cannot: it knows neither tabs nor windows, and in a hidden page its clock
// runs on, and it remembers the pointer.

/**
 * The class `in-front` is set while the page is visible, has the focus of its window, and is drawn; the delay before the buttons
 * starts with it (html-page.ts). A page that goes behind others resets the delay, and the keyboard's focus moves from the buttons
 * to the text in their place. A key that is held down repeats, and must not press a button either.
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
