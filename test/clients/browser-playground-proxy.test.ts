// §19.3: the playground in proxy mode, where the provider itself sends the browser back to it.
import { expect, test } from 'vitest';
import { closeAfterTest } from '../support/lifetimes.ts';
import { logInAtProvider } from '../support/oauth/login-browser.ts';
import {
  callTool,
  chooseEra,
  resultOf,
  startSiteBrowser,
  steps,
} from '../support/site/site-browser.ts';

const CONFIDENTIAL = { client: { secret: 'of-the-gateway', auth: 'post' } } as const;

test.each([
  { issuer: 'upstream', era: 'Sessions' },
  { issuer: 'self', era: 'Stateless' },
])(
  '§19.3 playground: a login and a call in proxy mode (OAUTH_METADATA_ISSUER=$issuer)',
  async ({ issuer, era }) => {
    const own = closeAfterTest(
      await startSiteBrowser({
        env: { OAUTH_MODE: 'proxy', OAUTH_METADATA_ISSUER: issuer },
        provider: CONFIDENTIAL,
      }),
    );
    const { page, complaints } = await own.open('/playground');
    await chooseEra(page, era);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.waitForURL(`${own.service.issuer}/**`);
    await logInAtProvider(page);
    await page.getByRole('heading', { name: 'echo' }).waitFor();
    expect(page.url()).toBe(`${own.service.baseUrl}/playground`);
    await page.getByText('Token refreshes in').waitFor();
    await callTool(page, 'echo', { text: 'by the provider' });
    await expect.poll(() => resultOf(page).innerText()).toBe('by the provider');
    expect(complaints).toEqual([]);
  },
);

test('§19.3 playground: a provider that does not know the redirect URI; the page names it, and says so after the way back', async () => {
  const own = closeAfterTest(
    await startSiteBrowser({
      env: { OAUTH_MODE: 'proxy' },
      provider: { ...CONFIDENTIAL, unknownRedirectUri: /\/playground\/callback$/ },
    }),
  );
  const { page } = await own.open('/playground');
  const redirectUri = `${own.service.baseUrl}/playground/callback`;
  await page.getByText(redirectUri).waitFor();
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.waitForURL(`${own.service.issuer}/**`);
  expect(await page.locator('body').innerText()).toContain('redirect_uri');

  await page.goBack();
  await page.getByRole('alert').waitFor();
  expect(await page.getByRole('alert').innerText()).toContain('the redirect URI of this page');
  await page.getByText(redirectUri, { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Log in', exact: true }).waitFor();
  // What was asked before is still there to be looked at.
  expect(await steps(page)).toContain('Read the authorization server metadata');
  expect(await page.evaluate('sessionStorage.length')).toBe(0);
});
