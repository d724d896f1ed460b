// The documentation pages in a browser, as they were built: what they load, what the policy lets them do, who can
// read them.
import axe from 'axe-core';
import { describe, expect, test } from 'vitest';
import { type PathProxy, startPathProxy } from '../support/gateway/path-proxy.ts';
import { type Service, startService } from '../support/gateway/service.ts';
import { useShared } from '../support/lifetimes.ts';
import { waitForScheme, waitUntilLoaded, watchTroubles } from '../support/site/troubles.ts';
import { INSTALLATION_MS, openBrowser, type TestBrowser } from '../support/tools/chromium.ts';

interface Served {
  readonly url: string;
  readonly browser: TestBrowser;
  close(): Promise<void>;
}

/** A gateway whose BASE_URL has the path, behind a proxy that takes it away. */
async function serve(path: string): Promise<Served> {
  let service: Service | undefined;
  const proxy: PathProxy = await startPathProxy(path, () =>
    Number(new URL(service?.baseUrl ?? '').port),
  );
  service = await startService({ env: { AUTH_REQUIRED: 'false', BASE_URL: proxy.url } });
  const browser = await openBrowser();
  return {
    url: proxy.url,
    browser,
    async close() {
      await browser.close();
      await proxy.close();
      await service?.close();
    },
  };
}

/** A page of each kind: prose, tables that filters narrow, code, figures. At the root, browser-site-widths.test.ts goes through all. */
const KINDS = ['/guide', '/settings', '/authors', '/benchmarks', '/reference'];

describe('pages below a path', () => {
  const own = useShared(() => serve('/tools/gw'), INSTALLATION_MS);

  test('§4.1 pages: they load what they need from below the path, and the policy blocks nothing', async () => {
    const page = await own.browser.newPage();
    const troubles = watchTroubles(page, own.url);
    for (const name of KINDS) {
      await page.goto(`${own.url}${name}`);
      await waitUntilLoaded(page);
      expect(await page.getByRole('heading', { level: 1 }).count(), name).toBe(1);
      expect(troubles, name).toEqual([]);
    }
  });

  test('§4.1 pages: a link to a page is followed without loading the site again', async () => {
    const page = await own.browser.newPage();
    const troubles = watchTroubles(page, own.url);
    await page.goto(`${own.url}/guide`);
    await waitUntilLoaded(page);
    await page.evaluate('window.isStillThere = true');
    await page.getByRole('main').getByRole('link', { name: 'rules' }).first().click();
    await page.waitForURL(`${own.url}/rules`);
    await page.getByRole('heading', { level: 1, name: 'Rules' }).waitFor();
    expect(await page.evaluate('window.isStillThere')).toBe(true);
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Guide' }).waitFor();
    expect(troubles).toEqual([]);
  });

  test('§4.1 pages: a link to what is no page is left to the gateway', async () => {
    const page = await own.browser.newPage();
    await page.goto(`${own.url}/guide`);
    await waitUntilLoaded(page);
    const answered = page.waitForResponse(`${own.url}/health`);
    await page.getByRole('link', { name: 'health' }).click();
    expect((await answered).status()).toBe(200);
    await page.waitForURL(`${own.url}/health`);
  });

  test('§4.1 pages: the search finds a setting, and leads to its page, below the path', () =>
    searchForSetting(own));

  test('§4.1 pages: a page that is not there says so within the site, with status 404', async () => {
    const page = await own.browser.newPage();
    const troubles = watchTroubles(page, own.url);
    const answer = await page.goto(`${own.url}/nowhere/at-all`);
    expect(answer?.status()).toBe(404);
    await page.getByRole('heading', { level: 1, name: 'Page not found' }).waitFor();
    expect(await page.getByRole('button', { name: 'Search' }).count()).toBe(1);
    // What every browser says of the status itself.
    expect(troubles.filter((text) => !text.includes('status of 404'))).toEqual([]);
    await page.getByRole('main').getByRole('link', { name: 'guide' }).click();
    await page.getByRole('heading', { level: 1, name: 'Guide' }).waitFor();
  });
});

async function searchForSetting({ url, browser }: Served): Promise<void> {
  const page = await browser.newPage();
  const troubles = watchTroubles(page, url);
  await page.goto(`${url}/guide`);
  await waitUntilLoaded(page);
  await page.keyboard.press('Control+k');
  await page.getByRole('searchbox').fill('DCR_CLIENT_TTL');
  await page.getByRole('option').first().waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL((at) => !at.pathname.endsWith('/guide'));
  await page.getByRole('main').getByText('DCR_CLIENT_TTL').first().waitFor();
  expect(troubles).toEqual([]);
}

/** The button of the search is called Search, and shows its shortcut beside that. */
const RULES = { rules: { 'label-content-name-mismatch': { enabled: false } } };
/** Both schemes have the same page: the dark one is looked at for what depends on colours. */
const OPTIONS = {
  light: RULES,
  dark: { ...RULES, runOnly: ['color-contrast', 'link-in-text-block'] },
} as const;

describe('pages for everybody', () => {
  const own = useShared(() => serve(''), INSTALLATION_MS);

  test('§4.1 pages: the search finds a setting, and leads to its page, at the root', () =>
    searchForSetting(own));

  test('§4.1 pages: the list of pages begins with how to use the gateway, and folds what is for operators', async () => {
    const page = await own.browser.newPage({ viewport: { width: 1280, height: 900 } });
    await page.goto(`${own.url}/guide`);
    await waitUntilLoaded(page);
    const list = page.getByRole('navigation', { name: 'Sidebar Navigation' });
    expect((await list.getByRole('heading', { level: 2 }).allInnerTexts())[0]).toBe('Use it');
    const model = list.getByRole('link', { name: 'Threat model' });
    expect(await model.isVisible()).toBe(false);
    await list.getByRole('link', { name: 'For operators' }).click();
    await page.getByRole('heading', { level: 1, name: 'How it works' }).waitFor();
    await model.click();
    await page.getByRole('heading', { level: 1, name: 'Threat model' }).waitFor();
    expect(await model.isVisible()).toBe(true);
  });

  test('§4.1 pages: light or dark as the system, until the user says otherwise', async () => {
    const page = await own.browser.newPage({ colorScheme: 'dark' });
    const troubles = watchTroubles(page, own.url);
    const isDark = () => page.locator('html').evaluate((html) => html.classList.contains('dark'));
    await page.goto(`${own.url}/guide`);
    await waitUntilLoaded(page);
    expect(await isDark()).toBe(true);
    await page.getByRole('switch').first().click();
    expect(await isDark()).toBe(false);
    await page.reload();
    await waitUntilLoaded(page);
    expect(await isDark()).toBe(false);
    expect(troubles).toEqual([]);
  });

  test.each(['/guide', '/clients', '/settings', '/authors', '/benchmarks', '/nowhere'])(
    '§4.1 pages: nothing serious hinders assistive technology at %s, light and dark',
    async (name) => {
      const page = await own.browser.newPage();
      await page.goto(`${own.url}${name}`);
      await waitUntilLoaded(page);
      await page.evaluate(axe.source);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await waitForScheme(page, colorScheme);
        const { violations } = await page.evaluate<axe.AxeResults>(
          `axe.run(${JSON.stringify(OPTIONS[colorScheme])})`,
        );
        const serious = violations.filter(({ impact }) => /serious|critical/.test(impact ?? ''));
        const found = serious.map(({ id, nodes }) => [
          id,
          nodes.length,
          nodes[0]?.html,
          nodes[0]?.failureSummary,
        ]);
        expect(found, colorScheme).toEqual([]);
      }
    },
  );
});
