// §24.2: each server has a redirect URI of its own, whoever the gateway is at its authorization server.
import { expect, test } from 'vitest';
import { asTimePasses } from '../../support/connections/as-time-passes.ts';
import { connect, GO_ON } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { FIGMA, KEEPS_TO_MCP } from '../../support/connections/habits.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startOwnTokens } from '../../support/oauth/own-tokens.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';

const DAY_MS = 86_400_000;

/** Two servers whose users log in at one authorization server. */
async function startTwo() {
  const clock = manualClock(1_800_000_000_000);
  const habits = { ...KEEPS_TO_MCP, resource: 'ignored' } as const;
  const wiki = closeAfterTest(await startProtectedServer({ habits, clock }));
  const resourceDocument = { authorization_servers: [wiki.issuer] };
  const crm = closeAfterTest(
    await startProtectedServer({ habits: { ...habits, resourceDocument }, clock }),
  );
  const gateway = closeAfterTest(
    await startConnectingGateway({
      clock,
      servers: { wiki: wiki.configure(), crm: crm.configure() },
      replicas: 2,
    }),
  );
  const browserOf = (person: string, replica?: number) =>
    gateway.createBrowser({
      person,
      account: `${person}@work`,
      ...(replica !== undefined && { replica }),
    });
  return { clock, wiki, crm, gateway, browserOf };
}

test('§24.2 a registration that is made anew has no redirect URI of a server that is gone', async () => {
  const { wiki, crm, gateway, browserOf } = await startTwo();
  await connect(gateway, browserOf('ada'), 'wiki');
  await gateway.restart({ crm: crm.configure() });
  await connect(gateway, browserOf('bob'), 'crm');
  const uris = wiki.seen('register').map(({ body }) => JSON.parse(body).redirect_uris);
  expect(uris.at(-1)).toEqual([`${gateway.baseUrl}/connections/callback/crm`]);
});

test('§24.2 a registration that was refused for one server is tried at once for another of the same authorization server', async () => {
  const { wiki, gateway, browserOf } = await startTwo();
  const tryFor = async (person: string, server: string) => {
    const browser = browserOf(person, 0);
    return browser.press(await browser.open(`${gateway.baseUrl}/connections/${server}`), GO_ON);
  };
  wiki.behaveAtRegistration('busy');
  expect((await tryFor('ada', 'wiki')).text).toContain('wiki: the registration at');
  wiki.behaveAtRegistration('ok');
  // The same server is left alone for a while.
  expect((await tryFor('ada', 'wiki')).status).toBe(502);
  expect((await tryFor('bob', 'crm')).status).toBe(200);
});

test('§24.2 a registration that fails for one server while another of the same authorization server waits for its own: each is told of itself', async () => {
  const { clock, wiki, gateway, browserOf } = await startTwo();
  const open = async (person: string, server: string) => {
    const browser = browserOf(person, 0);
    const page = await browser.open(`${gateway.baseUrl}/connections/${server}`);
    return () => browser.press(page, GO_ON);
  };
  const [goOnAtWiki, goOnAtCrm] = [await open('ada', 'wiki'), await open('bob', 'crm')];
  wiki.behaveAtRegistration('hangs');
  const first = goOnAtWiki();
  await expect.poll(() => wiki.seen('register').length).toBe(1);
  const second = goOnAtCrm();
  const [one, other] = await asTimePasses(clock, Promise.all([first, second]));
  expect(one.text).toContain('wiki: the registration at');
  expect(other.text).toContain('crm: the registration at');
});

test('§24.2 one registration serves the servers of one authorization server: it is made anew for the redirect URI of another, once on all replicas, and connections of before go on', async () => {
  const { clock, wiki, gateway, browserOf } = await startTwo();
  await connect(gateway, browserOf('ada'), 'wiki');
  await Promise.all([
    connect(gateway, browserOf('bob'), 'crm'),
    connect(gateway, browserOf('eve'), 'crm'),
    connect(gateway, browserOf('mallory'), 'wiki'),
  ]);
  await connect(gateway, browserOf('bob'), 'wiki');
  const uris = wiki.seen('register').map(({ body }) => JSON.parse(body).redirect_uris);
  const own = (server: string) => `${gateway.baseUrl}/connections/callback/${server}`;
  expect(uris).toEqual([[own('wiki')], [own('wiki'), own('crm')]]);
  const asked = wiki.seen('authorize').map(({ query }) => query.get('redirect_uri'));
  expect(new Set(asked)).toEqual(new Set([own('wiki'), own('crm')]));

  // Her tokens are those of the client before.
  clock.sleep(DAY_MS);
  for (const person of ['ada', 'bob']) {
    const user = await gateway.logIn(person);
    expect((await user.call('wiki__whoami')).text).toBe(`${person}@work`);
  }
});

async function startCommon(iss: 'right' | 'none') {
  const server = closeAfterTest(await startProtectedServer({ habits: { ...FIGMA, iss } }));
  const gateway = closeAfterTest(
    await startConnectingGateway({ servers: { it: server.configure({ redirectUri: 'common' }) } }),
  );
  const browser = gateway.createBrowser({ person: 'ada', account: 'ada@work' });
  return { server, gateway, browser };
}

test('§24.2 a client that was made by hand may have the redirect URI of all servers, at an authorization server that sends iss', async () => {
  const { server, gateway, browser } = await startCommon('right');
  await connect(gateway, browser, 'it');
  const [asked] = server.seen('authorize');
  expect(asked?.query.get('redirect_uri')).toBe(`${gateway.baseUrl}/connections/callback`);
  expect((await (await gateway.logIn('ada')).call('it__whoami')).text).toBe('ada@work');
});

test('§24.2 where it sends none, nobody is sent there, and the page names the redirect URI to add and the line to remove', async () => {
  const { server, gateway, browser } = await startCommon('none');
  const page = await browser.press(await browser.open(`${gateway.baseUrl}/connections/it`), GO_ON);
  expect(page.status).toBe(502);
  expect(page.text).toContain(`${gateway.baseUrl}/connections/callback/it`);
  expect(page.text).toContain('remove "redirectUri"');
  expect(server.seen('authorize')).toEqual([]);
});

test('§24.2 the client document has the redirect URI of all servers, and never one that a registration or a client made by hand has', async () => {
  const url = 'https://it.example/mcp';
  const file = await readFile({ mcpServers: { wiki: { url, auth: { type: 'oauth' } } } });
  const own = closeAfterTest(await startOwnTokens({ deps: { file } }));
  const { json } = await own.gateway.request({ path: '/oauth/connections-client.json' });
  expect(json.redirect_uris).toEqual(['https://gw.example/connections/callback']);
});
