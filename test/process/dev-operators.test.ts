// §20.1, §22: users of postern dev are operators; elsewhere there is no operators' page without ADMIN_GROUPS.
import { afterEach, expect, test } from 'vitest';
import { endPosterns, type RunningPostern, startPostern } from '../support/gateway/process.ts';
import { logIn } from '../support/gateway/process-login.ts';

afterEach(endPosterns);

async function askIsOperator({ port, url }: RunningPostern): Promise<unknown> {
  // The cookie of the login is of this name.
  const { accessToken } = await logIn(`http://localhost:${port}`, 'ada');
  const headers = { Authorization: `Bearer ${accessToken}` };
  const answer = await fetch(`${url}/admin/api/access`, { headers });
  return JSON.parse(await answer.text()).isOperator;
}

const openPage = (url: string) => fetch(`${url}/admin`, { headers: { Accept: 'text/html' } });

test("§22 dev: its users are operators, and it prints the page's address", async () => {
  const dev = await startPostern({}, { args: ['dev'] });
  await expect.poll(() => dev.stdout).toMatch(/^ {2}Operators +http:\/\/localhost:\d+\/admin$/m);
  expect((await openPage(dev.url)).status).toBe(200);
  expect(await askIsOperator(dev)).toBe(true);
});

test('§5 dev: a warning is text, even where nobody reads it in a terminal', async () => {
  const dev = await startPostern({ OIDC_ISUER: 'x' }, { args: ['dev'] });
  await expect.poll(() => dev.stdout).toMatch(/^\d\d:\d\d:\d\d ! OIDC_ISUER/m);
});

test('§22 dev: ADMIN_GROUPS of the user decides who is an operator', async () => {
  const dev = await startPostern({ ADMIN_GROUPS: 'admins' }, { args: ['dev'] });
  expect(await askIsOperator(dev)).toBe(false);
});

test.each([
  { env: { AUTH_REQUIRED: 'false' }, says: 'AUTH_REQUIRED=false' },
  {
    env: { OIDC_ISSUER: 'http://127.0.0.1:1', OAUTH_CLIENT_ID: 'c', OAUTH_CLIENT_SECRET: 's' },
    says: 'ADMIN_GROUPS',
  },
])('§22 dev: where the page is off, it says how to turn it on ($says)', async ({ env, says }) => {
  const dev = await startPostern(env, { args: ['dev'] });
  const page = await openPage(dev.url);
  expect(page.status).toBe(404);
  expect(await page.text()).toContain(`<code>${says}</code>`);
});

test('§22 start: without ADMIN_GROUPS /admin is a page that is not there, and names no setting', async () => {
  const { url } = await startPostern({ AUTH_REQUIRED: 'false' }, { args: ['start'] });
  const page = await openPage(url);
  expect(page.status).toBe(404);
  expect(await page.text()).not.toMatch(/AUTH_REQUIRED|ADMIN_GROUPS/);
});
