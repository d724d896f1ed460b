// A link and a callback belong to one person and one browser: whatever is sent to somebody else binds nothing to anybody.
import { expect, test } from 'vitest';
import type { Browser } from '../../support/connections/browser.ts';
import {
  connect,
  connectAsFarAsCallback,
  connectBy,
  GO_ON,
  readLink,
} from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { KEEPS_TO_MCP } from '../../support/connections/habits.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';

const MINUTE_MS = 60_000;

/** Requests go to two replicas in turns. Redis keeps time of its own: what expires is tried with one. */
const own = useFresh(() => start(2));

async function start(replicas: number) {
  const clock = manualClock(1_800_000_000_000);
  const server = await startProtectedServer({ clock });
  const gateway = await startConnectingGateway({
    clock,
    servers: { wiki: server.configure() },
    replicas,
  });
  const browserOf = (person: string) =>
    gateway.createBrowser({ person, account: `${person}@work` });
  return {
    clock,
    server,
    gateway,
    ada: browserOf('ada'),
    mallory: browserOf('mallory'),
    browserOf,
    async close() {
      await gateway.close();
      await server.close();
    },
  };
}

/** Neither of them can call, and neither token ever came to anything. */
async function expectNothingBound(): Promise<void> {
  for (const person of ['ada', 'mallory']) {
    const user = await own.gateway.logIn(person);
    expect((await user.call('wiki__whoami')).isError).toBe(true);
  }
  expect(own.server.calls()).toEqual([]);
}

async function linkOf(person: string): Promise<string> {
  const user = await own.gateway.logIn(person);
  return readLink((await user.call('wiki__whoami')).text);
}

/** The page that refuses says nothing of the other person. */
async function expectRefusal(browser: Browser, url: string | URL, ...hidden: string[]) {
  const page = await browser.open(url);
  expect(page.status).toBeGreaterThanOrEqual(400);
  expect(page.status).toBeLessThan(500);
  for (const word of hidden) expect(page.html).not.toContain(word);
  return page;
}

test('§24.3 a link that is sent to somebody else: they are told so, nothing is bound to either, and its own user can go on with it', async () => {
  const link = await linkOf('mallory');
  await expectRefusal(own.ada, link, 'mallory');
  expect(own.server.seen('authorize')).toEqual([]);
  await expectNothingBound();

  await connectBy(own.mallory, link);
  const user = await own.gateway.logIn('mallory');
  expect(await user.call('wiki__whoami')).toEqual({ isError: false, text: 'mallory@work' });
  expect((await (await own.gateway.logIn('ada')).call('wiki__whoami')).isError).toBe(true);
});

test('§24.3 the link alone does nothing: whoever has it and is logged in nowhere sees no server and no person', async () => {
  const link = await linkOf('ada');
  const answer = await fetch(link, { redirect: 'manual' });
  const text = await answer.text();
  const host = new URL(own.server.issuer).host;
  const shown = `${answer.headers.get('location')} ${text}`;
  expect([/ada/.test(shown), shown.includes(host)]).toEqual([false, false]);
  expect([302, 303]).toContain(answer.status);
});

test('§24.3 a link with a changed id, of another server, or of no id at all leads nowhere', async () => {
  const link = new URL(await linkOf('ada'));
  const id = link.searchParams.get('request') ?? '';
  for (const other of [`${id}x`, id.slice(1), '', `${id}%00`, '../ada']) {
    const changed = new URL(link);
    changed.searchParams.set('request', other);
    const page = await own.ada.open(changed);
    expect([page.status, /Continue/.test(page.text)]).not.toEqual([200, true]);
  }
});

test('§24.3 a link is good for ten minutes', async () => {
  const one = closeAfterTest(await start(1));
  const user = await one.gateway.logIn('ada');
  const link = readLink((await user.call('wiki__whoami')).text);
  one.clock.advance(10 * MINUTE_MS + 1000);
  const page = await expectRefusal(one.ada, link);
  expect(page.text).toMatch(/expired/);
  expect(one.server.requests.map(({ endpoint }) => endpoint)).not.toContain('authorize');
});

test.for([
  ['of nobody', 'a browser in which nobody is logged in'],
  ['of ada', 'another browser of the same person'],
  ['of mallory', 'a browser of somebody else'],
] as const)('§24.3 a callback in another browser, %s, is refused', async ([whose]) => {
  const callback = await connectAsFarAsCallback(own.gateway, own.ada, 'wiki');
  const other = own.browserOf(whose === 'of mallory' ? 'mallory' : 'ada');
  if (whose !== 'of nobody') await other.open(`${own.gateway.baseUrl}/connections`);
  await expectRefusal(other, callback, 'ada@work');
  await expectNothingBound();
});

test('§24.3 a callback is good once, for ten minutes, and only with its own state', async () => {
  const one = closeAfterTest(await start(1));
  const first = await connectAsFarAsCallback(one.gateway, one.ada, 'wiki');
  one.clock.advance(10 * MINUTE_MS + 1000);
  await expectRefusal(one.ada, first);
  expect(one.server.seen('token')).toEqual([]);

  const second = await connectAsFarAsCallback(own.gateway, own.ada, 'wiki');
  const changed = new URL(second);
  changed.searchParams.set('state', `${second.searchParams.get('state')}x`);
  await expectRefusal(own.ada, changed);
  await expectNothingBound();

  expect((await own.ada.open(second)).status).toBe(200);
  await expectRefusal(own.ada, second);
  const user = await own.gateway.logIn('ada');
  expect((await user.call('wiki__whoami')).text).toBe('ada@work');
});

