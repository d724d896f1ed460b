// The pages of the gateway at which users log in, such as /connections and /approvals, in a browser.
import type { BrowserContextOptions, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { openBrowser } from '../tools/chromium.ts';
import { findSerious } from './axe.ts';

export const SCREENS = [
  { screen: 'light', colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  { screen: 'dark', colorScheme: 'dark', viewport: { width: 1280, height: 900 } },
  { screen: '320 px', colorScheme: 'light', viewport: { width: 320, height: 700 } },
] as const;

/** `errors` are those of the page's console: what its policy blocked, what could not be loaded. */
export async function openPage(
  browser: Pick<Awaited<ReturnType<typeof openBrowser>>, 'newPage'>,
  url: string,
  options: BrowserContextOptions,
) {
  const page = await browser.newPage(options);
  const errors = collectErrors(page);
  await page.goto(url);
  return { page, errors };
}

/** The console also tells what is none: that a field was typed into before `autofocus` came to it. */
export function collectErrors(page: Page): readonly string[] {
  const errors: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  return errors;
}

/** At the page of the development provider. */
export async function logInAs(page: Page, person: string): Promise<void> {
  await page.getByLabel('Name').fill(person);
  await page.getByRole('button', { name: 'Log in' }).click();
}

export async function expectGoodLooks(page: Page, heading: string): Promise<void> {
  await page.getByRole('heading', { level: 1, name: heading }).waitFor();
  expect(await findSerious(page)).toEqual([]);
  const { width } = page.viewportSize() ?? {};
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
}
