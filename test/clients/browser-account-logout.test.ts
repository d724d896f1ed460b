// Logging out at /account and at the provider in a browser: whether the page's policy lets the form lead there, and back.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import { startOwnTokenReplicas } from '../support/oauth/own-token-replicas.ts';
import { collectErrors } from '../support/site/own-pages.ts';
import { INSTALLATION_MS, openBrowser } from '../support/tools/chromium.ts';

/** The page of the provider, which asks nothing: it sends the browser back at once. */
async function startLogoutPage() {
  const asked: URLSearchParams[] = [];
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://localhost');
    asked.push(searchParams);
    const back = new URL(searchParams.get('post_logout_redirect_uri') ?? '');
    back.searchParams.set('state', searchParams.get('state') ?? '');
    response.writeHead(302, { location: back.href }).end();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    asked,
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise((closed) => server.close(closed)),
  };
}

const own = useShared(() => startOwnTokenReplicas());
const logoutPage = useShared(startLogoutPage);
const browser = useShared(openBrowser, INSTALLATION_MS);

test('§13.5 account: a browser logs out at the provider, comes back, and is asked whether to log in again', async () => {
  const { issuer } = own.provider;
  issuer.document = { ...issuer.document, end_session_endpoint: `http://${logoutPage.host}/end` };
  own.clock.advance(300_001);
  const page = await browser.newPage();
  const errors = collectErrors(page);
  const account = new URL('/account', own.mcpUrl).href;
  await page.goto(account);
  await page.getByRole('button', { name: `log out at ${logoutPage.host}` }).click();
  await page.getByRole('heading', { name: 'You are logged out' }).waitFor();
  expect(errors).toEqual([]);
  expect(logoutPage.asked).toHaveLength(1);
  expect(logoutPage.asked[0]?.get('post_logout_redirect_uri')).toBe(account);
  expect(logoutPage.asked[0]?.get('id_token_hint')).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
  await page.getByRole('link', { name: 'Log in again' }).click();
  await page.getByText('You are logged in as').waitFor();
});
