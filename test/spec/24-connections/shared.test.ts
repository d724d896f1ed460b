// A shared connection: operators alone make and end it, whoever's browser it is; everybody sees that it is there.
import { expect, test } from 'vitest';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { useFresh } from '../../support/lifetimes.ts';
import { openAccount, readCookie, readCsrf } from '../../support/oauth/account-steps.ts';
import { startOwnTokens } from '../../support/oauth/own-tokens.ts';
import type { Claims } from '../../support/providers/opaque-provider.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';

const PAGE = '/connections';
const OPERATOR = { sub: 'user-1', groups: ['ops'] };
const OTHER = { sub: 'user-2', groups: ['developers'] };

const own = useFresh(async () => {
  const server = await startProtectedServer();
  const file = await readFile({ mcpServers: { crm: server.configure({ owner: 'shared' }) } });
  const tokens = await startOwnTokens({ env: { ADMIN_GROUPS: 'ops' }, deps: { file } });
  return {
    ...tokens,
    server,
    async close() {
      await tokens.close();
      await server.close();
    },
  };
});

const open = async (claims: Claims) => (await openAccount(own, claims, PAGE)).cookie;
const read = async (cookie: string) => (await own.steps.get(PAGE, cookie)).text;

const press = async (cookie: string, action: string) =>
  own.steps.post(PAGE, { csrf: readCsrf(await read(cookie)), server: 'crm', action }, cookie);

/** As far as the way back from the server, below BASE_URL. */
async function logInAtServer(cookie: string): Promise<string> {
  const { headers } = await press(cookie, 'connect');
  const answer = await fetch(headers.location ?? '', {
    method: 'POST',
    body: new URLSearchParams({ account: 'bot' }),
    redirect: 'manual',
  });
  const { pathname, search } = new URL(answer.headers.get('location') ?? '');
  return pathname + search;
}

test('§24.3 shared: an operator connects and disconnects it; others see that it is connected, and nothing more', async () => {
  const [operator, other] = [await open(OPERATOR), await open(OTHER)];
  const back = await own.steps.get(await logInAtServer(operator), operator);
  expect([back.status, back.headers.location]).toEqual([303, `https://gw.example${PAGE}`]);
  expect(await read(operator)).toContain('Disconnect crm');
  const page = await read(other);
  expect(page).toContain('Connected');
  for (const hidden of ['mcp:read', 'Since', 'Disconnect', 'Reconnect'])
    expect(page).not.toContain(hidden);
  expect((await press(operator, 'disconnect')).status).toBe(303);
  expect(own.server.countActiveLogins()).toBe(0);
  expect(await read(other)).toContain('Not connected');
});

test('§24.3 shared: nobody else ends it, or puts another account in its place', async () => {
  const [operator, other] = [await open(OPERATOR), await open(OTHER)];
  await own.steps.get(await logInAtServer(operator), operator);
  // With the token of a page of theirs: that one has no form for it.
  const csrf = readCsrf((await own.steps.get('/account', other)).text);
  for (const action of ['connect', 'disconnect']) {
    const form = { csrf, server: 'crm', action };
    expect((await own.steps.post(PAGE, form, other)).status).toBe(403);
  }
  expect(own.server.countActiveLogins()).toBe(1);
  expect(await read(other)).toContain('Connected');
});

test('§24.3 shared: who is no operator finishes nothing that one began, in the same browser either', async () => {
  const operator = await open(OPERATOR);
  const back = await logInAtServer(operator);
  const [browserCookie = ''] = operator.split('; ');
  const begun = await own.steps.get(PAGE, browserCookie);
  const asked = new URL(begun.headers.location ?? '');
  const led = await own.steps.callback(own.provider.logIn(asked, OTHER), browserCookie);
  const now = `${browserCookie}; ${readCookie(led.headers['set-cookie'])}`;
  const { status, text } = await own.steps.get(back, now);
  expect(status).toBe(403);
  expect(text).toContain('Nothing was connected');
  expect(own.server.seen('token')).toEqual([]);
  expect(await read(operator)).toContain('Not connected');
});
