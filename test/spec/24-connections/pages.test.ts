// /connections and its pages: who is led in, what they see, and what is refused before any server is asked.
import { beforeAll, describe, expect, test } from 'vitest';
import type { GatewayFile } from '../../../src/gateway/configuration/gateway-file.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { openAccount, readCookie, readCsrf } from '../../support/oauth/account-steps.ts';
import { startOwnTokens } from '../../support/oauth/own-tokens.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';

const BASE = 'https://gw.example';

const SERVERS = {
  wiki: { url: 'https://wiki.example/mcp', auth: { type: 'oauth' } },
  crm: { url: 'https://crm.example/mcp', auth: { type: 'oauth', owner: 'shared' } },
  calendar: { url: 'https://calendar.example/mcp' },
};

const OPERATOR = { groups: ['ops'] };

let file: GatewayFile;
beforeAll(async () => {
  file = await readFile({ mcpServers: SERVERS });
});

const start = (env: Readonly<Record<string, string>> = {}) =>
  startOwnTokens({ env: { ADMIN_GROUPS: 'ops', ...env }, deps: { file } });
const own = useFresh(() => start());

const open = (path = '/connections', claims = {}) => openAccount(own, claims, path);
const read = async (path: string, cookie: string) => (await own.steps.get(path, cookie)).text;

/** Of a page that was opened there, with a form that is sent as it says. */
async function send(form: Readonly<Record<string, string>>, claims = {}) {
  const { cookie } = await open('/connections', claims);
  const csrf = readCsrf(await read('/connections/wiki', cookie));
  return { cookie, answer: await own.steps.post('/connections', { csrf, ...form }, cookie) };
}

describe('the login', () => {
  test.each(['/connections', '/connections/wiki', '/connections/wiki?request=Some-Id_1'])(
    '§24.3 pages: who comes to %s logs in at the provider, which need not ask, and is led back to it',
    async (path) => {
      const { asked, back } = await open(path);
      expect(asked.searchParams.get('prompt')).toBeNull();
      expect(back.headers.location).toBe(BASE + path);
    },
  );

  test.each([
    '',
    'https://evil.example/',
    '../../evil',
    '%0d%0aLocation:https://evil.example',
    'a&error=x',
  ])('§24.3 pages: a link with the id %j leads nowhere else', async (id) => {
    const { back } = await open(`/connections/wiki?request=${encodeURIComponent(id)}`);
    expect(back.headers.location).toBe(`${BASE}/connections/wiki?request=-`);
  });

  test('§24.3 pages: the session is that of /account, and the other way round', async () => {
    const { cookie } = await open();
    expect((await own.steps.get('/account', cookie)).status).toBe(200);
    const { cookie: other } = await openAccount(own);
    expect((await own.steps.get('/connections', other)).status).toBe(200);
  });

  test('§24.3 pages: a login that comes to nothing says so, and leads to the page once more', async () => {
    const begun = await own.steps.get('/connections/wiki?request=abc');
    const asked = new URL(begun.headers.location ?? '');
    const cookie = readCookie(begun.headers['set-cookie']);
    const state = asked.searchParams.get('state') ?? '';
    const back = await own.steps.callback(
      { error: 'access_denied', error_description: 'Secret words', state },
      cookie,
    );
    const { pathname, search } = new URL(back.headers.location ?? '');
    const page = await own.steps.get(pathname + search, cookie);
    expect(page.text).toContain('Login failed');
    expect(page.text).not.toContain('Secret words');
    expect(page.text).toContain(`href="${BASE}/connections/wiki?request=abc"`);
  });

  test('§24.3 pages: while the provider is down they say so, and know nobody', async () => {
    own.provider.behave('down');
    const { back } = await open();
    expect(back.headers['set-cookie'] ?? '').not.toContain('postern-account');
  });

  test('§24.3 pages: the session of an operator ends after an hour, as who is one may change; that of others does not', async () => {
    const { cookie: operator } = await open('/connections', OPERATOR);
    const { cookie: other } = await open('/connections', { sub: 'user-2' });
    for (let minutes = 0; minutes < 60; minutes += 10) {
      expect((await own.steps.get('/connections', operator)).status).toBe(200);
      expect((await own.steps.get('/connections', other)).status).toBe(200);
      own.clock.advance(600_000);
    }
    expect((await own.steps.get('/connections', operator)).status).toBe(303);
    expect((await own.steps.get('/connections', other)).status).toBe(200);
  });
});

