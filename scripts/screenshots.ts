// npm run screenshots: the pictures of the gateway's own pages, docs/assets/screenshots/*.webp, from a gateway with the
// tools of docs/examples.
import { mkdir, writeFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { createPlatformCatalog } from '../docs/examples/catalog.ts';
import { showChoice } from '../test/support/oauth/login-browser.ts';
import {
  callTool,
  logInToPlayground,
  type SiteBrowser,
  startSiteBrowser,
} from '../test/support/site/site-browser.ts';
import { readOptions } from './read-options.ts';

const USAGE = `Usage: npm run screenshots

Takes the screenshots of docs/assets/screenshots anew. It needs npm run build first, and installs Chromium where it is missing.`;

const FOLDER = new URL('../docs/assets/screenshots/', import.meta.url);

/** Twice as many pixels as it is shown with would be sharper, and four times as large. */
const SCREEN = { width: 1120, height: 700 } as const;

const QUALITY = 80;

/** Nobody is asked for it: no screenshot shows the tool that would. */
const ROTA_URL = 'http://127.0.0.1:9';

const PICTURES: Readonly<Record<string, (site: SiteBrowser) => Promise<Page>>> = {
  'front-page': async (site) => {
    const { page } = await site.open('/', { viewport: SCREEN });
    await page.getByRole('tab').first().waitFor();
    return page;
  },
  consent: async (site) => {
    const { page } = await site.open('/playground', { viewport: { width: 720, height: 820 } });
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.waitForURL(/\/oauth\/authorize\?/);
    await showChoice(page);
    return page;
  },
  playground: async (site) => {
    const { page } = await site.open('/playground', { viewport: { ...SCREEN, height: 900 } });
    await logInToPlayground(page);
    await callTool(page, 'deployed_version', { service: 'checkout' });
    await page.getByText(/^Done in/).waitFor();
    return page;
  },
  operators: async (site) => {
    const user = await site.open('/playground');
    await logInToPlayground(user.page);
    await user.page.getByText('deployed_version').first().waitFor();
    const { page } = await site.open('/admin', { viewport: SCREEN });
    await logInToPlayground(page);
    await page.getByRole('button', { name: 'End session' }).first().waitFor();
    return page;
  },
};

readOptions(USAGE, { options: {} });

await mkdir(FOLDER, { recursive: true });
const own = await startSiteBrowser({
  // Those of postern dev: any other would seem to mean something.
  port: 3000,
  provider: { port: 3001 },
  env: { SERVICE_DISPLAY_NAME: 'Acme tools', SITE_SHOWS_TOOLS: 'true', ADMIN_GROUPS: 'developers' },
  deps: { catalog: createPlatformCatalog(ROTA_URL) },
});
try {
  for (const [name, openPage] of Object.entries(PICTURES)) {
    const bytes = await takePicture(await openPage(own));
    await writeFile(new URL(`${name}.webp`, FOLDER), bytes);
    console.log(`${name}.webp: ${Math.ceil(bytes.length / 1024)} KB`);
  }
} finally {
  await own.close();
}
// The browser is one that tests share, and would live on.
process.exit();

/** Playwright itself has no WebP, which is a third of a PNG. */
async function takePicture(page: Page): Promise<Buffer> {
  const cdp = await page.context().newCDPSession(page);
  const { data } = await cdp.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY });
  return Buffer.from(data, 'base64');
}
