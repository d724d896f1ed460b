// §30.3: apps of the official examples, behind the gateway, in the playground.
import type { FrameLocator, Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { createLocalCatalog } from '../../src/index.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import {
  callTool,
  chooseEra,
  ERAS,
  startSiteBrowser,
  steps,
} from '../support/site/site-browser.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';
import { installNpxTool, type NpxTool } from '../support/tools/npx-tool.ts';
import { parseServers } from '../support/upstreams/catalog-gateway.ts';

const VERSION = '2.0.3';
const SERVERS = {
  clock: { name: 'server-basic-vanillajs', command: 'mcp-server-basic-vanillajs' },
  budget: { name: 'server-budget-allocator', command: 'mcp-budget-allocator-server' },
} as const;

let installed: Readonly<Record<keyof typeof SERVERS, NpxTool>>;

beforeAll(async () => {
  const [clock, budget] = await Promise.all(
    Object.values(SERVERS).map(({ name, command }) =>
      installNpxTool({ name: `@modelcontextprotocol/${name}@${VERSION}`, command }),
    ),
  );
  if (clock === undefined || budget === undefined) throw new Error('Not all were installed.');
  installed = { clock, budget };
}, INSTALLATION_MS);

/** The page of the app, in the frame in the frame. */
const appIn = (page: Page): FrameLocator =>
  page.locator('.pg-app iframe').contentFrame().locator('iframe').contentFrame();

async function open(era: (typeof ERAS)[number]) {
  const mcpServers = Object.fromEntries(
    Object.entries(installed).map(([name, { node, script }]) => [
      name,
      { command: node, args: [script, '--stdio'] },
    ]),
  );
  const site = closeAfterTest(
    await startSiteBrowser({
      deps: { catalog: createLocalCatalog({}), file: await parseServers({ mcpServers }) },
      env: { AUTH_REQUIRED: 'false' },
    }),
  );
  const watched = await site.open('/playground');
  await chooseEra(watched.page, era);
  await watched.page.getByRole('button', { name: 'Connect' }).click();
  await watched.page.locator('.pg-call').waitFor();
  return watched;
}

test.each(ERAS)(
  '§30.3 playground: an official app is shown with its result, and calls its tool (%s)',
  async (era) => {
    const { page, complaints } = await open(era);
    await callTool(page, 'clock__get-time');
    const app = appIn(page);
    const time = app.locator('#server-time');
    await expect.poll(() => time.innerText()).toMatch(/^\d{4}-\d\d-\d\dT/);
    const first = await time.innerText();
    await app.getByRole('button', { name: 'Get Server Time' }).click();
    await expect.poll(() => time.innerText()).not.toBe(first);
    expect(await steps(page)).toContain('The app calls get-time');
    // It asks before a link is opened, and the app is told what the user says.
    await app.getByRole('button', { name: 'Open Link' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Do not open' }).click();
    await app.getByRole('button', { name: 'Send Message' }).click();
    await page.getByLabel('What the app says').getByText('Message to the model').waitFor();
    expect(complaints).toEqual([]);
  },
);

test('§30.3 playground: an app with charts, as large as its content', async () => {
  const { page, complaints } = await open('Sessions');
  await callTool(page, 'budget__get-budget-data');
  const app = appIn(page);
  await app.locator('canvas').first().waitFor();
  await expect.poll(() => app.locator('input[type=range]').count()).toBeGreaterThan(2);
  const { height } = (await page.locator('.pg-app iframe').boundingBox()) ?? { height: 0 };
  expect(height).toBeGreaterThan(300);
  expect(complaints).toEqual([]);
});
