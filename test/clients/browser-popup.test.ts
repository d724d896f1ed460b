// A web client that logs in by a popup: whether the two windows know one another on the way.
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import { approve, logInAtProvider, startLogInBrowser } from '../support/oauth/login-browser.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const ROWS = [
  { popups: 'true', knows: true, says: 'keeps its opener all the way' },
  { popups: 'false', knows: false, says: 'is cut off from the consent page on' },
];

describe.each(ROWS)('OAUTH_POPUPS=$popups', ({ popups, knows, says }) => {
  const own = useShared(
    () => startLogInBrowser({ env: { OAUTH_POPUPS: popups } }),
    INSTALLATION_MS,
  );

  const knowsOpener = (popup: Page) => popup.evaluate<boolean>('window.opener !== null');

  async function open(page: Page, url: string): Promise<Page> {
    const [popup] = await Promise.all([
      page.waitForEvent('popup'),
      page.evaluate(`{ window.popup = window.open(${JSON.stringify(url)}, 'log-in', 'popup'); }`),
    ]);
    await popup.waitForLoadState();
    return popup;
  }

  test(`§4.6 consent: with OAUTH_POPUPS=${popups} a popup ${says}`, async () => {
    const page = await own.page();
    await page.goto(own.site.origin);
    const popup = await open(page, own.authorizeUrl(await own.register()));
    expect(await knowsOpener(popup)).toBe(knows);
    await approve(popup);
    await popup.waitForURL(`${own.service.issuer}/login/**`);
    expect(await knowsOpener(popup)).toBe(knows);
    await logInAtProvider(popup);
    const { code } = await own.back(popup);
    expect(code).toMatch(/^[\w-]{43}$/);
    expect(await knowsOpener(popup)).toBe(knows);
    expect(await page.evaluate<boolean>('window.popup.closed')).toBe(!knows);
  });

  test(`§4.6 consent: with OAUTH_POPUPS=${popups} and nothing to ask, the popup ${says}`, async () => {
    const page = await own.page();
    const client = await own.register();
    await own.logIn(page, client);
    // Redirects only: their policy counts as well as that of pages.
    const popup = await open(page, own.authorizeUrl(client));
    await own.back(popup);
    expect(await knowsOpener(popup)).toBe(knows);
  });
});

test('§4.6 consent: a popup hands the code to the page that opened it', async () => {
  const own = await startLogInBrowser({ env: { OAUTH_POPUPS: 'true' } });
  const page = await own.page();
  await page.goto(own.site.origin);
  await page.evaluate(
    `window.got = new Promise((given) => addEventListener('message', ({ data }) => given(data))); 0`,
  );
  const url = own.authorizeUrl(await own.register());
  const [popup] = await Promise.all([
    page.waitForEvent('popup'),
    page.evaluate(`{ window.open(${JSON.stringify(url)}); }`),
  ]);
  await approve(popup);
  await logInAtProvider(popup);
  const { code } = await own.back(popup);
  await popup.evaluate('{ window.opener.postMessage(location.search, location.origin); }');
  expect(await page.evaluate<string>('window.got')).toContain(`code=${code}`);
  await own.close();
});
