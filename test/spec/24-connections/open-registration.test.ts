// Anybody can register a client at the gateway, and at the server one registration serves all people, whom its authorization server
// does not ask twice: so the gateway's own page asks each time, and what one person agreed to is nobody else's.
import { expect, test } from 'vitest';
import { ACCOUNT_COOKIE } from '../../support/connections/authorization-server.ts';
import type { Browser, BrowserPage } from '../../support/connections/browser.ts';
import { connect, GO_ON, readLink } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { sendAsBrowser } from '../../support/connections/send-as-browser.ts';
import { useFresh } from '../../support/lifetimes.ts';

const ATTACKER = 'https://attacker.example/callback';
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

const own = useFresh(async () => {
  const server = await startProtectedServer();
  const gateway = await startConnectingGateway({ servers: { wiki: server.configure() } });
  return {
    server,
    gateway,
    /** It is logged in at the gateway, and the authorization server asks it nothing any more. */
    async openBrowserOf(person: string): Promise<Browser> {
      const browser = gateway.createBrowser({ person });
      const line = `${ACCOUNT_COOKIE}=${encodeURIComponent(`${person}@work`)}; Path=/`;
      browser.cookies.store(new URL(server.issuer), [line]);
      await browser.open(`${gateway.baseUrl}/connections`);
      return browser;
    },
    async registerAttacker(): Promise<string> {
      const answer = await fetch(`${gateway.baseUrl}/oauth/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ redirect_uris: [ATTACKER], client_name: 'Wiki helper' }),
      });
      const { client_id: id } = (await answer.json()) as { client_id: string };
      return id;
    },
    async close() {
      await gateway.close();
      await server.close();
    },
  };
});

const countAuthorize = () => own.server.seen('authorize').length;

/** The gateway's own page, before anything was sent to the authorization server. */
function expectAsked(page: BrowserPage): void {
  expect([page.url.origin, page.status]).toEqual([own.gateway.baseUrl, 200]);
  expect(page.html).toMatch(/<button\b[^>]*>\s*Continue\s*</);
  expect(page.text).toContain('wiki');
}

test('§24.3 open registration: an attacker’s client, and its links in a victim’s browser, come to nothing without the victim’s own consent', async () => {
  const { gateway, server } = own;
  const clientId = await own.registerAttacker();
  const ada = await own.openBrowserOf('ada');
  const mallory = await gateway.logIn('mallory');
  const malloryLink = readLink((await mallory.call('wiki__whoami')).text);
  const page = `${gateway.baseUrl}/connections/wiki`;
  const bait = new URLSearchParams({ client_id: clientId, redirect_uri: ATTACKER, state: 'x' });

  // Whatever the victim is made to open: the page asks, or says no.
  expectAsked(await ada.open(page));
  expectAsked(await ada.open(`${page}?${bait}`));
  expect((await ada.open(malloryLink)).status).toBe(403);
  const { status } = await ada.open(`${gateway.baseUrl}/connections/callback?code=stolen&${bait}`);
  expect(status).toBe(400);
  // A form of another site, with the victim's cookies even.
  for (const headers of [
    { origin: 'https://attacker.example', 'sec-fetch-site': 'cross-site' },
    { origin: gateway.baseUrl, 'sec-fetch-site': 'same-origin' },
  ]) {
    const url = new URL(`${gateway.baseUrl}/connections`);
    const cookie = ada.cookies.createHeader(url);
    const form = new URLSearchParams({ server: 'wiki', action: 'connect', csrf: 'guessed' });
    expect((await sendAsBrowser(url, { ...headers, cookie }, form)).status).toBeGreaterThan(399);
  }
  expect(countAuthorize()).toBe(0);

  // She connects by herself; then the attacker has her browser authorize its client.
  await connect(gateway, ada, 'wiki');
  bait.set('response_type', 'code');
  bait.set('code_challenge', CHALLENGE);
  bait.set('code_challenge_method', 'S256');
  const consent = await ada.open(`${gateway.baseUrl}/oauth/authorize?${bait}`);
  expect([consent.url.origin, consent.status]).toEqual([gateway.baseUrl, 200]);
  expect(consent.html).toMatch(/<button\b[^>]*>\s*Approve\s*</);
  expect(consent.text).toContain('attacker.example');
  expect(ada.visited.filter((url) => url.startsWith('https://attacker.example'))).toEqual([]);

  // And the attacker, by whatever client, is at the server nobody.
  expect((await mallory.call('wiki__whoami')).isError).toBe(true);
  expect(server.calls()).toEqual([]);
  expect((await (await gateway.logIn('ada')).call('wiki__whoami')).text).toBe('ada@work');
});

test('§24.3 one registration serves all, at an authorization server that asks nobody twice: the gateway’s own page comes first, each time and by each door', async () => {
  const { gateway, server } = own;
  const [ada, bob] = [await own.openBrowserOf('ada'), await own.openBrowserOf('bob')];
  const door3 = `${gateway.baseUrl}/connections/wiki`;
  const linkOf = async (person: string) =>
    readLink((await (await gateway.logIn(person)).call('wiki__write')).text);
  const visits = [
    [ada, async () => linkOf('ada')],
    [bob, async () => linkOf('bob')],
    // Once more, though there is a connection: another account, or more permissions.
    [ada, async () => door3],
    [ada, async () => linkOf('ada')],
  ] as const;
  for (const [at, [browser, findAddress]] of visits.entries()) {
    const page = await browser.open(await findAddress());
    expectAsked(page);
    expect(countAuthorize()).toBe(at);
    const done = await browser.press(page, GO_ON);
    expect([done.url.origin, done.status, countAuthorize()]).toEqual([
      gateway.baseUrl,
      200,
      at + 1,
    ]);
  }
  expect(server.seen('register')).toHaveLength(1);
  const clients = server.seen('authorize').map(({ query }) => query.get('client_id'));
  expect(new Set(clients).size).toBe(1);
  // What each agreed to is theirs.
  for (const person of ['ada', 'bob']) {
    const user = await gateway.logIn(person);
    expect((await user.call('wiki__whoami')).text).toBe(`${person}@work`);
  }
});
