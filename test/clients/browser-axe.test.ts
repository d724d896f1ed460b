// §19.4, §19.5: the pages for users are readable by everybody, on every screen.
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import { findSerious } from '../support/site/axe.ts';
import { callTool, logInToPlayground, startSiteBrowser } from '../support/site/site-browser.ts';
import { waitForScheme } from '../support/site/troubles.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const own = useShared(startSiteBrowser, INSTALLATION_MS);

const PAGES = [
  { name: 'front page', path: '/', prepare: async () => {} },
  {
    name: 'front page with tools',
    path: '/',
    async prepare(page: Page) {
      await logInToPlayground(page, 'Log in to see your tools');
      await page.getByRole('heading', { name: 'Tools you can use' }).waitFor();
    },
  },
  { name: 'playground', path: '/playground', prepare: async () => {} },
  {
    name: 'playground after a call',
    path: '/playground',
    async prepare(page: Page) {
      await logInToPlayground(page);
      await callTool(page, 'echo', { text: 'hello' });
      await page.getByText(/^Done in/).waitFor();
      await page.locator('.pg-exchanges summary').first().click();
    },
  },
  {
    name: 'playground while a tool asks for a model’s answer',
    path: '/playground',
    async prepare(page: Page) {
      await logInToPlayground(page);
      await page.getByText('Folders for servers that ask').click();
      await callTool(page, 'asks');
      await page.getByRole('dialog').getByLabel('Name').fill('Ada');
      await page.getByRole('button', { name: 'Send', exact: true }).click();
      await page.getByLabel('Your answer').waitFor();
    },
  },
];

const SCREENS = [
  { screen: 'light', colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  { screen: 'dark', colorScheme: 'dark', viewport: { width: 1280, height: 900 } },
  { screen: '390 px', colorScheme: 'light', viewport: { width: 390, height: 844 } },
] as const;

test.each(PAGES)(
  '§19.4 $name: axe finds nothing serious, and nothing is wider than the screen, light, dark, and on a phone',
  async ({ path, prepare }) => {
    const { page, complaints } = await own.open(path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await prepare(page);
    for (const { screen, colorScheme, viewport } of SCREENS) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize(viewport);
      await waitForScheme(page, colorScheme);
      expect(await findSerious(page), screen).toEqual([]);
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect(width, screen).toBe(viewport.width);
    }
    expect(complaints).toEqual([]);
  },
);
