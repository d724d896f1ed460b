// What the user is asked before a client may log in.
import { escapeHtml, renderHtmlPage } from '../../../core/html-page.ts';
import type { Reply } from '../../../core/message.ts';
import type { Client } from '../clients/clients.ts';
import { type ShownName, shorten, shownName } from './shown-name.ts';

export interface ConsentQuestion {
  readonly client: Client;
  readonly redirectUri: string;
  readonly scopes: readonly string[];
  /** Where the form goes. */
  readonly action: string;
  readonly request: string;
  readonly csrf: string;
}

export function consentPage(question: ConsentQuestion): Reply {
  const { client, redirectUri, scopes, action, request, csrf } = question;
  const name = shownName(client);
  const quoted = `“<bdi>${escapeHtml(name.text)}</bdi>”`;
  const rows = [
    ['Program', `<strong>${quoted}</strong>${warning(name)}`],
    ['Who vouches for it', escapeHtml(voucher(client))],
    ['Where your log-in goes', destination(redirectUri)],
    ['What it asks for', scopes.length === 0 ? 'nothing in particular' : scopeList(scopes)],
  ];
  const page = renderHtmlPage(
    `Let “${name.text}” log in as you?`,
    `<p>It would use <code>${escapeHtml(new URL(action).host)}</code> in your name. If you did not just
start this from a program that you know, choose Deny.</p>
<dl>
${rows.map(([term, value]) => `<div><dt>${term}</dt><dd>${value}</dd></div>`).join('\n')}
</dl>
<p class="aside before-choice" tabindex="0">Approve and Deny appear after a moment<span class="by-pointer">, once
you point at this page or press Tab</span>.</p>
<div class="choice">
<form method="post" action="${escapeHtml(action)}">
<input type="hidden" name="request" value="${escapeHtml(request)}">
<input type="hidden" name="csrf" value="${escapeHtml(csrf)}">
<button class="primary" name="decision" value="approve">Approve</button>
<button name="decision" value="deny">Deny</button>
</form>
</div>`,
    `Let ${quoted} log in as you?`,
  );
  return { status: 200, ...page };
}

/** Characters. */
const MAX_SCOPE = 1000;
const MAX_URI = 300;

const warning = ({ warning: text }: ShownName): string =>
  text === undefined ? '' : `<br><span class="warning">${escapeHtml(text)}</span>`;

const voucher = (client: Client): string =>
  client.kind === 'registered'
    ? 'nobody: it registered itself, under a name of its own choice'
    : `${client.host}, which publishes its description`;

/** In full and in ASCII, so that look-alikes look different. */
function destination(redirectUri: string): string {
  const { protocol, host } = new URL(redirectUri);
  const shown = `<code>${escapeHtml(host)}</code>`;
  if (protocol === 'http:') return `a program on this computer (${shown})`;
  if (protocol === 'https:') {
    return `the site ${shown}<br><span class="aside"><code>${escapeHtml(shorten(redirectUri, MAX_URI))}</code></span>`;
  }
  // Several programs may open the same scheme: what follows tells them apart.
  return `the program on this computer that opens <code>${escapeHtml(redirectUri)}</code>`;
}

/** RFC 6749 §3.3: printable ASCII; whatever else a link may have in it is not shown as it is. */
const scopeList = (scopes: readonly string[]): string =>
  scopes
    .map((scope) => scope.replace(/[^\x21-\x7E]/g, '?'))
    .map((scope) => `<code>${escapeHtml(shorten(scope, MAX_SCOPE))}</code>`)
    .join(' ');
