// §13: a click or key that was meant for something else approves nothing.
import type { CDPSession, Page } from 'playwright-core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import {
  approve,
  heading,
  logInAtProvider,
  startLogInBrowser,
} from '../support/oauth/login-browser.ts';
import { STATE } from '../support/oauth/login-steps.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const ASKED = 'Allow “Test Client” to log in as you?';

const own = useShared(startLogInBrowser, INSTALLATION_MS);
let page: Page;
let cdp: CDPSession;
beforeEach(async () => {
  page = await own.page();
  cdp = await page.context().newCDPSession(page);
  await cdp.send('Animation.enable');
});
afterEach(() => page.context().close());

/** The page's clock for transitions stands still: a moment lasts as long as the test needs. */
const stopTime = () => cdp.send('Animation.setPlaybackRate', { playbackRate: 0 });
const startTime = () => cdp.send('Animation.setPlaybackRate', { playbackRate: 1 });

const choice = () => page.getByRole('button', { name: 'Approve' });
const isShown = () => choice().isVisible();
const focused = () =>
  page.evaluate<string>(
    'document.activeElement.ariaLabel ?? document.activeElement.textContent.trim()',
  );

/** Where the button will be, seen or not. */
async function placeOfApprove(): Promise<{ x: number; y: number }> {
  const box = await page.locator('button.primary').boundingBox();
  if (box === null) throw new Error('There is no button');
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}

/** What the buttons wait for, in milliseconds. */
const waits = () =>
  page.evaluate<number[]>(
    'document.getAnimations().map((one) => one.effect.getTiming()).map(({ delay, duration }) => delay + duration)',
  );

test('§4.6 consent: the second half of a double click on a window in front approves nothing', async () => {
  await own.ask(page);
  await stopTime();
  const sent: string[] = [];
  page.on('request', (request) => sent.push(request.url()));
  const { x, y } = await placeOfApprove();
  await page.mouse.move(x, y);
  await expect.poll(waits).toContain(600);
  for (let clicks = 0; clicks < 5; clicks += 1) await page.mouse.click(x, y, { clickCount: 2 });
  expect([await isShown(), await heading(page), sent]).toEqual([false, ASKED, []]);

  // It was the moment that was missing, and nothing else.
  await startTime();
  await choice().waitFor();
  await page.mouse.click(x, y);
  await page.waitForURL(`${own.service.issuer}/**`);
});

test('§4.6 consent: pictures of both buttons are seen at once, as the buttons will be and where they will be', async () => {
  await own.ask(page);
  await stopTime();
  const places = (selector: string) =>
    page.locator(selector).evaluateAll((all) =>
      all.map((one) => {
        const { x, y, width, height } = one.getBoundingClientRect();
        return { text: one.textContent, x, y, width, height };
      }),
    );
  const pictures = page.locator('.before-choice .button');
  expect(await pictures.allInnerTexts()).toEqual(['Approve', 'Deny']);
  for (const picture of await pictures.all()) expect(await picture.isVisible()).toBe(true);
  // Pale ones look disabled.
  const pale =
    '[...document.querySelectorAll(".before-choice .button")].map((one) => getComputedStyle(one).opacity)';
  expect(await page.evaluate(pale)).toEqual(['1', '1']);
  expect(await isShown()).toBe(false);
  expect(await places('.before-choice .button')).toEqual(await places('.choice button'));
});

test('§4.6 consent: the buttons go with the pointer, and come after another moment', async () => {
  await own.ask(page);
  expect(await isShown()).toBe(false);
  await page.getByRole('heading').hover();
  await choice().waitFor();
  await stopTime();
  await page.mouse.move(-10, -10);
  await expect.poll(isShown).toBe(false);
  const { x, y } = await placeOfApprove();
  await page.mouse.click(x, y);
  expect([await isShown(), await heading(page)]).toEqual([false, ASKED]);
});

test('§4.6 consent: a click on the page leaves no focus that would keep the buttons there', async () => {
  await own.ask(page);
  for (const text of ['Publisher', 'It will be able to use']) {
    await page.getByText(text).click({ force: true });
  }
  const { x, y } = await placeOfApprove();
  await page.mouse.click(x, y);
  await page.mouse.move(-10, -10);
  await expect.poll(isShown).toBe(false);
});

test('§4.6 consent: keys of the first moment approve nothing', async () => {
  await own.ask(page);
  await stopTime();
  for (const key of ['Enter', 'Space', 'Tab', 'Enter', 'Space']) await page.keyboard.press(key);
  expect([await isShown(), await heading(page)]).toEqual([false, ASKED]);
  await expect.poll(waits).toContain(600);
});

