// §19.3: the playground before a server that means harm. It shows what it gets as text, runs none of it, and does not
// break.
import { expect, test } from 'vitest';
import { createHostileCatalog, HOSTILE_TOOLS } from '../support/catalogs/hostile-catalog.ts';
import { useShared } from '../support/lifetimes.ts';
import { logInToPlayground, startSiteBrowser } from '../support/site/site-browser.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const own = useShared(
  () => startSiteBrowser({ deps: { catalog: createHostileCatalog() } }),
  INSTALLATION_MS,
);

async function logIn() {
  const watched = await own.open('/playground');
  await logInToPlayground(watched.page);
  await watched.page.locator('.pg-inventory li').first().waitFor();
  return watched;
}

test('§19.3 playground: names, schemas and results of a hostile server run nothing', async () => {
  const { page, complaints } = await logIn();
  for (const name of HOSTILE_TOOLS) {
    await page.getByRole('button', { name: new RegExp(`^${name}\\b`) }).click();
    await page.locator('.pg-call h2').getByText(name, { exact: true }).waitFor();
    if (name === 'proto') await page.getByRole('textbox', { name: '__proto__' }).fill('entered');
    await page.getByRole('button', { name: 'Call the tool' }).click();
    await expect
      .poll(() => page.locator('.pg-outcome').innerText(), { message: name })
      .toMatch(/^Done in/);
  }
  expect(await page.evaluate('window.wasRun')).toBe(undefined);
  expect(await page.evaluate('({}).wasRun')).toBe(undefined);
  expect(await page.locator('[href^="javascript:"], iframe, object, embed').count()).toBe(0);
  expect(complaints).toEqual([]);
});

test('§19.3 playground: of a result of ten megabytes the beginning is shown, and the page goes on', async () => {
  const { page, complaints } = await logIn();
  await page.getByRole('button', { name: /^huge\b/ }).click();
  // Five thousand fields are entered as JSON.
  await page.getByLabel('Arguments').fill('{"member_7":"seven"}');
  await page.getByRole('button', { name: 'Call the tool' }).click();
  await page.getByText('These are the first 50,000 of 10,000,000 characters.').first().waitFor();
  await page.locator('.pg-exchanges summary').first().click();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('button', { name: 'Log in', exact: true }).waitFor();
  expect(complaints).toEqual([]);
});
