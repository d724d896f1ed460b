// §22.5 where the gateway issues tokens of its own: an operator logs in by the page, and logs others out.
import { expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import { findSerious } from '../support/site/axe.ts';
import { logInToPlayground, startSiteBrowser } from '../support/site/site-browser.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const own = useShared(
  () =>
    startSiteBrowser({
      // The group of everybody who logs in at the provider of the tests.
      env: {
        ADMIN_GROUPS: 'developers',
        OAUTH_STATE_SECRET: 'one-secret-of-more-than-32-characters',
      },
    }),
  INSTALLATION_MS,
);

async function isLetIn(accessToken: string): Promise<boolean> {
  const { status } = await fetch(own.service.mcpUrl, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${accessToken}`,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'test', version: '1' },
      },
    }),
  });
  expect([200, 401]).toContain(status);
  return status === 200;
}

test('§22.5 operators: people by name, logged out of one client, and of all, after a question', async () => {
  const ended = await own.service.logIn('grace');
  const everywhere = [await own.service.logIn('edsger'), await own.service.logIn('edsger')];
  const kept = await own.service.logIn('barbara');
  const viewport = { width: 390, height: 844 };
  const { page, complaints, tokens } = await own.open('/admin', { viewport });
  await logInToPlayground(page);
  await page.getByRole('heading', { name: 'Sessions' }).waitFor();
  expect([...tokens][0]).toMatch(/^pst_/);
  await page.getByRole('button', { name: 'Logins', exact: true }).click();
  const rowsOf = (name: string) =>
    page.getByRole('listitem').filter({ has: page.getByRole('heading', { name }) });
  await rowsOf('grace').waitFor();
  expect(await rowsOf('edsger').count()).toBe(2);
  expect(await findSerious(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width);

  await rowsOf('grace').getByRole('button', { name: 'Log out', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(/Log .*grace.* out of/).waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  expect(await isLetIn(ended.accessToken)).toBe(true);
  await rowsOf('grace').getByRole('button', { name: 'Log out', exact: true }).click();
  await dialog.getByRole('button', { name: 'Log out', exact: true }).click();
  await rowsOf('grace').waitFor({ state: 'detached' });
  expect(await isLetIn(ended.accessToken)).toBe(false);
  expect(await page.evaluate('document.activeElement.id')).toBe('ad-grants');

  await page.getByLabel('User').fill('edsger');
  await page.getByRole('button', { name: 'Find' }).click();
  await rowsOf('barbara').waitFor({ state: 'detached' });
  await rowsOf('edsger').first().getByRole('button', { name: 'Log out everywhere' }).click();
  await dialog.getByRole('button', { name: 'Log out everywhere' }).click();
  await expect.poll(() => rowsOf('edsger').count()).toBe(0);
  for (const { accessToken } of everywhere) expect(await isLetIn(accessToken)).toBe(false);
  expect(await isLetIn(kept.accessToken)).toBe(true);

  const [token = ''] = tokens;
  expect(tokens.size).toBe(1);
  expect(await page.content()).not.toContain(token);
  expect(complaints).toEqual([]);
});
