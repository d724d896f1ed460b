// The pages themselves: readable by everybody, whatever a client calls itself.
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { CHOICE_SCRIPT } from '../../src/logins/consent/consent.ts';
import { manualClock } from '../support/gateway/clock.ts';
import { useShared } from '../support/lifetimes.ts';
import { approve, heading, showChoice, startLogInBrowser } from '../support/oauth/login-browser.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';
import { contrasts } from './contrast.ts';

const REFUSED = 'Login failed';
const UNKNOWN = '/oauth/authorize?client_id=svc-AAAAAAAAAAAA';

const clock = manualClock();
const own = useShared(
  () => startLogInBrowser({ deps: { clock }, env: { OAUTH_ALLOWED_SCOPES: '*' } }),
  INSTALLATION_MS,
);

const openUnknown = (page: Page) => page.goto(`${own.service.baseUrl}${UNKNOWN}`);

const PAGES = [
  {
    name: 'question',
    open: (page: Page) => own.ask(page),
    title: 'Allow “Test Client” to log in as you?',
  },
  { name: 'error page', open: openUnknown, title: REFUSED },
];

test('§4.6 consent: an unknown client is a page in a browser, and JSON for programs', async () => {
  const page = await own.page();
  const reply = await openUnknown(page);
  expect(reply?.status()).toBe(400);
  expect(await heading(page)).toBe(REFUSED);
  expect(await page.locator('main').innerText()).toContain('invalid_client, status 400');
  await page.context().close();

  for (const accept of ['application/json', '*/*', 'application/json, text/html;q=0.9']) {
    const answer = await fetch(`${own.service.baseUrl}${UNKNOWN}`, { headers: { accept } });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: 'invalid_client' });
  }
});

test('§4.6 consent: a question that was open for too long is a page that says so', async () => {
  const page = await own.page();
  await own.ask(page);
  clock.advance(600_000);
  await approve(page);
  await page.getByText('This page has expired. Log in again from your app.').waitFor();
  expect(await heading(page)).toBe(REFUSED);
});

test.each(PAGES)(
  '§4.6 consent: the $name has a title, a language, one heading, and fits a phone',
  async (row) => {
    const page = await own.page({ viewport: { width: 320, height: 640 } });
    await row.open(page);
    expect(await page.title()).toBe(row.title);
    expect(await page.locator('html').getAttribute('lang')).toBe('en');
    expect(await page.getByRole('heading').allInnerTexts()).toEqual([row.title]);
    expect(await page.getByRole('main').count()).toBe(1);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
  },
);

test('§4.6 consent: the buttons say what they do, and nothing else takes input', async () => {
  const page = await own.page();
  await own.ask(page);
  await showChoice(page);
  expect(await page.getByRole('button').allInnerTexts()).toEqual(['Approve', 'Deny']);
  expect(await page.locator('input:not([type=hidden]), select, textarea, a').count()).toBe(0);
  for (const button of await page.getByRole('button').all()) {
    expect((await button.boundingBox())?.height).toBeGreaterThanOrEqual(44);
  }
});

test.each(
  PAGES.flatMap((row) => (['light', 'dark'] as const).map((scheme) => ({ ...row, scheme }))),
)(
  '§4.6 consent: every text of the $name has a contrast of 4.5 in the $scheme scheme',
  async (row) => {
    const page = await own.page({ colorScheme: row.scheme });
    await row.open(page);
    const found = await contrasts(page, 'h1, p, dt, dd, code, button');
    expect(found.length).toBeGreaterThan(2);
    expect(found.filter(({ ratio }) => ratio < 4.5)).toEqual([]);
    const primary = found.filter(({ text }) => text === 'Approve');
    expect(primary.length).toBe(row.name === 'question' ? 1 : 0);
    const [title] = found;
    expect((title?.ground ?? 0.5) < 0.2).toBe(row.scheme === 'dark');
  },
);

const NAMES = [
  { what: 'script', name: '</h1><script>top.bad = 1</script><img src=x>' },
  { what: 'a script of an image', name: '<img src=x onerror=top.bad=1>' },
  { what: 'a direction override', name: 'Cla\u202eedu\u2066', shown: 'Cla edu' },
  { what: 'control characters', name: 'a\u0000b\u001b[31mc\r\nd', shown: 'a b [31mc d' },
  { what: 'fillers only', name: '\u3164\u2800\u200b\u00ad', shown: 'unnamed app' },
  { what: 'a tower of accents', name: `a${'\u0335'.repeat(300)}b`, shown: 'a\u0335\u0335\u0335b' },
  { what: 'no end', name: 'x'.repeat(1000), shown: `${'x'.repeat(40)}…` },
  { what: 'quotes', name: '“Claude” by «Anthropic»', shown: "'Claude' by 'Anthropic'" },
  { what: 'marks that look like quotes', name: 'Aʺ bˮ c″ d״ e⹂ f', shown: "A' b' c'' d' e' f" },
  { what: 'right-to-left letters', name: 'שלום', shown: 'שלום' },
];

test.each(NAMES)('§4.6 consent: a name with $what does no harm', async ({ name, shown = name }) => {
  const page = await own.page({ viewport: { width: 390, height: 844 } });
  await own.ask(page, await own.register({ client_name: name }));
  const text =
    [...shown].length > 40 && !shown.endsWith('…') ? `${[...shown].slice(0, 40).join('')}…` : shown;
  expect(await heading(page)).toBe(`Allow “${text}” to log in as you?`);
  expect(await page.title()).toBe(`Allow “${text}” to log in as you?`);
  expect(await page.locator('dd strong').innerText()).toBe(`“${text}”`);
  expect(await page.evaluate('window.bad')).toBeUndefined();
  // The page's own, and none of the name.
  expect(await page.locator('script').allTextContents()).toEqual([CHOICE_SCRIPT]);
  expect(await page.locator('img').count()).toBe(0);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  await showChoice(page);
  expect(await page.getByRole('button').count()).toBe(2);
});

test('§4.6 consent: scopes are shown as they are, shortened, and apart from one another', async () => {
  const page = await own.page({ viewport: { width: 390, height: 844 } });
  const client = await own.register();
  await own.ask(page, client, { scope: `openid <b>x</b> ${'y'.repeat(1500)}` });
  const scopes = page.locator('dd').last().locator('code');
  expect(await scopes.allInnerTexts()).toEqual(['openid', '<b>x</b>', `${'y'.repeat(1000)}…`]);
  const [one, other] = await Promise.all([
    scopes.nth(0).boundingBox(),
    scopes.nth(1).boundingBox(),
  ]);
  expect((other?.x ?? 0) - (one?.x ?? 0) - (one?.width ?? 0)).toBeGreaterThan(8);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);

  await own.ask(page, client, { scope: 'openid \u202enimda' });
  expect(await own.back(page)).toMatchObject({ error: 'invalid_request' });
});

test.each([
  { host: 'xn--clude-9qa.ai', rest: '/cb' },
  { host: 'claude.ai.login.evil.example:8443', rest: '/claude.ai/cb' },
  { host: `${'claude-ai.'.repeat(20)}example`, rest: '/cb' },
])('§4.6 consent: the host $host is shown in full and in ASCII', async ({ host, rest }) => {
  const page = await own.page({ viewport: { width: 390, height: 844 } });
  const redirect_uri = `https://${host}${rest}`;
  const client = await own.register({ redirect_uris: [redirect_uri] });
  await own.ask(page, client, { redirect_uri });
  const shown = await page.getByText('the website').innerText();
  expect(shown).toBe(`the website ${host}\n${redirect_uri}`);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
});
