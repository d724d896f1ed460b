// The way from the question to the client, as a user goes it.
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import { documentAnswer, startDocumentHost } from '../support/oauth/document-host.ts';
import {
  approve,
  deny,
  heading,
  logInAtProvider,
  startLogInBrowser,
} from '../support/oauth/login-browser.ts';
import { STATE } from '../support/oauth/login-steps.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const ASKED = 'Allow “Test Client” to log in as you?';
const CODE = expect.stringMatching(/^[\w-]{43}$/);

const own = useShared(startLogInBrowser, INSTALLATION_MS);

/** The rows of the page, by their terms. */
async function rowsOf(page: Page): Promise<Record<string, string>> {
  const rows = await page.locator('dl > div').all();
  const pairs = rows.map(async (row) => [
    await row.locator('dt').innerText(),
    await row.locator('dd').innerText(),
  ]);
  return Object.fromEntries(await Promise.all(pairs));
}

test('§4.6 consent: the page says which app asks, who publishes it, where the login goes and what for', async () => {
  const page = await own.page();
  await own.ask(page);
  expect(await heading(page)).toBe(ASKED);
  expect(await rowsOf(page)).toEqual({
    App: '“Test Client”',
    Publisher: 'not verified: the app registered itself under this name',
    'Sends you back to': `an app on this computer (${new URL(own.redirectUri).host})`,
    'Requested permissions': 'openid profile',
  });
  const { host } = new URL(own.service.baseUrl);
  await expect(page.getByText(host).count()).resolves.toBe(1);
});

test('§4.6 consent: the host of a client’s own description is named as its publisher', async () => {
  const host = await startDocumentHost({ names: ['client.example'] });
  host.answer(
    documentAnswer({ client_name: 'Described', redirect_uris: ['https://app.example/cb'] }),
  );
  const documented = await startLogInBrowser({
    env: { CIMD_ALLOWED_HOSTS: 'client.example' },
    deps: { network: host.network },
  });
  const page = await documented.page();
  await documented.ask(page, 'https://client.example/client.json', {
    redirect_uri: 'https://app.example/cb',
  });
  expect(await rowsOf(page)).toMatchObject({
    App: '“Described”',
    Publisher: 'client.example, which publishes the description of this app',
    'Sends you back to': 'the website app.example\nhttps://app.example/cb',
  });
  await documented.close();
  await host.close();
});

test('§4.6 consent: approved and logged in, the client gets code, state and iss', async () => {
  const page = await own.page();
  await own.ask(page);
  await approve(page);
  await page.waitForURL(`${own.service.issuer}/**`);
  await logInAtProvider(page);
  expect(await own.back(page)).toEqual({ code: CODE, state: STATE, iss: own.service.baseUrl });
});

test('§4.6 consent: denied, the client gets access_denied, state and iss, and no provider is asked', async () => {
  const page = await own.page();
  await own.ask(page);
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).origin));
  await deny(page);
  expect(await own.back(page)).toEqual({
    error: 'access_denied',
    error_description: expect.any(String),
    state: STATE,
    iss: own.service.baseUrl,
  });
  expect(asked).toEqual([own.service.baseUrl, own.site.origin]);
});

test('§4.6 consent: a denial is not remembered', async () => {
  const page = await own.page();
  const client = await own.register();
  await own.ask(page, client);
  await deny(page);
  await own.back(page);
  await own.ask(page, client);
  expect(await heading(page)).toBe(ASKED);
});

test('§4.6 consent: a second login in the same browser is not asked again, whatever is new is', async () => {
  const page = await own.page();
  const second = `${own.redirectUri}/2`;
  const client = await own.register({ redirect_uris: [own.redirectUri, second] });
  const { code } = await own.logIn(page, client);

  await own.ask(page, client);
  const again = await own.back(page);
  expect(again).toEqual({ code: CODE, state: STATE, iss: own.service.baseUrl });
  expect(again.code).not.toBe(code);

  for (const ask of [
    () => own.ask(page),
    () => own.ask(page, client, { redirect_uri: second }),
    () => own.ask(page, client, { scope: 'openid profile email' }),
  ]) {
    await ask();
    expect(await heading(page)).toBe(ASKED);
  }
  await page.context().close();

  const elsewhere = await own.page();
  await own.ask(elsewhere, client);
  expect(await heading(elsewhere)).toBe(ASKED);
  await elsewhere.context().close();
});

test('§4.6 consent: an approval is remembered over a restart of the gateway', async () => {
  const page = await own.page();
  const client = await own.register();
  await own.logIn(page, client);
  await own.service.restart();
  await own.ask(page, client);
  expect(await own.back(page)).toMatchObject({ code: CODE });
});

test('§4.6 consent: OAUTH_CONSENT_TTL_SECONDS=0 asks every time', async () => {
  const forgetful = await startLogInBrowser({ env: { OAUTH_CONSENT_TTL_SECONDS: '0' } });
  const page = await forgetful.page();
  const client = await forgetful.register();
  await forgetful.logIn(page, client);
  await forgetful.ask(page, client);
  expect(await heading(page)).toBe(ASKED);
  await approve(page);
  // The provider remembers its user, the gateway no approval.
  expect(await forgetful.back(page)).toMatchObject({ code: CODE, state: STATE });
  await forgetful.ask(page, client);
  expect(await heading(page)).toBe(ASKED);
  await forgetful.close();
});
