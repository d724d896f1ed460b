// What the user is asked before a client may log in.
import { escapeHtml, htmlPage } from '../../../core/html.ts';
import type { Reply } from '../../../core/message.ts';
import type { KnownClient } from '../clients.ts';

export interface ConsentQuestion {
  readonly client: KnownClient;
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
  const rows = [
    ['Program', `<strong><bdi>${escapeHtml(name)}</bdi></strong>`],
    ['Who vouches for it', escapeHtml(voucher(client))],
    ['Where your log-in goes', destination(redirectUri)],
    ['What it asks for', scopes.length === 0 ? 'nothing in particular' : scopeList(scopes)],
  ];
  const page = htmlPage(
    `Let ${name} log in as you?`,
    `<p>It would use <code>${escapeHtml(new URL(action).host)}</code> in your name. If you did not just
start this from a program that you know, choose Deny.</p>
<dl>
${rows.map(([term, value]) => `<div><dt>${term}</dt><dd>${value}</dd></div>`).join('\n')}
</dl>
<form method="post" action="${escapeHtml(action)}">
<input type="hidden" name="request" value="${escapeHtml(request)}">
<input type="hidden" name="csrf" value="${escapeHtml(csrf)}">
<button class="primary" name="decision" value="approve">Approve</button>
<button name="decision" value="deny">Deny</button>
</form>`,
  );
  return { status: 200, ...page };
}

const MAX_NAME = 80;
const MAX_SCOPE = 1000;
const MAX_URI = 300;

/** What leaves no mark, or turns the reading direction: controls, blanks, fillers. */
const UNSEEN = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]+/gu;

/** Names are anybody's text: nothing unseen, no towers of accents over the next line, not long. */
function shownName({ client_name: name = '', client_id: id }: KnownClient): string {
  const plain = name
    .normalize('NFKC')
    .replace(UNSEEN, ' ')
    .replace(/(\p{M}{3})\p{M}+/gu, '$1')
    .trim();
  if (plain === '') return id.startsWith('https:') ? new URL(id).host : 'a program without a name';
  return shortened(plain, MAX_NAME);
}

function shortened(text: string, max: number): string {
  const letters = [...text];
  return letters.length > max ? `${letters.slice(0, max).join('')}…` : text;
}

const voucher = ({ vouchedBy }: KnownClient): string =>
  vouchedBy === undefined
    ? 'nobody: it registered itself, under a name of its own choice'
    : `${vouchedBy}, which publishes its description`;

/** In full and in ASCII, so that look-alikes look different. */
function destination(redirectUri: string): string {
  const url = new URL(redirectUri);
  const shown = `<code>${escapeHtml(url.host === '' ? url.protocol : url.host)}</code>`;
  if (url.protocol === 'http:') return `a program on this computer (${shown})`;
  if (url.protocol === 'https:') {
    return `the site ${shown}<br><span class="aside"><code>${escapeHtml(shortened(redirectUri, MAX_URI))}</code></span>`;
  }
  return `the program on this computer that opens <code>${escapeHtml(url.protocol)}</code> links`;
}

/** RFC 6749 §3.3: printable ASCII; whatever else a link may have in it is not shown as it is. */
const scopeList = (scopes: readonly string[]): string =>
  scopes
    .map((scope) => scope.replace(/[^\x21-\x7E]/g, '?'))
    .map((scope) => `<code>${escapeHtml(shortened(scope, MAX_SCOPE))}</code>`)
    .join(' ');
