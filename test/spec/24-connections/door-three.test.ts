// /connections with servers behind it: a person connects, looks, disconnects; and what they are told where it fails.
import { describe, expect, test } from 'vitest';
import type { Browser, BrowserPage } from '../../support/connections/browser.ts';
import {
  connect,
  connectAsFarAsCallback,
  DECLINE,
  readLink,
} from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { useFresh } from '../../support/lifetimes.ts';

const NOW = Date.UTC(2026, 10, 3, 9, 41);

/** Requests go to two replicas in turns. */
const own = useFresh(async () => {
  const clock = manualClock(NOW);
  const [wiki, crm] = [
    await startProtectedServer({ clock }),
    await startProtectedServer({ clock }),
  ];
  const gateway = await startConnectingGateway({
    clock,
    servers: { wiki: wiki.configure(), crm: crm.configure() },
    replicas: 2,
  });
  const createBrowser = (person: string) =>
    gateway.createBrowser({ person, account: `${person}@work` });
  return {
    clock,
    wiki,
    crm,
    gateway,
    createBrowser,
    browser: createBrowser('ada'),
    async close() {
      await gateway.close();
      await wiki.close();
      await crm.close();
    },
  };
});

const openList = (browser: Browser = own.browser): Promise<BrowserPage> =>
  browser.open(`${own.gateway.baseUrl}/connections`);

/** What the page says of one server. */
function readEntry({ html }: BrowserPage, server: string): string {
  const sections = [...html.matchAll(/<section\b.*?<\/section>/gs)].map(([section]) => section);
  return sections.find((section) => section.includes(`id="server-${server}"`)) ?? '';
}

test('§24.3 door 3: a person connects a server at the page, is led back to it, and sees since when and for what; others see nothing of it', async () => {
  const page = await own.browser.press(await openList(), /^Connect wiki$/);
  expect(page.url.href).toBe(`${own.gateway.baseUrl}/connections`);
  const entry = readEntry(page, 'wiki');
  expect(entry).toContain('Connected');
  expect(entry).toContain('2026-11-03 09:41 UTC');
  expect(entry).toContain('mcp:read');
  expect(readEntry(page, 'crm')).toContain('Not connected');
  expect(own.wiki.seen('token')).toHaveLength(1);
  const { html } = await openList(own.createBrowser('bob'));
  expect(html).not.toContain('mcp:read');
  expect(html).not.toContain('Reconnect');
});

test('§24.3 door 3: no code and no state stay in an address that is shown', async () => {
  const door3 = await connect(own.gateway, own.browser, 'wiki');
  expect(door3.url.href).toBe(`${own.gateway.baseUrl}/connections`);
  const user = await own.gateway.logIn('ada');
  const link = readLink((await user.call('crm__whoami')).text);
  const page = await own.browser.press(await own.browser.open(link), /^Continue$/);
  expect(page.url.search).toBe('?connected=1');
  expect(page.text).toContain('You are connected to crm');
  expect(page.text).toContain('Go back to your app');
});

test('§24.3 door 3: reconnecting takes another account, and keeps the former one until it stands', async () => {
  await connect(own.gateway, own.browser, 'wiki');
  const user = await own.gateway.logIn('ada');
  own.clock.advance(60_000);
  const list = await openList();
  await own.browser.pressAsFar(list, /^Reconnect wiki$/, own.wiki.issuer);
  expect((await user.call('wiki__whoami')).text).toBe('ada@work');
  expect(readEntry(await openList(), 'wiki')).toContain('2026-11-03 09:41 UTC');
  const back = await own.browser.press(list, /^Reconnect wiki$/);
  expect(readEntry(back, 'wiki')).toContain('2026-11-03 09:42 UTC');
});

describe('disconnecting', () => {
  test('§24.4 disconnect: the server is told, and nothing is kept', async () => {
    await connect(own.gateway, own.browser, 'wiki');
    const page = await own.browser.press(await openList(), /^Disconnect wiki$/);
    expect(readEntry(page, 'wiki')).toContain('Not connected');
    expect(page.text).not.toContain('is disconnected here');
    expect(own.wiki.seen('revoke').length).toBeGreaterThan(0);
    expect(own.wiki.countActiveLogins()).toBe(0);
    const user = await own.gateway.logIn('ada');
    expect((await user.call('wiki__whoami')).isError).toBe(true);
  });

  test('§24.4 disconnect: where the server cannot be told, the page says what failed, and it is deleted all the same', async () => {
    await connect(own.gateway, own.browser, 'wiki');
    own.wiki.behave('down');
    const page = await own.browser.press(await openList(), /^Disconnect wiki$/);
    expect(page.status).toBe(200);
    expect(page.text).toMatch(
      /wiki is disconnected here, and its stored tokens are deleted\. But wiki’s revocation endpoint .*, too\./,
    );
    expect(readEntry(page, 'wiki')).toContain('Not connected');
    own.wiki.behave('ok');
    const user = await own.gateway.logIn('ada');
    expect((await user.call('wiki__whoami')).isError).toBe(true);
  });

  test('§24.4 disconnect: that of one user ends nothing of another', async () => {
    const bob = own.createBrowser('bob');
    await connect(own.gateway, own.browser, 'wiki');
    await connect(own.gateway, bob, 'wiki');
    await own.browser.press(await openList(), /^Disconnect wiki$/);
    const user = await own.gateway.logIn('bob');
    expect((await user.call('wiki__whoami')).text).toBe('bob@work');
  });

  test('§24.4 disconnect: "Log out everywhere" and leaving /account end no connection', async () => {
    await connect(own.gateway, own.browser, 'wiki');
    const account = await own.browser.open(`${own.gateway.baseUrl}/account`);
    await own.browser.press(account, /^Leave this page$/);
    expect(readEntry(await openList(), 'wiki')).toContain('Connected');
  });
});