test('§4.6 consent: the keyboard alone is enough', async () => {
  await own.ask(page);
  await page.keyboard.press('Tab');
  expect(await focused()).toBe('Approve and Deny become active after a moment');
  await choice().waitFor();
  await page.keyboard.press('Tab');
  expect(await focused()).toBe('Approve');
  await page.keyboard.press('Tab');
  expect(await focused()).toBe('Deny');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await page.waitForURL(`${own.service.issuer}/**`);
  await logInAtProvider(page);
  expect(await own.back(page)).toMatchObject({ state: STATE });
});

test('§4.6 consent: on a screen that is touched they appear by themselves, after a moment', async () => {
  await page.context().close();
  page = await own.page({ hasTouch: true, isMobile: true, viewport: { width: 390, height: 844 } });
  await own.ask(page);
  expect(await page.evaluate('matchMedia("(hover: none)").matches')).toBe(true);
  await choice().waitFor();
  expect(await waits()).toContain(600);
  await choice().tap();
  await page.waitForURL(`${own.service.issuer}/**`);
});

test('§4.6 consent: without JavaScript the answer is typed, and no key or click alone gives it', async () => {
  await page.context().close();
  page = await own.page({ javaScriptEnabled: false });
  await own.ask(page);
  expect(await page.getByRole('button').allInnerTexts()).toEqual(['Continue']);
  const answer = page.getByLabel(/^JavaScript is off in this browser/);
  for (const typed of ['', 'yes', 'disapprove']) {
    await answer.fill(typed);
    await answer.press('Enter');
    await page.getByRole('button', { name: 'Continue' }).click();
    expect([typed, await heading(page)]).toEqual([typed, ASKED]);
  }
  await answer.fill('Approve ');
  await answer.press('Enter');
  await page.waitForURL(`${own.service.issuer}/**`);

  await own.ask(page);
  await answer.fill('deny');
  await page.getByRole('button', { name: 'Continue' }).click();
  expect(await own.back(page)).toMatchObject({ error: 'access_denied' });
});

test('§4.6 consent: what assistive technology is told', async () => {
  await own.ask(page);
  await page.getByRole('heading').hover();
  await choice().waitFor();
  expect(await page.locator('main').ariaSnapshot()).toMatch(
    /heading "Allow “Test Client” to log in as you\?"[\s\S]*group "Approve and Deny become active after a moment"\n {2}- button "Approve"\n {2}- button "Deny"$/,
  );
});

test('§4.6 consent: a name that mixes scripts is marked, one of a language that does is not', async () => {
  const marked = page.locator('.warning');
  for (const [client_name, mixes] of [
    ['Clаude', true],
    ['ΑΡI Ⅼogin', true],
    ['Клод', false],
    ['ꓚꓡ𐐠𐐀', true],
    ['Google 検索アプリ', false],
    ['네이버 App 2', false],
    ['3·1 — ✓', false],
  ] as const) {
    await own.ask(page, await own.register({ client_name }));
    expect([client_name, await marked.count()]).toEqual([client_name, mixes ? 1 : 0]);
  }
  await own.ask(page, await own.register({ client_name: 'Clаude' }));
  expect(await marked.innerText()).toContain('Cyrillic, Latin');
});

test('§4.6 consent: a redirect URI with a private scheme is shown whole', async () => {
  const redirect_uri = `cursor://${'a'.repeat(500)}.example/oauth/callback?x=1`;
  const client = await own.register({ redirect_uris: [redirect_uri] });
  await own.ask(page, client, { redirect_uri });
  await page.getByText(redirect_uri, { exact: true }).waitFor();
  expect(await page.locator('dd').nth(2).innerText()).toBe(
    `the app on this computer that opens ${redirect_uri}`,
  );
});

test('§4.6 consent: a request that is wrong is told to the client only when its user says so', async () => {
  const redirect_uri = `${own.site.origin.replace(/\/\/[^:]+/, '//app.example')}/callback`.replace(
    'http:',
    'https:',
  );
  const client = await own.register({ redirect_uris: [redirect_uri] });
  await own.ask(page, client, { redirect_uri, response_type: 'token' });
  expect(await heading(page)).toBe('Login failed');
  const link = page.getByRole('link', { name: `Go back to ${new URL(redirect_uri).host}` });
  const asked = page.waitForRequest(`${redirect_uri}?**`);
  await link.click();
  const { searchParams } = new URL((await asked).url());
  expect(Object.fromEntries(searchParams)).toMatchObject({
    error: 'unsupported_response_type',
    state: STATE,
    iss: own.service.baseUrl,
  });
});

test('§4.6 consent: the usual user approves', async () => {
  await own.ask(page);
  await approve(page);
  await logInAtProvider(page);
  expect(await own.back(page)).toMatchObject({ state: STATE });
});
