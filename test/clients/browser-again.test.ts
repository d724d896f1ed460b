// What users do beside going straight on: back, twice, once more, without mouse or script.
import { expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import {
  approve,
  fieldsOf,
  heading,
  type LogInBrowser,
  logInAtProvider,
  showChoice,
  startLogInBrowser,
  watch,
} from '../support/oauth/login-browser.ts';
import { STATE } from '../support/oauth/login-steps.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const CODE = expect.stringMatching(/^[\w-]{43}$/);

const own = useShared(startLogInBrowser, INSTALLATION_MS);

const atProvider = (on: LogInBrowser) => `${on.service.issuer}/login/**`;

test('§4.6 consent: where nothing is remembered, back shows the question, which can be approved again', async () => {
  const forgetful = await startLogInBrowser({ env: { OAUTH_CONSENT_TTL_SECONDS: '0' } });
  const page = await forgetful.page();
  await forgetful.ask(page);
  await approve(page);
  await page.waitForURL(atProvider(forgetful));
  await page.goBack();
  expect(await heading(page)).toContain('Test Client');
  await approve(page);
  await page.waitForURL(atProvider(forgetful));
  await logInAtProvider(page);
  expect(await forgetful.back(page)).toMatchObject({ code: CODE, state: STATE });
  await forgetful.close();
});

test('§4.6 consent: a question kept in another tab can be approved after the first', async () => {
  const page = await own.page();
  const client = await own.register();
  const kept = await page.context().newPage();
  await own.ask(page, client);
  await own.ask(kept, client);
  await approve(page);
  await logInAtProvider(page);
  await own.back(page);
  await approve(kept);
  expect(await own.back(kept)).toMatchObject({ code: CODE, state: STATE });
});

test('§4.6 consent: two clicks on Approve are as good as one', async () => {
  const page = await own.page();
  await own.ask(page);
  await showChoice(page);
  await page.getByRole('button', { name: 'Approve' }).dblclick();
  await page.waitForURL(atProvider(own));
  await logInAtProvider(page);
  expect(await own.back(page)).toMatchObject({ code: CODE, state: STATE });
});

test('§4.6 consent: two posts of the form at once lead to the provider, both, and both logins end well', async () => {
  const page = await own.page();
  await own.ask(page);
  const form = { ...(await fieldsOf(page)), decision: 'approve' };
  const post = () =>
    page.request.post(`${own.service.baseUrl}/oauth/consent`, { form, maxRedirects: 0 });
  const replies = await Promise.all([post(), post()]);
  expect(replies.map((reply) => reply.status())).toEqual([303, 303]);
  const [one = '', other = ''] = replies.map((reply) => reply.headers().location ?? '');
  expect(new URL(one).searchParams.get('state')).not.toBe(new URL(other).searchParams.get('state'));

  await page.goto(one);
  await logInAtProvider(page);
  const first = await own.back(page);
  await page.goto(other);
  await page.waitForURL(
    (url) => url.href.startsWith(own.redirectUri) && !url.href.includes(first.code ?? ''),
  );
  const second = await own.back(page);
  expect([first.code, second.code]).toEqual([CODE, CODE]);
});

test('§4.6 consent: the callback opened again is a page that says what to do', async () => {
  const page = await own.page();
  const seen = watch(page);
  await own.logIn(page);
  const callback = seen.requests.find((url) => url.includes('/oauth/callback?')) ?? '';
  const reply = await page.goto(callback);
  expect(reply?.status()).toBe(400);
  expect(await heading(page)).toBe('Login failed');
  expect(await page.locator('main').innerText()).toContain('Start it again from your app.');
  await page.reload();
  expect(await heading(page)).toBe('Login failed');
});

test('§4.6 consent: the keyboard is enough, and shows where it is', async () => {
  const page = await own.page();
  await own.ask(page);
  const focus = () =>
    page.evaluate<string[]>(
      `(({ ariaLabel, textContent }, { outlineStyle, outlineWidth }) => [ariaLabel ?? textContent, outlineStyle, outlineWidth])
        (document.activeElement, getComputedStyle(document.activeElement))`,
    );
  await page.keyboard.press('Tab');
  expect(await focus()).toEqual([
    expect.stringMatching(/^Approve and Deny become active/),
    'solid',
    '3px',
  ]);
  await page.getByRole('button', { name: 'Approve' }).waitFor();
  await page.keyboard.press('Tab');
  expect(await focus()).toEqual(['Approve', 'solid', '3px']);
  await page.keyboard.press('Tab');
  expect(await focus()).toEqual(['Deny', 'solid', '3px']);
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await page.waitForURL(atProvider(own));
  await page.keyboard.press('Control+A');
  await page.keyboard.type('ada');
  await page.keyboard.press('Enter');
  expect(await own.back(page)).toMatchObject({ code: CODE, state: STATE });
});

test('§4.6 consent: nothing of the way needs JavaScript', async () => {
  const page = await own.page({ javaScriptEnabled: false });
  await own.ask(page);
  await page.getByLabel(/^JavaScript is off/).fill('approve');
  await page.getByRole('button', { name: 'Continue' }).click();
  await logInAtProvider(page);
  expect(await own.back(page)).toMatchObject({ code: CODE, state: STATE });
});

test('§4.6 consent: without cookies the approval is a page that says so', async () => {
  const page = await own.page();
  await own.ask(page);
  await page.context().clearCookies();
  await approve(page);
  await page.getByText('cookies are turned off').waitFor();
  expect(await heading(page)).toBe('Login failed');
});

test('§4.6 consent: the page has one script of its own and asks for nothing else', async () => {
  const page = await own.page();
  const seen = watch(page);
  const url = own.authorizeUrl(await own.register());
  await page.goto(url);
  expect(seen.requests).toEqual([url]);
  const loading = page.locator('link, img, iframe, object, embed, [src], [onclick], [onload]');
  expect([await loading.count(), await page.locator('script').count()]).toEqual([0, 1]);
  expect(seen.violations).toEqual([]);
});