test('§24.3 a code of somebody else in one’s own callback binds nothing: its challenge is another', async () => {
  const hers = await connectAsFarAsCallback(own.gateway, own.ada, 'wiki');
  const theirs = await connectAsFarAsCallback(own.gateway, own.mallory, 'wiki');
  const mixed = new URL(hers);
  mixed.searchParams.set('code', theirs.searchParams.get('code') ?? '');
  const page = await own.ada.open(mixed);
  expect(page.status).toBeGreaterThanOrEqual(400);
  await expectNothingBound();
});

test('§24.3 somebody else who logs in meanwhile in the same browser does not get what the first one began', async () => {
  const callback = await connectAsFarAsCallback(own.gateway, own.ada, 'wiki');
  const shared = own.browserOf('mallory');
  shared.cookies.takeFrom(own.ada.cookies, callback);
  // The session of the first one has ended: 15 minutes idle would, too.
  shared.cookies.drop(/session|account/);
  await shared.open(`${own.gateway.baseUrl}/connections`);
  await expectRefusal(shared, callback, 'ada@work');
  await expectNothingBound();
});

test('§24.3 the cookie that binds a browser is HttpOnly, SameSite=Lax, and names no person; the page takes no frame, no script and no cache', async () => {
  const page = await own.ada.open(`${own.gateway.baseUrl}/connections/wiki`);
  const policy = page.headers.get('content-security-policy') ?? '';
  expect(policy).toMatch(/frame-ancestors 'none'/);
  expect(policy).toMatch(/default-src 'none'|script-src 'none'/);
  expect(page.html).not.toMatch(/<script/i);
  expect(page.headers.get('cache-control')).toContain('no-store');
  await own.ada.pressAsFar(page, GO_ON, `${own.gateway.baseUrl}/connections/callback`);
  const cookies = own.ada.cookies.list().filter((line) => !line.startsWith('account='));
  expect(cookies.length).toBeGreaterThan(0);
  for (const line of cookies) {
    expect(line).toMatch(/HttpOnly/i);
    expect(line).toMatch(/SameSite=Lax/i);
    expect(line).not.toContain('ada');
  }
});

test('§24.3 a form without the token of its session, or from another site, changes nothing', async () => {
  await connect(own.gateway, own.ada, 'wiki');
  const page = await own.ada.open(`${own.gateway.baseUrl}/connections`);
  const refused = await own.ada.submit(page, /Disconnect wiki/, { csrf: 'another' });
  expect(refused.status).toBe(400);
  const user = await own.gateway.logIn('ada');
  expect((await user.call('wiki__whoami')).text).toBe('ada@work');
});

test('§24.3 the authorization request has state, S256, the redirect URI and the resource, and nothing of the person', async () => {
  await connect(own.gateway, own.ada, 'wiki');
  const [{ query } = { query: new URLSearchParams() }] = own.server.seen('authorize');
  expect(Object.fromEntries(query)).toEqual({
    response_type: 'code',
    client_id: expect.stringMatching(/^registered-/),
    redirect_uri: `${own.gateway.baseUrl}/connections/callback/wiki`,
    scope: 'mcp:read',
    state: expect.stringMatching(/^[\w-]{22,}$/),
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge_method: 'S256',
    resource: own.server.url,
  });
});

test('§24.3 what RFC 9207 has against a mix-up: a callback with another issuer is refused, and its code is never sent anywhere', async () => {
  const honest = await startProtectedServer({ clock: own.clock });
  const hostile = await startProtectedServer({
    clock: own.clock,
    habits: { ...KEEPS_TO_MCP, iss: 'wrong' },
  });
  await own.gateway.restart({
    wiki: honest.configure(),
    hostile: hostile.configure(),
  });
  const page = await expectRefusalOf(own.ada, 'hostile');
  expect(page.text).toMatch(/hostile/);
  expect(hostile.seen('token')).toEqual([]);
  await honest.close();
  await hostile.close();
});

async function expectRefusalOf(browser: Browser, server: string) {
  const callback = await connectAsFarAsCallback(own.gateway, browser, server);
  const page = await browser.open(callback);
  expect(page.status).toBeGreaterThanOrEqual(400);
  return page;
}

test('§24.3 the code of one server is never sent to another: a callback of the first with the state of the second', async () => {
  const other = await startProtectedServer({ clock: own.clock });
  await own.gateway.restart({
    wiki: own.server.configure(),
    other: other.configure(),
  });
  const first = await connectAsFarAsCallback(own.gateway, own.ada, 'wiki');
  const second = await connectAsFarAsCallback(own.gateway, own.ada, 'other');
  const mixed = new URL(first);
  mixed.searchParams.set('state', second.searchParams.get('state') ?? '');
  const page = await own.ada.open(mixed);
  expect(page.status).toBeGreaterThanOrEqual(400);
  expect(other.seen('token')).toEqual([]);
  expect(own.server.seen('token')).toEqual([]);
  await other.close();
});
