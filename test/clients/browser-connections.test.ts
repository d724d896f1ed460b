// Connecting a server in a browser, by each door: whether the policy of the pages lets their forms lead to the authorization
// server and back, and how they look.
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { readLink } from '../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../support/connections/connecting-gateway.ts';
import { startProtectedServer } from '../support/connections/protected-server.ts';
import { useShared } from '../support/lifetimes.ts';
import { expectGoodLooks, logInAs, openPage } from '../support/site/own-pages.ts';
import { INSTALLATION_MS, openBrowser } from '../support/tools/chromium.ts';

const own = useShared(async () => {
  const server = await startProtectedServer();
  const gateway = await startConnectingGateway({ servers: { wiki: server.configure() } });
  return {
    server,
    gateway,
    async close() {
      await gateway.close();
      await server.close();
    },
  };
});
const browser = useShared(openBrowser, INSTALLATION_MS);

async function allow(page: Page, account: string): Promise<void> {
  await page.getByLabel('Account').fill(account);
  await page.getByRole('button', { name: 'Allow' }).click();
}

test('§24.3 door 3 in a browser: connect, log in at the server, be led back, disconnect', async () => {
  const { page, errors } = await openPage(browser, `${own.gateway.baseUrl}/connections`);
  await logInAs(page, 'Ada');
  await expectGoodLooks(page, 'Your connections');
  await page.getByText('Not connected').waitFor();
  await page.getByRole('button', { name: 'Connect wiki' }).click();
  await allow(page, 'ada@work');
  await page.getByRole('button', { name: 'Disconnect wiki' }).waitFor();
  await expectGoodLooks(page, 'Your connections');
  expect(new URL(page.url()).search).toBe('');
  await page.getByRole('button', { name: 'Disconnect wiki' }).click();
  await page.getByText('Not connected').waitFor();
  await page.getByRole('link', { name: 'Apps that act for you' }).click();
  await page.getByRole('link', { name: 'Your connections to servers' }).click();
  await expectGoodLooks(page, 'Your connections');
  expect(errors).toEqual([]);
});

test('§24.3 a link in a browser: its user logs in, sees what is connected, goes on, and is told to go back', async () => {
  const user = await own.gateway.logIn('Bob');
  const link = readLink((await user.call('wiki__whoami')).text);
  const { page, errors } = await openPage(browser, link);
  await logInAs(page, 'Bob');
  await expectGoodLooks(page, 'Connect wiki?');
  await page.getByText(new URL(own.server.url).host).waitFor();
  await page.getByRole('button', { name: 'Continue' }).click();
  await allow(page, 'bob@work');
  await expectGoodLooks(page, 'You are connected to wiki');
  expect(await user.call('wiki__whoami')).toEqual({ isError: false, text: 'bob@work' });
  expect(errors).toEqual([]);
});

test('§24.3 a link in a browser: somebody else is told that it is not for them, and can log in as who it is for', async () => {
  const user = await own.gateway.logIn('Carol');
  const link = readLink((await user.call('wiki__whoami')).text);
  const { page } = await openPage(browser, link);
  await logInAs(page, 'Mallory');
  await expectGoodLooks(page, 'This link is for another user');
  await page.getByRole('button', { name: 'Log in as another user' }).click();
  await logInAs(page, 'Carol');
  await expectGoodLooks(page, 'Connect wiki?');
});

test('§24.3 a link in a browser: who says no at the server sees that nothing was connected', async () => {
  const { page } = await openPage(browser, `${own.gateway.baseUrl}/connections/wiki`);
  await logInAs(page, 'Dora');
  await page.getByRole('button', { name: 'Continue' }).click();
  await allow(page, 'nobody');
  await expectGoodLooks(page, 'Nothing was connected');
});