describe('what is shown', () => {
  test('§24.3 pages: the servers that want a login, as the file has them, with what one can do there', async () => {
    const { cookie } = await open();
    const page = await read('/connections', cookie);
    expect(page).toContain('ada@example.com');
    expect(page).toContain('Connect wiki');
    expect(page).toContain('wiki.example');
    expect(page).toContain('Not connected');
    expect(page).not.toContain('calendar');
    expect(page).toContain('href="https://gw.example/account"');
  });

  test('§24.3 pages: another file has other servers, at once', async () => {
    const { cookie } = await open();
    const { wiki } = SERVERS;
    await own.gateway.gateway.reload({
      file: await readFile({ mcpServers: { notes: wiki } }),
      lock: undefined,
    });
    const page = await read('/connections', cookie);
    expect(page).toContain('Connect notes');
    expect(page).not.toContain('Connect wiki');
    expect((await own.steps.get('/connections/wiki', cookie)).status).toBe(404);
  });

  test('§24.3 pages: before one connects, a page names the server, its host, and who one is here', async () => {
    const { cookie } = await open();
    const page = await read('/connections/wiki', cookie);
    for (const said of ['Connect wiki?', 'wiki.example', 'ada@example.com', 'Continue', 'Not now'])
      expect(page).toContain(said);
  });

  test('§24.3 pages: /account leads there, and so does the front page, where a server wants it', async () => {
    const url = `${BASE}/connections`;
    const { cookie } = await openAccount(own);
    expect(await read('/account', cookie)).toContain(`href="${url}"`);
    expect((await own.steps.get('/site.json')).json.connectionsUrl).toBe(url);
    await own.gateway.gateway.reload({
      file: await readFile({ mcpServers: { calendar: SERVERS.calendar } }),
      lock: undefined,
    });
    expect(await read('/account', cookie)).not.toContain(`href="${url}"`);
    expect((await own.steps.get('/site.json')).json).not.toHaveProperty('connectionsUrl');
  });

  test.each(['/connections', '/connections/wiki', '/connections/wiki?request=gone'])(
    '§24.3 pages: %s runs no script, is in no frame, and is kept nowhere',
    async (path) => {
      const { cookie } = await open();
      const { headers, text } = await own.steps.get(path, cookie);
      expect(headers['cache-control']).toBe('no-store');
      const policy = headers['content-security-policy'];
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain('script-src');
      expect(text).not.toContain('<script');
      expect(headers['referrer-policy']).toBe('same-origin');
    },
  );

  test('§24.3 pages: a link that there is none of has expired; the page says what to do', async () => {
    const { cookie } = await open();
    const { status, text } = await own.steps.get('/connections/wiki?request=gone', cookie);
    expect(status).toBe(410);
    expect(text).toContain('This link has expired');
    expect(text).toContain('ask again');
  });

  test.each([
    '/connections/nothing',
    '/connections/calendar',
    '/connections/%3Cb%3Ehere',
    '/connections/',
  ])('§24.3 pages: there is no %s, whoever asks; nothing of the address is shown', async (path) => {
    const { status, text } = await own.steps.get(`${path}?request=it`);
    expect(status).toBe(404);
    expect(text).toContain('There is no such server');
    expect(text).not.toContain(path.slice('/connections/'.length) || 'request');
  });
});

describe('forms', () => {
  test.each([
    { what: 'without the page’s token', form: { csrf: '', action: 'connect' } },
    { what: 'with another one', form: { csrf: 'another', action: 'disconnect' } },
    { what: 'with another one to decline', form: { csrf: 'another', action: 'decline' } },
    { what: 'with another one to log in as somebody else', form: { csrf: 'x', action: 'switch' } },
    { what: 'with an action that there is none', form: { action: 'everything' } },
    { what: 'without an action', form: {} },
  ])('§24.3 pages: a form $what is refused', async ({ form }) => {
    const { answer, cookie } = await send({ server: 'wiki', ...form });
    expect(answer.status).toBe(400);
    expect((await own.steps.get('/connections', cookie)).status).toBe(200);
  });

  test('§24.3 pages: a form for a server that there is none of is answered like its page', async () => {
    const { answer } = await send({ server: 'nothing', action: 'connect' });
    expect(answer.status).toBe(404);
  });

  test('§24.3 pages: a form whose session is over leads to the page again, and so to a login', async () => {
    const form = { csrf: 'any', server: 'wiki', request: 'abc', action: 'connect' };
    const { status, headers } = await own.steps.post('/connections', form);
    expect([status, headers.location]).toEqual([303, `${BASE}/connections/wiki?request=abc`]);
  });

  test('§24.3 pages: "Not now" connects nothing', async () => {
    const { answer } = await send({ server: 'wiki', action: 'decline' });
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('Nothing was connected');
  });

  test('§24.3 pages: who logs in as somebody else is asked by the provider; the session is over at once', async () => {
    const { answer, cookie } = await send({ server: 'wiki', request: 'abc', action: 'switch' });
    const asked = new URL(answer.headers.location ?? '');
    expect(asked.searchParams.get('prompt')).toBe('login');
    expect((await own.steps.get('/connections', cookie)).status).toBe(303);
    const back = await own.steps.callback(own.provider.logIn(asked, { sub: 'user-2' }), cookie);
    expect(back.headers.location).toBe(`${BASE}/connections/wiki?request=abc`);
  });

  test('§24.3 pages: a page of another site can send none', async () => {
    const { cookie } = await open();
    const csrf = readCsrf(await read('/connections', cookie));
    const { status } = await own.gateway.request({
      method: 'POST',
      path: '/connections',
      headers: { cookie, origin: 'https://evil.example' },
      body: new URLSearchParams({ csrf, server: 'wiki', action: 'connect' }),
    });
    expect(status).toBe(403);
  });
});

