// /account: users see which apps act for them, and end that.
import { expect, test } from 'vitest';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import {
  openAccount,
  readCookie,
  readCsrf,
  readGrants,
} from '../../support/oauth/account-steps.ts';
import { startOwnTokens, toTokens } from '../../support/oauth/own-tokens.ts';
import type { Claims } from '../../support/providers/opaque-provider.ts';

const HOUR_MS = 3_600_000;

const own = useFresh(() => startOwnTokens());

const open = (claims?: Claims) => openAccount(own, claims);
const readPage = async (cookie: string) => (await own.steps.get('/account', cookie)).text;

test('§5.11 account: who comes is logged in at the provider first, then sees the apps of that person alone', async () => {
  await own.logIn();
  await own.logIn({ sub: 'user-2', email: 'bob@example.com' });
  const { asked, back, cookie } = await open();
  expect(asked.searchParams.get('scope')).toBe('openid profile email');
  expect(back.headers.location).toBe('https://gw.example/account');
  const page = await readPage(cookie);
  expect(page).toContain('ada@example.com');
  expect(readGrants(page)).toHaveLength(1);
});

test('§5.11 account: "Log out" ends one login at once, at the provider too, and no other', async () => {
  const one = await own.logIn();
  own.clock.advance(1000);
  const other = await own.logIn();
  const { cookie } = await open();
  const page = await readPage(cookie);
  // The latest stands first.
  const [, grant = ''] = readGrants(page);
  const form = { csrf: readCsrf(page), action: 'end', grant };
  expect((await own.steps.post('/account', form, cookie)).headers.location).toBe(
    'https://gw.example/account',
  );
  expect((await own.call(one.access)).json.error.data.reason).toBe('token_revoked');
  expect((await own.refresh(one)).json.error).toBe('invalid_grant');
  expect((await own.call(other.access)).status).toBe(200);
  expect(own.provider.revoked).toHaveLength(1);
  expect(readGrants(await readPage(cookie))).toHaveLength(1);
});

test('§5.11 account: an app that goes on refreshing stays listed for as long as it may act, and one that stopped does not', async () => {
  const brief = closeAfterTest(
    await startOwnTokens({ env: { OAUTH_REFRESH_TTL_SECONDS: '86400' } }),
  );
  await brief.logIn();
  let used = await brief.logIn();
  for (let hour = 0; hour < 30; hour += 1) {
    brief.clock.sleep(HOUR_MS);
    used = toTokens(used.client, await brief.refresh(used));
  }
  const { cookie } = await openAccount(brief);
  const page = (await brief.steps.get('/account', cookie)).text;
  expect(readGrants(page)).toHaveLength(1);
  const form = { csrf: readCsrf(page), action: 'end', grant: readGrants(page)[0] };
  await brief.steps.post('/account', form, cookie);
  expect((await brief.call(used.access)).json.error.data.reason).toBe('token_revoked');
});

test('§5.11 account: nobody ends the login of somebody else', async () => {
  const victim = await own.logIn();
  const { cookie: victimCookie } = await open();
  const [grant = ''] = readGrants(await readPage(victimCookie));
  const { cookie } = await open({ sub: 'user-2' });
  const form = { csrf: readCsrf(await readPage(cookie)), action: 'end', grant };
  await own.logIn({ sub: 'user-2' });
  await own.steps.post('/account', form, cookie);
  expect((await own.call(victim.access)).status).toBe(200);
});

test.each([
  { what: 'without the page’s token', change: { csrf: '' } },
  { what: 'with that of another session', change: { csrf: 'another' } },
  { what: 'with an action that there is none', change: { action: 'everything' } },
])('§5.11 account: a form $what is refused, and nothing ends', async ({ change }) => {
  const tokens = await own.logIn();
  const { cookie } = await open();
  const page = await readPage(cookie);
  const form = { csrf: readCsrf(page), action: 'end', grant: readGrants(page)[0], ...change };
  expect((await own.steps.post('/account', form, cookie)).status).toBe(400);
  expect((await own.call(tokens.access)).status).toBe(200);
});

test('§5.11 account: before all logins end the provider asks who it is, whatever it knows', async () => {
  const [one, other] = [await own.logIn(), await own.logIn()];
  const bystander = await own.logIn({ sub: 'user-2' });
  const { cookie } = await open();
  const csrf = readCsrf(await readPage(cookie));
  const led = await own.steps.post('/account', { csrf, action: 'end_all' }, cookie);
  const asked = new URL(led.headers.location ?? '');
  expect(asked.searchParams.get('prompt')).toBe('login');
  expect((await own.call(one.access)).status).toBe(200);
  const auth_time = Math.floor(own.clock.now() / 1000);
  const back = await own.steps.callback(own.provider.logIn(asked, { auth_time }), cookie);
  const fresh = `${cookie.split(';')[0]}; ${readCookie(back.headers['set-cookie'])}`;
  const { text } = await own.steps.get('/account?all=1', fresh);
  expect(text).toContain('Log out everywhere now');
  await own.steps.post('/account', { csrf: readCsrf(text), action: 'end_all' }, fresh);
  for (const { access } of [one, other]) expect((await own.call(access)).status).toBe(401);
  expect((await own.call(bystander.access)).status).toBe(200);
});

