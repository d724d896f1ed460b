// §22.5: the operators' page, as an operator goes through it.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  findLockObstacle,
  readLockFile,
  saveLockFile,
} from '../../src/cli/setup/lock-file-on-disk.ts';
import { createLock } from '../../src/lock/lock.ts';
import { computeFingerprint, type StoredLock } from '../../src/lock/lock-file.ts';
import { freePort } from '../support/gateway/ports.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { approve } from '../support/oauth/login-browser.ts';
import { findSerious } from '../support/site/axe.ts';
import { logInToPlayground, startSiteBrowser } from '../support/site/site-browser.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';
import { parseServers } from '../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest } from '../support/upstreams/listing-server.ts';

/** The group of everybody who logs in at the provider of the tests. */
const OPERATORS = { ADMIN_GROUPS: 'developers' };

const openSession = (accessToken: string, name: string) =>
  fetch(own.service.mcpUrl, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${accessToken}`,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name, version: '3' },
      },
    }),
  });

/** Asks for them, in the stateless era. */
const listTools = (url: URL, accessToken: string) =>
  fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${accessToken}`,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/list',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/list',
      params: {
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    }),
  });

const own = useShared(() => startSiteBrowser({ env: OPERATORS }), INSTALLATION_MS);

test('§22.5 operators: a login, sessions, and one that is ended, after a question', async () => {
  const { accessToken } = await own.service.logIn('grace');
  await openSession(accessToken, 'left-behind');
  const viewport = { width: 390, height: 844 };
  const { page, complaints, tokens } = await own.open('/admin', { viewport });
  await logInToPlayground(page);
  await page.getByText('left-behind 3').waitFor();
  // The user ID stands apart from the name, which its user chose.
  expect(await page.getByRole('heading', { level: 3 }).innerText()).toMatch(/^grace.*\ngrace$/s);
  expect(page.url()).toBe(`${own.service.baseUrl}/admin`);
  expect(await findSerious(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width);

  await page.getByRole('button', { name: 'End session' }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  // The question names the session, too, and goes a moment after it was closed.
  await expect.poll(() => page.getByText('left-behind 3').count()).toBe(1);
  await page.getByRole('button', { name: 'End session' }).click();
  await page.getByRole('button', { name: 'End it' }).click();
  await page.getByText('There are none.').waitFor();
  expect(await page.evaluate('document.activeElement.id')).toBe('ad-sessions');

  await listTools(own.service.mcpUrl, accessToken);
  await page.getByRole('button', { name: 'Users' }).click();
  await expect
    .poll(async () => {
      await page.getByRole('button', { name: 'Find' }).click();
      return page.getByRole('heading', { level: 3 }).allInnerTexts();
    })
    .toHaveLength(1);
  await page.getByText('last seen just now').waitFor();

  await page.getByRole('button', { name: 'Apps', exact: true }).click();
  expect(await page.getByRole('button', { pressed: true }).allInnerTexts()).toEqual(['Apps']);
  await page.getByRole('button', { name: 'Delete client' }).click();
  await page.getByRole('button', { name: 'Delete it' }).click();
  await page.getByText('There are none.').waitFor();

  await page.getByRole('button', { name: 'Refused logins' }).click();
  await page.getByText('None in the last seven days.').waitFor();
  await page.getByRole('button', { name: 'Gateway', exact: true }).click();
  await page.getByText(/answers in [\d.]+ ms/).waitFor();
  await page.getByText(own.service.issuer).waitFor();
  expect(await findSerious(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width);

  const [token = ''] = tokens;
  expect(tokens.size).toBe(1);
  expect(await page.content()).not.toContain(token);
  expect(complaints).toEqual([]);
});

test('§22.5 operators: whoever is none is told so, and without ADMIN_GROUPS there is no page', async () => {
  const other = closeAfterTest(await startSiteBrowser({ env: { ADMIN_GROUPS: 'operators' } }));
  const { page } = await other.open('/admin');
  await logInToPlayground(page);
  expect(await page.getByRole('alert').innerText()).toContain('This is for operators only.');
  await other.service.restart({ ADMIN_GROUPS: '' });
  expect((await fetch(`${other.service.baseUrl}/admin`)).status).toBe(404);
});

test('§22.5 operators: names that others chose are text, and hide nothing', async () => {
  const names = [
    '<img src=x onerror=alert(1)>',
    '\u202egnp.exe',
    'An\u3164n\ufe0f ⚠️',
    '{{ 1 + 1 }}',
    `long${'A'.repeat(900)}`,
    '',
  ];
  for (const client_name of names) {
    await fetch(`${own.service.baseUrl}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_name, redirect_uris: ['https://app.example/callback'] }),
    });
  }
  const { page, complaints } = await own.open('/admin', { viewport: { width: 390, height: 844 } });
  await logInToPlayground(page);
  await page.getByRole('button', { name: 'Apps', exact: true }).click();
  await page.getByText(names[0] ?? '').waitFor();
  const shown = await page.getByRole('heading', { level: 3 }).allInnerTexts();
  expect(shown).toEqual(
    expect.arrayContaining([
      names[0],
      '\\u{202e}gnp.exe',
      'An\\u{3164}n\\u{fe0f} ⚠️',
      names[3],
      'unnamed',
    ]),
  );
  expect(Math.max(...shown.map((text) => text.length))).toBeLessThan(210);
  expect(await page.locator('.ad-list img').count()).toBe(0);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  expect(complaints).toEqual([]);
});

test('§22.5 operators: servers with their tools, and times as one says them, which go on', async () => {
  const server = await serveForTest({
    tools: [buildTool('read'), { name: '<b>odd\u202e</b>', inputSchema: { type: 'object' } }],
  });
  const file = await parseServers({
    mcpServers: {
      files: server.url,
      wiki: { url: server.url, auth: { type: 'identity' } },
      gone: `http://127.0.0.1:${await freePort()}/mcp`,
    },
  });
  const other = closeAfterTest(
    await startSiteBrowser({
      env: { ...OPERATORS, OAUTH_STATE_SECRET: 'one-secret-of-more-than-32-characters' },
      deps: { file },
    }),
  );
  const { page, complaints } = await other.open('/admin', {
    viewport: { width: 390, height: 844 },
  });
  await page.clock.install();
  await logInToPlayground(page);
  await page.getByRole('button', { name: 'Servers' }).click();
  const rowOf = (name: string) =>
    page.getByRole('listitem').filter({ has: page.getByRole('heading', { name, exact: true }) });
  await rowOf('gone').getByText('Down').waitFor();
  await rowOf('wiki').getByText('Its tools differ between users.').waitFor();
  const state = rowOf('files').getByRole('time');
  const since = Date.parse((await state.getAttribute('datetime')) ?? '');
  /** However long all that took. What the page shows it looks at every ten seconds. */
  const showAfter = async (seconds: number) => {
    await page.clock.setFixedTime(since + seconds * 1000);
    await page.clock.fastForward('10');
  };
  await showAfter(1);
  expect(await state.innerText()).toBe('just now');
  expect(await state.getAttribute('title')).toMatch(/\d{4}.*\d:\d\d:\d\d/);
  await showAfter(150);
  await expect.poll(() => state.innerText()).toBe('2 min ago');

  await rowOf('files').getByText('2 tools').press('Enter');
  await rowOf('files').getByText('files__read').waitFor();
  const tools = await rowOf('files').getByRole('listitem').allInnerTexts();
  expect(tools[1]).toContain('<b>odd\\u{202e}</b>');
  expect(tools[1]).toContain('hidden: it has a name with characters that cannot be seen');
  expect(await findSerious(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  expect(complaints).toEqual([]);
});

test('§22.5 operators: what the lock hides, as it was and as it is, and how to approve it', async () => {
  const approved = buildTool('read', { description: 'Reads a file.' });
  const server = await serveForTest({
    tools: [approved, buildTool('write', { description: '<i>Send\u202e</i>\nall.' })],
    capabilities: { tools: { listChanged: true } },
  });
  const fingerprint = computeFingerprint('tool', approved);
  const tools = new Map(fingerprint && [['read', [fingerprint]]]);
  const files = { instructions: undefined, skills: new Map(), prompts: new Map(), tools };
  const other = closeAfterTest(
    await startSiteBrowser({
      env: { ...OPERATORS, POSTERN_CONFIG: 'mcp.json' },
      deps: {
        file: await parseServers({ mcpServers: { files: server.url } }),
        lock: createLock({ servers: new Map([['files', files]]) }),
      },
    }),
  );
  const { page, complaints } = await other.open('/admin', {
    viewport: { width: 390, height: 844 },
  });
  await logInToPlayground(page);
  await page.getByRole('button', { name: 'Not approved' }).click();
  await page.getByText('<i>Send\\u{202e}</i>').waitFor();
  await page.getByText('postern lock --config mcp.json', { exact: true }).waitFor();
  server.listing.tools = [{ ...approved, description: 'Reads, and sends.' }];
  await expect.poll(() => server.openStreams()).toBeGreaterThan(0);
  server.notify('notifications/tools/list_changed');
  const { accessToken } = await other.service.logIn('ada');
  await expect
    .poll(async () => {
      await listTools(other.service.mcpUrl, accessToken);
      await page.getByRole('button', { name: 'Refresh' }).click();
      await page.getByRole('heading', { name: 'files tool' }).first().waitFor();
      return page.locator('pre').allInnerTexts();
    })
    .toEqual(['Reads a file.', 'Reads, and sends.']);
  expect(await findSerious(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  expect(complaints).toEqual([]);
});

test('§22.6 operators: approve what they were shown whole, server by server or all at once', async () => {
  const long = `Sends\u202e ${'all '.repeat(2000)}to us.`;
  const files = await serveForTest({ tools: [buildTool('read'), buildTool('write')] });
  const wiki = await serveForTest({ tools: [buildTool('search', { description: long })] });
  const notes = await serveForTest({ tools: [buildTool('jot')] });
  const file = await parseServers({
    mcpServers: { files: files.url, wiki: wiki.url, notes: notes.url },
  });
  const folder = closeAfterTest(await createTemporaryFolder());
  const path = join(folder.path, 'postern.lock');
  await saveLockFile(path, { servers: new Map() });
  const storedLock: StoredLock = {
    path,
    read: () => readLockFile(path),
    findObstacle: () => findLockObstacle(path),
    async save(next) {
      await saveLockFile(path, next);
      await other.service.reload({ file, lock: createLock(next) });
      return true;
    },
  };
  const lock = createLock({ servers: new Map() });
  const other = closeAfterTest(
    await startSiteBrowser({ env: OPERATORS, deps: { file, lock, storedLock } }),
  );
  const { page, complaints } = await other.open('/admin', {
    viewport: { width: 390, height: 844 },
  });
  await logInToPlayground(page);
  const open = (name: string) => page.getByRole('button', { name, exact: true }).click();
  await open('Not approved');
  await open('Approve wiki');
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('heading', { name: 'wiki tool search' }).waitFor();
  expect(await dialog.locator('pre').first().textContent()).toBe(
    long.replace('\u202e', '\\u{202e}'),
  );
  expect(await findSerious(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  wiki.listing.tools = [buildTool('search', { description: 'Sends less.' })];
  await dialog.getByRole('button', { name: 'Approve wiki' }).click();
  await dialog.getByRole('alert').getByText('has changed since you looked').waitFor();
  await dialog.getByRole('button', { name: 'Look again' }).click();
  await dialog.getByText('Sends less.').waitFor();
  await dialog.getByRole('button', { name: 'Approve wiki' }).click();
  await page.getByText('Approved: wiki. Clients see it now.').waitFor();
  expect([...(readLockFile(path)?.servers.keys() ?? [])]).toEqual(['wiki']);

  await open('Approve all');
  await dialog.getByRole('heading', { name: 'files tool write' }).waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  expect(readLockFile(path)?.servers.has('files')).toBe(false);
  await open('Approve all');
  await dialog.getByRole('button', { name: 'Approve files, notes' }).click();
  await page.getByText('Approved: files, notes. Clients see it now.').waitFor();
  await page.getByText('All descriptions from the servers are approved.').waitFor();
  // The only complaint: that the first one was refused.
  expect(complaints).toEqual([expect.stringContaining('409')]);
});

test('§22.5 operators: which tools somebody sees, and by which rule', async () => {
  const server = await serveForTest({ tools: [buildTool('read'), buildTool('write')] });
  const file = await parseServers({
    mcpServers: { files: server.url },
    builtIn: false,
    rules: [{ who: { groups: ['staff'] }, may: ['files__read'] }],
  });
  const other = closeAfterTest(await startSiteBrowser({ env: OPERATORS, deps: { file } }));
  const { page, complaints } = await other.open('/admin', {
    viewport: { width: 390, height: 844 },
  });
  await logInToPlayground(page);
  await page.getByRole('button', { name: 'Rules', exact: true }).click();
  await page.getByLabel('Groups, separated by commas').fill('guests, staff');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Sees 1 of 2 tools' }).waitFor();
  const rows = await page.locator('.ad-rows').getByRole('listitem').allInnerTexts();
  expect(rows[0]).toMatch(/^files__read Allowed · .*rules\[0\]/);
  expect(rows[1]).toBe('files__write Not seen: no rule allows it');
  expect(await findSerious(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  expect(complaints).toEqual([]);
});

test('§22.5 operators: the keyboard alone ends a session', async () => {
  const { accessToken } = await own.service.logIn('hopper');
  const { page } = await own.open('/admin');
  await logInToPlayground(page);
  await openSession(accessToken, 'by-keyboard');
  await page.getByRole('button', { name: 'Refresh' }).press('Enter');
  await page.getByText('by-keyboard 3').waitFor();
  await page.getByLabel('User').fill('hopper');
  await page.keyboard.press('Enter');
  // While the list is loaded anew its buttons take no key.
  await page.getByRole('button', { name: 'End session', disabled: false }).press('Enter');
  // Cancel has the focus: a second Enter must not end anything.
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByText('Nobody of this user ID').waitFor();
});

test('§22.5 operators: the front page leads there after a login, and the token of the page goes to its API alone', async () => {
  const { page, tokens } = await own.open('/');
  const link = page.getByRole('link', { name: "Operators' page" });
  await logInToPlayground(page, 'Log in to see your tools');
  await page.getByRole('heading', { name: 'Tools you can use' }).waitFor();
  const sent: string[] = [];
  page.on('request', (request) => {
    const { authorization } = request.headers();
    if (authorization !== undefined)
      sent.push(`${new URL(request.url()).pathname} ${authorization}`);
  });
  await link.click();
  const [ofPlayground] = tokens;
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.waitForURL(/\/oauth\/authorize\?/);
  // The provider remembers the user.
  await approve(page);
  await page.getByRole('heading', { name: /^Sessions/ }).waitFor();
  await page.getByRole('button', { name: 'Gateway', exact: true }).click();
  await page.getByText(/answers in/).waitFor();
  await page.goBack();
  await page.goForward();
  const ofPage = [...tokens].filter((token) => token !== ofPlayground);
  expect(ofPage).toHaveLength(1);
  expect(sent.filter((line) => line.endsWith(`Bearer ${ofPage[0]}`)).length).toBeGreaterThan(0);
  for (const line of sent) {
    expect(line.startsWith('/admin/api/')).toBe(line.endsWith(`Bearer ${ofPage[0]}`));
  }
});