describe('where it fails', () => {
  test('§24.3 failures: who says no at the server is told that nothing was connected, and nothing of the address', async () => {
    const list = await openList();
    const at = await own.browser.pressAsFar(list, /^Connect wiki$/, own.wiki.issuer);
    const back = new URL(`${own.gateway.baseUrl}/connections/callback/wiki`);
    back.search = new URLSearchParams({
      error: 'access_denied',
      error_description: 'Call <b>0123</b> now',
      state: at.searchParams.get('state') ?? '',
      iss: own.wiki.issuer,
    }).toString();
    const page = await own.browser.open(back);
    expect(page.status).toBe(403);
    expect(page.text).toContain('Nothing was connected');
    expect(page.text).toContain('wiki');
    expect(page.html).not.toContain('0123');
    expect(own.wiki.seen('token')).toEqual([]);
    expect((await own.browser.open(back)).status).toBe(400);
  });

  test.each(['down', 'error', 'refuses the client'] as const)(
    '§24.3 failures: a token endpoint that is %s is named, with the server; later it works',
    async (behaviour) => {
      const callback = await connectAsFarAsCallback(own.gateway, own.browser, 'wiki');
      own.wiki.behave(behaviour);
      const page = await own.browser.open(callback);
      expect(page.status).toBeGreaterThanOrEqual(500);
      expect(page.text).toContain('wiki');
      expect(page.html).not.toContain(callback.searchParams.get('code') ?? 'no code');
      own.wiki.behave('ok');
      expect(readEntry(await openList(), 'wiki')).toContain('Not connected');
      await connect(own.gateway, own.browser, 'wiki');
      expect(readEntry(await openList(), 'wiki')).toContain('Connected');
    },
  );

  test('§24.3 failures: a server that is not there is named before anybody is sent anywhere', async () => {
    await own.wiki.close();
    const page = await own.browser.press(await openList(), /^Connect wiki$/);
    expect(page.status).toBeGreaterThanOrEqual(500);
    expect(page.text).toContain('wiki');
    const other = await own.browser.press(await openList(), /^Connect crm$/);
    expect(readEntry(other, 'crm')).toContain('Connected');
  });

  test('§24.3 failures: who leaves the gateway on the way gets nothing for coming back', async () => {
    const callback = await connectAsFarAsCallback(own.gateway, own.browser, 'wiki');
    const account = await own.browser.open(`${own.gateway.baseUrl}/account`);
    await own.browser.press(account, /^Leave this page$/);
    const page = await own.browser.open(callback);
    expect(page.status).toBe(400);
    expect(readEntry(await openList(), 'wiki')).toContain('Not connected');
  });

  test('§24.3 failures: a link that was declined is over', async () => {
    const user = await own.gateway.logIn('ada');
    const link = readLink((await user.call('wiki__whoami')).text);
    const page = await own.browser.press(await own.browser.open(link), DECLINE);
    expect(page.text).toContain('Nothing was connected');
    expect((await own.browser.open(link)).status).toBe(410);
    expect(own.wiki.seen('authorize')).toEqual([]);
  });

  test('§24.3 failures: the id of a link for one server is none for another', async () => {
    const user = await own.gateway.logIn('ada');
    const link = readLink((await user.call('wiki__whoami')).text);
    const other = link.replace('/connections/wiki?', '/connections/crm?');
    expect((await own.browser.open(other)).status).toBe(410);
    const page = await own.browser.open(link);
    const refused = await own.browser.submit(page, /^Continue$/, { server: 'crm' });
    expect(refused.status).toBe(410);
    expect(own.crm.seen('authorize')).toEqual([]);
  });

  test('§24.3 failures: a link whose server was connected by another door says that it is', async () => {
    const user = await own.gateway.logIn('ada');
    const link = readLink((await user.call('wiki__whoami')).text);
    await connect(own.gateway, own.browser, 'wiki');
    const page = await own.browser.open(link);
    expect(page.status).toBe(200);
    expect(page.text).toContain('You are connected to wiki');
  });
});