test('§5.11 account: the cookie is for this host, and for no script; each login has a new one', async () => {
  const { back, session } = await open();
  expect(back.headers['set-cookie']).toMatch(
    /^__Host-postern-account=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  );
  expect((await open()).session).not.toBe(session);
});

test('§5.11 account: after a quarter of an hour without a request the browser is logged out', async () => {
  const { cookie } = await open();
  own.clock.advance(14 * 60_000);
  expect((await own.steps.get('/account', cookie)).status).toBe(200);
  own.clock.advance(14 * 60_000);
  expect((await own.steps.get('/account', cookie)).status).toBe(200);
  own.clock.advance(16 * 60_000);
  expect((await own.steps.get('/account', cookie)).status).toBe(303);
});

test('§5.11 account: a login that was begun in another browser opens nothing here', async () => {
  const begun = await own.steps.get('/account');
  const asked = new URL(begun.headers.location ?? '');
  const stranger = readCookie((await own.steps.get('/account')).headers['set-cookie']);
  const back = await own.steps.callback(own.provider.logIn(asked), stranger);
  expect(back.status).toBe(400);
  expect(back.headers['set-cookie']).toBeUndefined();
});

test('§5.11 account: names of apps are text, whatever they call themselves', async () => {
  const client = await own.steps.register({ client_name: '<img src=x onerror=alert(1)>' });
  await own.steps.redeem(client, await own.logInTo(client));
  const { cookie } = await open();
  const page = await readPage(cookie);
  expect(page).not.toContain('<img');
  expect(page).toContain('&lt;img');
});

/** It turns the direction of what follows, hides a blank and ends its quotes. */
const SLY = 'Bank\u202e\u200b” by\u2066 Ada\n';
const HIDDEN = /[\u200b\u202a-\u202e\u2066-\u2069]/;

test('§5.11 account: names are shown as on the consent page: nothing in them is unseen, or turns what stands beside them', async () => {
  const client = await own.steps.register({ client_name: SLY });
  await own.steps.redeem(client, await own.logInTo(client));
  const mixed = await own.steps.register({ client_name: 'Clаude' });
  await own.steps.redeem(mixed, await own.logInTo(mixed));
  const page = await readPage((await open()).cookie);
  expect(page).toContain('“<bdi>Bank &#39; by Ada</bdi>”');
  expect(page).toContain('mixes letters from different scripts');
  expect(page).not.toMatch(HIDDEN);
});

test('§5.11 account: what the provider calls the person is shown with what is not seen', async () => {
  const { cookie } = await open({ sub: 'user-1', email: '', name: 'Ada\u202eadA\u200b' });
  const page = await readPage(cookie);
  expect(page).toContain('Ada\\u202eadA\\u200b');
  expect(page).not.toMatch(HIDDEN);
});

test('§5.11 account: two apps of one name are told apart, and two logins of one app are not two apps', async () => {
  const one = await own.steps.register({ client_name: 'Claude' });
  await own.steps.redeem(one, await own.logInTo(one));
  await own.steps.redeem(one, await own.logInTo(one));
  const { cookie } = await open();
  expect(await readPage(cookie)).not.toContain(one.id);
  const other = await own.steps.register({ client_name: 'Clau\u200bde' });
  await own.steps.redeem(other, await own.logInTo(other));
  const page = await readPage(cookie);
  // What is not seen is a blank on the consent page: this is another name.
  expect(page).toContain('“<bdi>Clau de</bdi>”');
  const twin = await own.steps.register({ client_name: '\u200bClaude' });
  await own.steps.redeem(twin, await own.logInTo(twin));
  const told = await readPage(cookie);
  for (const { id } of [one, twin]) {
    expect(told).toContain(`<code>${id}</code>`);
    expect(told).toContain(`aria-label="Log out Claude, ${id}"`);
  }
  expect(told).not.toContain(other.id);
});

test('§5.11 account: where the provider does not say that it asked, the page says why all logins stay, and each can end', async () => {
  const tokens = await own.logIn();
  await own.logIn();
  const { cookie } = await open();
  const csrf = readCsrf(await readPage(cookie));
  const led = await own.steps.post('/account', { csrf, action: 'end_all' }, cookie);
  const asked = new URL(led.headers.location ?? '');
  const back = await own.steps.callback(own.provider.logIn(asked), cookie);
  const session = `${cookie.split(';')[0]}; ${readCookie(back.headers['set-cookie'])}`;
  const { pathname, search } = new URL(back.headers.location ?? '');
  const { text } = await own.steps.get(`${pathname}${search}`, session);
  expect(text).toContain('did not confirm that you logged in again');
  expect(text).not.toContain('everywhere now');
  expect(readGrants(text)).toHaveLength(2);
  expect((await own.call(tokens.access)).status).toBe(200);
  // On another visit nothing is left of it.
  expect((await own.steps.get('/account', session)).text).not.toContain('did not say');
});