describe('shared connections', () => {
  test('§24.3 shared: operators make them; others see that, and no account', async () => {
    const { cookie } = await open('/connections', { sub: 'user-2', groups: ['developers'] });
    const page = await read('/connections', cookie);
    expect(page).toContain('made by your operators');
    expect(page).not.toContain('Connect crm');
    const { cookie: operator } = await open('/connections', OPERATOR);
    expect(await read('/connections', operator)).toContain('Connect crm');
  });

  test.each(['connect', 'decline', 'disconnect'])(
    '§24.3 shared: nobody but operators can %s',
    async (action) => {
      const { answer } = await send({ server: 'crm', action }, { sub: 'user-2', groups: ['opsy'] });
      expect(answer.status).toBe(403);
      expect(answer.text).toContain('only operators');
    },
  );

  test.each(['', '?request=gone'])(
    '§24.3 shared: nobody but operators is asked at /connections/crm%s',
    async (query) => {
      const { cookie } = await open('/connections', { groups: ['developers'] });
      const { status, text } = await own.steps.get(`/connections/crm${query}`, cookie);
      expect(status).toBe(403);
      expect(text).not.toContain('Continue');
    },
  );

  test('§24.3 shared: an operator is told that everybody will act as that account', async () => {
    const { cookie } = await open('/connections', OPERATOR);
    const page = await read('/connections/crm', cookie);
    expect(page).toContain('All users of');
    expect(page).toContain('Continue');
  });

  test('§24.3 shared: without ADMIN_GROUPS nobody is an operator', async () => {
    const without = closeAfterTest(await start({ ADMIN_GROUPS: '' }));
    const { cookie } = await openAccount(without, OPERATOR, '/connections');
    expect((await without.steps.get('/connections', cookie)).text).not.toContain('Connect crm');
  });
});

test('§24.3 pages: a browser is told on a page what was wrong, which is not called a login that failed', async () => {
  const { cookie } = await open();
  const { status, text } = await own.gateway.request({
    method: 'POST',
    path: '/connections',
    headers: { cookie, accept: 'text/html' },
    body: new URLSearchParams({ csrf: 'another', server: 'wiki', action: 'connect' }),
  });
  expect(status).toBe(400);
  expect(text).toContain('<h1>That did not work</h1>');
  expect(text).toContain('open for too long');
});

test('§24.3 pages: below the path of BASE_URL addresses, cookies and links have it, too', async () => {
  const below = closeAfterTest(await start({ BASE_URL: `${BASE}/mcp-gateway` }));
  const { back, cookie } = await openAccount(below, {}, '/connections/wiki?request=abc');
  expect(back.headers.location).toBe(`${BASE}/mcp-gateway/connections/wiki?request=abc`);
  expect(back.headers['set-cookie']).toMatch(/^__Secure-postern-account=.*Path=\/mcp-gateway;/);
  const { text } = await below.steps.get('/connections', cookie);
  expect(text).toContain(`action="${BASE}/mcp-gateway/connections"`);
  expect(text).toContain(`href="${BASE}/mcp-gateway/account"`);
});

test('§8 limits: pages of connections have windows of their own', async () => {
  const limited = closeAfterTest(await start({ CONNECTIONS_RATE_LIMIT_MAX: '2' }));
  const paths = ['/connections', '/connections/wiki', '/connections/callback'];
  const statuses: number[] = [];
  for (const path of paths) statuses.push((await limited.steps.get(path)).status);
  expect(statuses).toEqual([303, 303, 429]);
  expect((await limited.steps.get('/account')).status).toBe(303);
});

const NO_PAGES = [
  '/connections',
  '/connections/wiki',
  '/connections/callback?state=x',
  '/connections/callback/wiki?state=x',
  '/oauth/connections-client.json',
  '/oauth/connections-keys.json',
];

test('§24.1 pages: there are none where clients get tokens of the provider', async () => {
  const gateway = closeAfterTest(await startGateway({ env: { OAUTH_MODE: 'proxy' } }));
  for (const path of NO_PAGES) expect((await gateway.request({ path })).status).toBe(404);
});
