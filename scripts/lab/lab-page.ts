// The page of the lab: the users logged in with each provider, and what the provider can do about it.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { escapeHtml, sendPage } from '../../test/support/providers/login-page.ts';
import type { SentLogout } from '../../test/support/providers/logout.ts';
import { writeSettings } from './print-lab.ts';
import type { LabProvider } from './start-lab.ts';

export function createLabPage(providers: readonly LabProvider[]): RequestListener {
  const find = (name: string | null) => providers.find((provider) => provider.name === name);

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { pathname } = new URL(req.url ?? '', 'http://localhost');
    const act = ACTIONS.get(pathname.slice(1));
    if (pathname !== '/' && act === undefined) return void res.writeHead(404).end();
    let said = '';
    if (req.method === 'POST' && act !== undefined) {
      const form = await readForm(req);
      const provider = find(form.get('provider'));
      if (provider !== undefined) said = await act(provider, form.get('sub') ?? '');
    }
    const sections = providers.map(renderProvider).join('\n');
    const body = `${said === '' ? '' : `<p role="status">${escapeHtml(said)}</p>`}\n${sections}`;
    sendPage(res, { title: 'Providers on this machine', body });
  }

  return (req, res) => {
    answer(req, res).catch((error: unknown) => res.writeHead(500).end(String(error)));
  };
}

type Act = (provider: LabProvider, sub: string) => Promise<string>;

/** By the path that their forms are sent to. */
const ACTIONS: ReadonlyMap<string, Act> = new Map<string, Act>([
  [
    'log-out',
    async ({ emulator }, sub) => {
      const sent = await emulator.logOutUser({ sub });
      return `${sub} is logged out at ${emulator.habits.title}. ${describeSent(sent)}`;
    },
  ],
  [
    'disable',
    async ({ emulator }, sub) => {
      emulator.disable(sub);
      return `${sub} is disabled at ${emulator.habits.title}. A gateway learns it when it next asks.`;
    },
  ],
]);

const describeSent = (sent: readonly SentLogout[]): string =>
  sent.length === 0
    ? 'This provider tells nobody: it has no back-channel logout. A gateway learns it when it next asks.'
    : `Logout tokens were posted to the gateway, which answered ${sent.map(({ status }) => status || 'nothing').join(', ')}.`;

function renderProvider(provider: LabProvider): string {
  const { name, emulator, gateway } = provider;
  const button = (path: string, sub: string, label: string) =>
    `<form method="post" action="/${path}"><input type="hidden" name="provider" value="${name}"><input type="hidden" name="sub" value="${escapeHtml(sub)}"><button type="submit">${label}</button></form>`;
  const rows = emulator
    .listPeople()
    .map(
      ({ sub, email }) =>
        `<tr><td>${escapeHtml(sub)}</td><td>${escapeHtml(email)}</td><td>${button('log-out', sub, 'Log out everywhere')}</td><td>${button('disable', sub, 'Disable')}</td></tr>`,
    );
  return `<h2>${emulator.habits.title}</h2>
${gateway === undefined ? '' : `<p>A gateway is in front of it: <code>${gateway.mcpUrl}</code></p>`}
<pre>${escapeHtml(writeSettings(provider))}</pre>
<table>${rows.length === 0 ? '<tr><td>Nobody is logged in.</td></tr>' : rows.join('\n')}</table>`;
}

async function readForm(req: IncomingMessage): Promise<URLSearchParams> {
  let body = '';
  for await (const chunk of req) body += chunk;
  return new URLSearchParams(body);
}
