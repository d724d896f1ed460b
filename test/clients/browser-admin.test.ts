// §22.5: the operators' page, as an operator goes through it.
import { expect, test } from 'vitest';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { findSerious } from '../support/site/axe.ts';
import { logInToPlayground, startSiteBrowser } from '../support/site/site-browser.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

/** The group of everybody who logs in at the provider of the tests. */
const OPERATORS = { ADMIN_GROUPS: 'developers' };

const own = useShared(() => startSiteBrowser({ env: OPERATORS }), INSTALLATION_MS);

test('§22.5 operators: a login, sessions, and one that is ended, after a question', async () => {
  const { accessToken } = await own.service.logIn('grace');
  await fetch(own.service.mcpUrl, {
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
        clientInfo: { name: 'left-behind', version: '3' },
      },
    }),
  });
  const viewport = { width: 390, height: 844 };
  const { page, complaints, tokens } = await own.open('/admin', { viewport });
  await logInToPlayground(page);
  await page.getByText('left-behind 3').waitFor();
  expect(page.url()).toBe(`${own.service.baseUrl}/admin`);
  expect(await findSerious(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width);

  await page.getByRole('button', { name: 'End session' }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  expect(await page.getByText('left-behind 3').count()).toBe(1);
  await page.getByRole('button', { name: 'End session' }).click();
  await page.getByRole('button', { name: 'End it' }).click();
  await page.getByText('There are none.').waitFor();

  await page.getByRole('button', { name: 'Clients', exact: true }).click();
  await page.getByRole('button', { name: 'Delete client' }).click();
  await page.getByRole('button', { name: 'Delete it' }).click();
  await page.getByText('There are none.').waitFor();

  await page.getByRole('button', { name: 'Failed log-ins' }).click();
  await page.getByText('None in the last seven days.').waitFor();
  await page.getByRole('button', { name: 'Gateway', exact: true }).click();
  await page.getByText(/answers in [\d.]+ ms/).waitFor();
  await page.getByText(own.service.issuer).waitFor();
  expect(await findSerious(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width);

  const [token = ''] = tokens;
  expect(tokens.size).toBe(1);
  expect(await page.content()).not.toContain(token);
  expect(complaints).toEqual([]);
});

test('§22.5 operators: whoever is none is told so, and without ADMIN_GROUPS there is no page', async () => {
  const other = closeAfterTest(await startSiteBrowser({ env: { ADMIN_GROUPS: 'operators' } }));
  const { page } = await other.open('/admin');
  await logInToPlayground(page);
  expect(await page.getByRole('alert').innerText()).toContain('This is for operators.');
  await other.service.restart({ ADMIN_GROUPS: '' });
  expect((await fetch(`${other.service.baseUrl}/admin`)).status).toBe(404);
});
