// /account: whoever logs out there can log out at the provider, too, where that has a page for it.
import { decodeJwt } from 'jose';
import { expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import { openAccount, readCookie, readCsrf } from '../../support/oauth/account-steps.ts';
import { startOwnTokens } from '../../support/oauth/own-tokens.ts';
import { CLIENT_ID, type Claims } from '../../support/providers/opaque-provider.ts';

const LOGOUT_URL = 'https://login.example/logout?tenant=1';

const own = useFresh(async () => {
  const setup = await startOwnTokens({ isReplicated: true });
  // Both have the first document: one that is still on its way would be taken for a new one when the time has moved on.
  for (const { steps } of [setup, setup.other]) await steps.get('/account');
  offerLogout(setup, LOGOUT_URL);
  return setup;
});

function offerLogout({ provider, clock }: Pick<typeof own, 'provider' | 'clock'>, url: unknown) {
  const { issuer } = provider;
  issuer.document = { ...issuer.document, end_session_endpoint: url };
  // Discovery documents are kept for five minutes.
  clock.advance(300_001);
}

const readPage = async (cookie: string, path = '/account') =>
  (await own.steps.get(path, cookie)).text;

async function act(cookie: string, action: string, path?: string) {
  const csrf = readCsrf(await readPage(cookie, path));
  return own.other.steps.post('/account', { csrf, action }, cookie);
}

/** As a browser whose user the provider has just asked. */
async function openFresh(claims?: Claims): Promise<string> {
  const { cookie } = await openAccount(own, claims);
  const led = await act(cookie, 'ask_all');
  const auth_time = Math.floor(own.clock.now() / 1000);
  const asked = new URL(led.headers.location ?? '');
  const back = await own.steps.callback(
    own.provider.logIn(asked, { ...claims, auth_time }),
    cookie,
  );
  return `${cookie.split(';')[0]}; ${readCookie(back.headers['set-cookie'])}`;
}

test('§13.5 account: leaving the page at the provider, too, ends the browser’s session, and no login', async () => {
  const { access } = await own.logIn();
  const { cookie } = await openAccount(own);
  expect(await readPage(cookie)).toContain('Leave this page, and log out at login.example');
  const { status, headers } = await act(cookie, 'leave_provider');
  const { origin, pathname, searchParams } = new URL(headers.location ?? '');
  expect([status, origin + pathname]).toEqual([303, 'https://login.example/logout']);
  const { id_token_hint: hint, state, ...asked } = Object.fromEntries(searchParams);
  expect(asked).toEqual({
    tenant: '1',
    client_id: CLIENT_ID,
    post_logout_redirect_uri: 'https://gw.example/account',
  });
  expect(decodeJwt(hint ?? '')).toMatchObject({ sub: 'user-1', aud: CLIENT_ID });
  expect(state).toMatch(/^[\w-]{43}$/);
  expect(headers['set-cookie']).toContain('Max-Age=0');
  expect([headers['cache-control'], headers['referrer-policy']]).toEqual([
    'no-store',
    'no-referrer',
  ]);
  expect((await own.steps.get('/account', cookie)).status).toBe(303);
  expect((await own.call(access)).status).toBe(200);
});

test('§13.5 account: who comes back from there is told so, and not sent to log in at once; nobody else is', async () => {
  const { cookie } = await openAccount(own);
  const { headers } = await act(cookie, 'leave_provider');
  const { searchParams } = new URL(headers.location ?? '');
  const path = `/account?state=${searchParams.get('state')}`;
  const back = await own.other.steps.get(path, cookie);
  expect([back.status, back.headers['cache-control']]).toEqual([200, 'no-store']);
  expect(back.text).toContain('You are logged out');
  expect(back.text).toContain('login.example');
  const other = (await openAccount(own, { sub: 'user-2' })).cookie.split(';')[0];
  for (const stranger of [undefined, other]) {
    expect((await own.steps.get(path, stranger)).status).toBe(303);
  }
  expect((await own.steps.get('/account?state=forged', cookie)).status).toBe(303);
  own.clock.advance(1000);
  // Whoever has logged in again meanwhile sees the apps.
  const again = await openAccount(own);
  expect(await readPage(`${cookie.split(';')[0]}; ${again.session}`, path)).toContain(
    'You are logged in',
  );
});

test('§13.5 account: "Log out everywhere", and at the provider, ends all logins of the user, and nobody else’s', async () => {
  const logins = [await own.logIn(), await own.logIn()];
  const bystander = await own.logIn({ sub: 'user-2' });
  const cookie = await openFresh();
  const page = await readPage(cookie, '/account?all=1');
  expect(page).toContain('Log out everywhere now, and at login.example');
  const { headers } = await act(cookie, 'end_all_provider', '/account?all=1');
  expect(headers.location).toContain('https://login.example/logout?tenant=1&client_id=');
  for (const { access } of logins) expect((await own.call(access)).status).toBe(401);
  expect((await own.call(bystander.access)).status).toBe(200);
  expect((await own.steps.get('/account', cookie)).status).toBe(303);
});

test('§13.5 account: that needs a login that the provider asked for, as without the provider', async () => {
  const logins = [await own.logIn(), await own.logIn()];
  const { cookie } = await openAccount(own);
  const { headers } = await act(cookie, 'end_all_provider');
  expect(new URL(headers.location ?? '').searchParams.get('prompt')).toBe('login');
  for (const { access } of logins) expect((await own.call(access)).status).toBe(200);
});

test('§13.5 account: a form of another page logs nobody out', async () => {
  const { cookie } = await openAccount(own);
  const form = { csrf: 'x', action: 'leave_provider' };
  expect((await own.steps.post('/account', form, cookie)).status).toBe(400);
  expect((await own.steps.get('/account', cookie)).status).toBe(200);
});

test('§13.5 account: an ID token that is too long for an address is left out', async () => {
  const { cookie } = await openAccount(own, { filler: 'x'.repeat(4000) });
  const { headers } = await act(cookie, 'leave_provider');
  const { searchParams } = new URL(headers.location ?? '');
  expect(searchParams.has('id_token_hint')).toBe(false);
  expect(searchParams.get('client_id')).toBe(CLIENT_ID);
});

test.each([undefined, 'javascript:alert(1)', '/logout', 7])(
  '§13.5 account: with end_session_endpoint %s there is no such button, and leaving leads to the front page',
  async (url) => {
    offerLogout(own, url);
    const { cookie } = await openAccount(own);
    expect(await readPage(cookie)).not.toContain('log out at');
    const { headers } = await act(cookie, 'leave_provider');
    expect(headers.location).toBe('https://gw.example/');
    expect((await own.steps.get('/account', cookie)).status).toBe(303);
  },
);
