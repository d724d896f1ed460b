// §19.3: the login of the playground while it lasts, and when it ends: nothing that was entered is lost.
import type { Page, Route } from 'playwright-core';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { useShared } from '../support/lifetimes.ts';
import { approve, logInAtProvider } from '../support/oauth/login-browser.ts';
import {
  callTool,
  chooseEra,
  logInToPlayground,
  resultOf,
  type SiteBrowser,
  startSiteBrowser,
  steps,
  type WatchedPage,
} from '../support/site/site-browser.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const own = useShared(startSiteBrowser, INSTALLATION_MS);

interface LoggedIn extends WatchedPage {
  /** What the token endpoint gave, the latest last. */
  readonly granted: readonly { readonly access_token: string; readonly refresh_token: string }[];
}

/** With a clock of the page's own, which can be put forward. */
async function logIn(era: string, site: SiteBrowser = own): Promise<LoggedIn> {
  const watched = await site.open('/playground');
  const { page } = watched;
  const granted: LoggedIn['granted'][number][] = [];
  page.on('response', async (response) => {
    if (response.url().endsWith('/oauth/token') && response.ok())
      granted.push(await response.json());
  });
  await page.clock.install();
  await chooseEra(page, era);
  await logInToPlayground(page);
  await page.getByRole('heading', { name: 'echo' }).waitFor();
  await page.getByRole('textbox', { name: 'text' }).fill('half a sentence');
  return { ...watched, granted };
}

/** Tokens live an hour, and are renewed in its last minute. */
const TO_RENEWAL = '59:10';
const TO_END = '01:00:10';

/** Whose tokens are past half of their life: before that they are given again (§5.11). */
async function startSiteWithOldTokens() {
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => Date.now() + aheadMs };
  const site = await startSiteBrowser({ deps: { clock } });
  return { site, makeTokensOld: () => (aheadMs = 31 * 60_000) };
}

const notice = (page: Page) => page.locator('.pg-notice');

/** As another client, or the provider, might do. */
const revoke = (refreshToken: string) =>
  fetch(`${own.service.baseUrl}/oauth/revoke`, {
    method: 'POST',
    body: new URLSearchParams({ token: refreshToken, client_id: 'postern-playground' }),
  });

test('§19.3 playground: the token is renewed before it ends, and stays in memory', async () => {
  const { site, makeTokensOld } = await startSiteWithOldTokens();
  const { page, granted, tokens, complaints } = await logIn('Stateless', site);
  await page.getByText(/^Token refreshes in$/).waitFor();
  makeTokensOld();
  await page.clock.fastForward(TO_RENEWAL);
  await expect.poll(() => steps(page)).toContain('Refresh the token');
  await expect.poll(() => granted.length).toBe(2);
  await expect.poll(() => page.locator('.pg-bar').innerText()).toMatch(/refreshes in\s+0:5\d:\d\d/);
  expect(await notice(page).count()).toBe(0);

  await page.getByRole('button', { name: 'Call the tool' }).click();
  await expect.poll(() => resultOf(page).innerText()).toBe('half a sentence');
  expect([...tokens]).toEqual(granted.map(({ access_token }) => access_token));

  for (const details of await page.locator('.pg-exchanges summary').all()) await details.click();
  const readable = `${await page.content()}${await page.evaluate<string>(
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state, document.cookie])',
  )}`;
  for (const { access_token, refresh_token } of granted) {
    expect(readable).not.toContain(access_token);
    expect(readable).not.toContain(refresh_token);
  }
  expect(readable).toContain('refresh_token=$REFRESH_TOKEN');
  expect(complaints).toEqual([]);
  await site.close();
});

test('§19.3 playground: nothing can be chosen until the login is complete, because it would be lost', async () => {
  const { page } = await own.open('/playground');
  await chooseEra(page, 'Stateless');
  // The page has loaded, and does not go on before it knows the gateway.
  const asked = new Promise<Route>((resolve) => page.route('**/site.json', resolve));
  await logInToPlayground(page);
  const route = await asked;
  const other = page.getByRole('radio', { name: /^Sessions/ });
  expect(await other.isDisabled()).toBe(true);
  await route.continue();
  await page.getByRole('heading', { name: 'echo' }).waitFor();
  expect(await other.isChecked()).toBe(false);
  await other.check();
  await expect.poll(() => steps(page)).toContain('Open a session');
});

