// §19.4: the front page, as a user finds it.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { approve, logInAtProvider } from '../support/oauth/login-browser.ts';
import { startSiteBrowser } from '../support/site/site-browser.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const own = useShared(
  () => startSiteBrowser({ env: { SERVICE_DISPLAY_NAME: 'Acme <tools>' } }),
  INSTALLATION_MS,
);

test('§19.4 front page: name, address, and who one logs in with', async () => {
  const { page, complaints } = await own.open('/');
  await page.getByText('Acme <tools>').waitFor();
  await page.getByText(`You log in with ${new URL(own.service.issuer).host}`).waitFor();
  expect(await page.locator('.fp-address code').innerText()).toBe(`${own.service.baseUrl}/mcp`);
  expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
  await expect.poll(() => page.title()).toBe('Connect · Acme <tools>');
  expect(complaints).toEqual([]);
});

test('§19.4 front page: the address is copied', async () => {
  const { page } = await own.open('/', { permissions: ['clipboard-read', 'clipboard-write'] });
  await page.getByRole('button', { name: 'Copy the address' }).click();
  await page.getByText('Copied').first().waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(`${own.service.baseUrl}/mcp`);
});

test('§19.4 front page: links that add the gateway, and an entry for each client', async () => {
  const { page } = await own.open('/');
  const cursor = page.getByRole('link', { name: 'Add to Cursor' }).first();
  expect(await cursor.getAttribute('href')).toMatch(/^cursor:\/\/anysphere\.cursor-deeplink\//);
  const vscode = page.getByRole('link', { name: 'Add to VS Code' }).first();
  expect(await vscode.getAttribute('href')).toMatch(/^vscode:mcp\/install\?/);

  const tabs = page.getByRole('tab');
  expect(await tabs.first().getAttribute('aria-selected')).toBe('true');
  await tabs.first().focus();
  await page.keyboard.press('End');
  await page.keyboard.press('ArrowLeft');
  const selected = page.getByRole('tab', { selected: true });
  expect(await selected.innerText()).toBe('MCP Inspector');
  expect(await page.getByRole('tabpanel').innerText()).toContain(`${own.service.baseUrl}/mcp`);
});

test('§19.4 front page: strangers see no tool; after a login there are those that one may use', async () => {
  const { page, complaints } = await own.open('/');
  await page.getByRole('button', { name: 'Log in to see your tools' }).click();
  await page.waitForURL(/\/oauth\/authorize\?/);
  await approve(page);
  await logInAtProvider(page);
  await page.getByRole('heading', { name: 'Tools you can use' }).waitFor();
  expect(page.url()).toBe(`${own.service.baseUrl}/`);
  await expect.poll(() => page.title()).toBe('Connect · Acme <tools>');
  expect(await page.locator('.fp-tools li code').allInnerTexts()).toContain('echo');
  expect(complaints).toEqual([]);

  const stranger = await own.open('/');
  await stranger.page.getByRole('button', { name: 'Log in to see your tools' }).waitFor();
  expect(await stranger.page.content()).not.toContain('echo');
});

test('§19.4 front page: with SITE_SHOWS_TOOLS=true everybody sees them, and a logo of one’s own', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-logo-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const logo = join(folder, 'logo.svg');
  await writeFile(
    logo,
    '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="M0 0h9v9z"/></svg>',
  );
  const shown = closeAfterTest(
    await startSiteBrowser({ env: { SITE_SHOWS_TOOLS: 'true', SERVICE_LOGO_FILE: logo } }),
  );
  const { page, complaints } = await shown.open('/');
  await page.locator('.fp-tools li').first().waitFor();
  const image = page.locator('.fp-brand img');
  await expect.poll(() => image.getAttribute('src')).toBe(`${shown.service.baseUrl}/logo`);
  await expect
    .poll(() => page.evaluate('document.querySelector(".fp-brand img").naturalWidth'))
    .toBe(9);
  expect(complaints).toEqual([]);
});

test('§4.4 GET /mcp: who opens the address of the gateway finds the front page', async () => {
  const { page, complaints } = await own.open('/mcp');
  await page.getByText('Acme <tools>').waitFor();
  await page.getByRole('link', { name: 'Add to Cursor' }).first().waitFor();
  expect(await page.locator('.fp-address code').innerText()).toBe(`${own.service.baseUrl}/mcp`);
  expect(new URL(page.url()).pathname).toBe('/');
  expect(complaints).toEqual([]);
});

test('§22 operators: while their page is off, /admin is a page that is not there', async () => {
  const { page, complaints } = await own.open('/admin');
  await page.getByText('Page not found').waitFor();
  await page.waitForLoadState('networkidle');
  // What every browser says of the status itself: the page asks for nothing that its policy forbids.
  expect(complaints.filter((text) => !text.includes('status of 404'))).toEqual([]);
  expect(await page.getByText('Page not found').count()).toBe(1);
  expect(await page.getByText('Failed to fetch').count()).toBe(0);
});
