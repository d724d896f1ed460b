// The pages for users in a real browser: the front page and the playground, before a real provider.
import type { BrowserContextOptions, Page } from 'playwright-core';
import { createEveryFeatureCatalog } from '../catalogs/every-feature-catalog.ts';
import { type Service, type ServiceOptions, startService } from '../gateway/service.ts';
import { approve, logInAtProvider } from '../oauth/login-browser.ts';
import { openBrowser } from '../tools/chromium.ts';

export interface SiteBrowser {
  readonly service: Service;
  /** A page in a context of its own, at a path below BASE_URL. */
  open(path: string, options?: BrowserContextOptions): Promise<WatchedPage>;
  close(): Promise<void>;
}

export interface WatchedPage {
  readonly page: Page;
  /** What the console called an error, what the policy blocked, and what was thrown. */
  readonly complaints: readonly string[];
  /** Bearer tokens that the page sent. */
  readonly tokens: ReadonlySet<string>;
}

export async function startSiteBrowser(options: ServiceOptions = {}): Promise<SiteBrowser> {
  const browser = await openBrowser();
  const { catalog } = createEveryFeatureCatalog();
  const service = await startService({
    mode: 'broker',
    ...options,
    deps: { catalog, ...options.deps },
  });
  return {
    service,
    async open(path, pageOptions) {
      const page = await browser.newPage(pageOptions);
      const watched = watchPage(page);
      await page.goto(service.baseUrl + path);
      return watched;
    },
    async close() {
      await browser.close();
      await service.close();
    },
  };
}

function watchPage(page: Page): WatchedPage {
  const complaints: string[] = [];
  const tokens = new Set<string>();
  page.on('console', (message) => {
    // A request without a token is refused on purpose.
    const isRefusal = /status of 401/.test(message.text());
    if (message.type() === 'error' && !isRefusal) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    const [, token] = /^Bearer (.+)$/.exec(request.headers().authorization ?? '') ?? [];
    if (token !== undefined) tokens.add(token);
  });
  return { page, complaints, tokens };
}

export const ERAS = ['Sessions', 'Stateless'] as const;

/** From the button as far as the lists of what there is. */
export async function logInToPlayground(page: Page, button = 'Log in'): Promise<void> {
  await page.getByRole('button', { name: button, exact: true }).click();
  // The page that is left has a heading, too: the pointer must not come to rest on that one.
  await page.waitForURL(/\/oauth\/authorize\?/);
  await approve(page);
  await logInAtProvider(page);
}

export async function callTool(
  page: Page,
  name: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<void> {
  await page.getByRole('button', { name: new RegExp(`^${name}\\b`) }).click();
  for (const [label, value] of Object.entries(fields)) {
    await page.getByLabel(label, { exact: false }).first().fill(value);
  }
  await page.getByRole('button', { name: 'Call the tool' }).click();
}

export const chooseEra = (page: Page, era: string): Promise<void> =>
  page.getByRole('radio', { name: new RegExp(`^${era}`) }).check();

/** The first text of the result. */
export const resultOf = (page: Page) =>
  page.getByRole('region', { name: 'Result' }).locator('pre').first();

/** The requests that the playground shows, in the order in which they were sent: the page has the newest first. */
export const steps = async (page: Page): Promise<string[]> =>
  (await page.locator('.pg-step > span:first-child').allInnerTexts()).reverse();