test('§19.3 playground: a login that cannot be renewed says so, and another keeps what was entered', async () => {
  const { page, granted } = await logIn('Sessions');
  await revoke(granted[0]?.refresh_token ?? '');
  await page.clock.fastForward(TO_RENEWAL);
  await notice(page).getByText('Your login ends soon. It could not be refreshed:').waitFor();
  await page.getByText(/^Login ends in$/).waitFor();

  await page.clock.fastForward('55');
  await notice(page).getByText('Your login has ended.').waitFor();
  await page.getByRole('button', { name: 'Log in again' }).click();
  // The gateway and the provider remember this browser: there and back.
  await expect.poll(() => granted.length).toBe(2);
  await page.getByRole('heading', { name: 'echo' }).waitFor();
  expect(await page.getByRole('textbox', { name: 'text' }).inputValue()).toBe('half a sentence');
  expect(await notice(page).count()).toBe(0);
  expect(await page.evaluate('sessionStorage.length')).toBe(0);
});

test('§19.3 playground: a gateway that is away when the token ends is asked again by the next call', async () => {
  const { page, granted } = await logIn('Stateless');
  await page.context().setOffline(true);
  await page.clock.fastForward(TO_END);
  await notice(page).getByText('The gateway did not answer.').waitFor();
  await page.context().setOffline(false);
  await page.getByRole('button', { name: 'Call the tool' }).click();
  await expect.poll(() => resultOf(page).innerText()).toBe('half a sentence');
  expect(await notice(page).count()).toBe(0);
  expect(granted).toHaveLength(2);
});

test('§19.3 playground: a call whose token is refused is sent again with a new one', async () => {
  const { site, makeTokensOld } = await startSiteWithOldTokens();
  const { page, granted } = await logIn('Stateless', site);
  makeTokensOld();
  await page.route(
    '**/mcp',
    (route) =>
      route.continue({ headers: { ...route.request().headers(), authorization: 'Bearer none' } }),
    { times: 1 },
  );
  await page.getByRole('button', { name: 'Call the tool' }).click();
  await expect.poll(() => resultOf(page).innerText()).toBe('half a sentence');
  expect((await steps(page)).slice(-3)).toEqual(['Call echo', 'Refresh the token', 'Call echo']);
  expect(granted).toHaveLength(2);
  await site.close();
});

test('§19.3 playground: a session that has ended is opened anew, and another revision keeps what was entered', async () => {
  const { page, tokens } = await logIn('Sessions');
  const sent = page.waitForRequest((request) => 'mcp-session-id' in request.headers());
  await callTool(page, 'echo', { text: 'the first' });
  const sessionId = (await sent).headers()['mcp-session-id'] ?? '';
  const [token] = tokens;
  await fetch(own.service.mcpUrl, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${token}`, 'mcp-session-id': sessionId },
  });

  await page.getByRole('textbox', { name: 'text' }).fill('the second');
  await page.getByRole('button', { name: 'Call the tool' }).click();
  await page.getByRole('button', { name: 'Open a new session' }).click();
  await page.getByText('Session ends in').waitFor();
  expect(await page.getByRole('textbox', { name: 'text' }).inputValue()).toBe('the second');
  await chooseEra(page, 'Stateless');
  await page.getByRole('heading', { name: 'echo' }).waitFor();
  expect(await page.getByRole('textbox', { name: 'text' }).inputValue()).toBe('the second');
});

test('§19.3 playground: logging out revokes the refresh token, and forgets what was entered', async () => {
  const { page, granted } = await logIn('Sessions');
  const revoked = page.waitForResponse(`${own.service.baseUrl}/oauth/revoke`);
  await page.getByRole('button', { name: 'Log out' }).click();
  expect((await revoked).status()).toBe(200);
  await page.getByRole('button', { name: 'Log in', exact: true }).waitFor();
  expect(await page.content()).not.toContain('half a sentence');
  const answer = await fetch(`${own.service.baseUrl}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: granted[0]?.refresh_token ?? '',
      client_id: 'postern-playground',
    }),
  });
  expect(await answer.json()).toMatchObject({ error: 'invalid_grant' });
});

test('§19.3 playground: two tabs log in at once, and neither gets the other’s answer', async () => {
  const { page: first } = await own.open('/playground');
  const second = await first.context().newPage();
  await second.goto(`${own.service.baseUrl}/playground`);
  const referrers: string[] = [];
  const tokens = [first, second].map((page) => {
    page.on('request', (request) => referrers.push(request.headers().referer ?? ''));
    return page.waitForRequest((request) => 'mcp-session-id' in request.headers());
  });
  for (const page of [first, second]) {
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.waitForURL(/\/oauth\/authorize\?/);
  }
  await approve(second);
  await logInAtProvider(second, 'grace');
  await second.getByRole('heading', { name: 'echo' }).waitFor();
  await approve(first);
  await first.getByRole('heading', { name: 'echo' }).waitFor();
  const sent = await Promise.all(tokens);
  expect(new Set(sent.map((request) => request.headers().authorization)).size).toBe(2);
  // Nor does anybody else get a code: it is in no address that requests tell.
  expect(referrers.filter((referrer) => referrer.includes('code='))).toEqual([]);
});
