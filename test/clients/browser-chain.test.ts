// Redirects after the form: a browser holds all of them to the page's content security policy.
import { expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import {
  approve,
  logInAtProvider,
  showChoice,
  startLogInBrowser,
  watch,
} from '../support/oauth/login-browser.ts';
import { STATE } from '../support/oauth/login-steps.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const CURSOR = 'cursor://anysphere.cursor-mcp/oauth/callback';
const CODE = expect.stringMatching(/^[\w-]{43}$/);

const own = useShared(startLogInBrowser, INSTALLATION_MS);

const originsOf = (urls: readonly string[]) => urls.map((url) => new URL(url, 'http://x').origin);

test('§4.6 consent: with a session at the provider, Approve leads to the client without a page between', async () => {
  const page = await own.page();
  await own.logIn(page);
  await own.ask(page);
  const seen = watch(page);
  await approve(page);
  expect(await own.back(page)).toEqual({ code: CODE, state: STATE, iss: own.service.baseUrl });
  const { baseUrl, issuer } = own.service;
  expect(originsOf(seen.requests)).toEqual([baseUrl, issuer, baseUrl, own.site.origin]);
  expect(seen.violations).toEqual([]);
});

test('§4.6 consent: a provider that federates leads over other origins to its login and back', async () => {
  await own.service.restart({ OAUTH_AUTHORIZATION_URL: own.site.federatedUrl });
  const { neighbour, origin } = own.site;
  const { baseUrl, issuer } = own.service;
  const page = await own.page();
  const seen = watch(page);
  await own.ask(page);
  await approve(page);
  await logInAtProvider(page);
  expect(await own.back(page)).toMatchObject({ code: CODE, state: STATE });
  expect(originsOf(seen.redirects).slice(0, 4)).toEqual([neighbour, origin, neighbour, issuer]);

  // Once more with the session: from the form to the client in one go, over four origins.
  await own.ask(page);
  const straight = watch(page);
  await approve(page);
  expect(await own.back(page)).toMatchObject({ code: CODE, state: STATE });
  expect(originsOf(straight.requests)).toEqual([
    baseUrl,
    neighbour,
    origin,
    neighbour,
    issuer,
    baseUrl,
    origin,
  ]);
  expect([...seen.violations, ...straight.violations]).toEqual([]);
  await page.context().close();
  await own.service.restart({ OAUTH_AUTHORIZATION_URL: `${issuer}/auth` });
});

test.each(['approve', 'deny'])(
  '§4.6 consent: %s with a program that opens links of its own leads to cursor://',
  async (decision) => {
    const page = await own.page();
    await own.logIn(page);
    const client = await own.register({ redirect_uris: [CURSOR] });
    await own.ask(page, client, { redirect_uri: CURSOR });
    expect(await page.locator('dl').innerText()).toContain(CURSOR);
    const seen = watch(page);
    await showChoice(page);
    // Nothing opens such a link here: the browser gives it up after the redirect.
    const [given] = await Promise.all([
      page.waitForEvent('requestfailed'),
      page.locator(`button[value=${decision}]`).click(),
    ]);
    const last = new URL(seen.redirects.at(-1) ?? '');
    expect(last.href.split('?')[0]).toBe(CURSOR);
    expect(Object.fromEntries(last.searchParams)).toMatchObject({
      ...(decision === 'approve' ? { code: CODE } : { error: 'access_denied' }),
      state: STATE,
      iss: own.service.baseUrl,
    });
    expect(given.failure()?.errorText).not.toMatch(/CSP|BLOCKED_BY/);
    expect(seen.violations).toEqual([]);
  },
);

test('§4.6 consent: a redirect after the form tells nobody where the user came from', async () => {
  const page = await own.page();
  await own.logIn(page);
  await own.ask(page);
  const referers: (string | undefined)[] = [];
  const all: Promise<unknown>[] = [];
  page.on('request', (request) => {
    if (new URL(request.url()).origin === own.service.baseUrl) return;
    all.push(request.allHeaders().then(({ referer }) => referers.push(referer)));
  });
  await approve(page);
  await own.back(page);
  await Promise.all(all);
  expect(referers).toEqual([undefined, undefined]);
});
