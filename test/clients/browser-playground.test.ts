// §19.3, §19.5: the playground, as a user goes through it.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { createLocalCatalog, definePrompt } from '../../src/index.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import {
  callTool,
  chooseEra,
  ERAS,
  logInToPlayground,
  resultOf,
  startSiteBrowser,
  steps,
} from '../support/site/site-browser.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const own = useShared(startSiteBrowser, INSTALLATION_MS);

/** One login, for tests that leave the page as a user would find it. */
const loggedIn = useShared(async () => {
  const watched = await own.open('/playground');
  await logInToPlayground(watched.page);
  await watched.page.getByRole('heading', { name: 'echo' }).waitFor();
  return watched;
}, INSTALLATION_MS);

test.each(ERAS)('§19.5 playground: a login and a call (%s)', async (era) => {
  const { page, complaints, tokens } = await own.open('/playground');
  await chooseEra(page, era);
  await logInToPlayground(page);
  await page.getByRole('heading', { name: 'echo' }).waitFor();
  // The way over the provider does not forget what was chosen.
  const chosen = page.getByRole('radio', { name: new RegExp(`^${era}`) });
  expect(await chosen.isChecked()).toBe(true);
  expect((await steps(page)).includes('Open a session')).toBe(era === 'Sessions');

  // The code is gone from the address, and from the history.
  expect(page.url()).toBe(`${own.service.baseUrl}/playground`);

  await callTool(page, 'echo', { text: 'hello, gateway' });
  await expect.poll(() => resultOf(page).innerText()).toBe('hello, gateway');
  await page.getByText(/^Done in \d+ ms$/).waitFor();
  expect(await steps(page)).toEqual(expect.arrayContaining(['Redeem the code', 'Call echo']));

  // The token is in the memory of the tab, and in nothing that can be read or shown.
  expect(tokens.size).toBe(1);
  const [token = ''] = tokens;
  for (const details of await page.locator('.pg-exchanges summary').all()) await details.click();
  const stored = await page.evaluate<string>(
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state, document.cookie])',
  );
  expect(stored).not.toContain(token);
  expect(await page.content()).not.toContain(token);
  expect(await page.content()).toContain('Authorization: Bearer $TOKEN');
  expect(complaints).toEqual([]);
});

test('§19.5 playground: every step of the login is shown, those before it left included', async () => {
  const { page } = loggedIn;
  expect((await steps(page)).slice(0, 6)).toEqual([
    'Ask without a token',
    'Read the resource metadata',
    'Read the authorization server metadata',
    'Go to the login page',
    'Redeem the code',
    'Open a session',
  ]);

  const visit = page.locator('.pg-exchanges li').filter({ hasText: 'Go to the login page' });
  await visit.locator('summary').click();
  await expect.poll(() => visit.innerText()).toMatch(/Request\nGET \S+code_challenge_method=S256/);
  expect(await visit.innerText()).toMatch(/Location: \S+\/playground\/callback\?code=/);
});

test('§19.5 playground: steps before and after the way over the provider open one by one', async () => {
  const { page } = loggedIn;
  const all = page.locator('.pg-exchanges li');
  const before = all.filter({ hasText: 'Ask without a token' });
  const after = all.filter({ hasText: 'Redeem the code' });
  await before.locator('summary').click();
  await after.locator('summary').click();
  await expect.poll(() => before.innerText()).toContain('missing_token');
  await expect.poll(() => after.innerText()).toContain('code_verifier');
  await before.locator('summary').click();
  await expect.poll(() => before.innerText()).not.toContain('missing_token');
  expect(await after.innerText()).toContain('code_verifier');
});

test('§19.5 playground: the clock of the session, and the calls that are left', async () => {
  const { page } = loggedIn;
  const bar = page.locator('.pg-bar');
  await expect.poll(() => bar.innerText()).toMatch(/Session ends in\s+2[34]:\d\d:\d\d/);
  expect(await bar.innerText()).toMatch(/Calls left\s+\d+ of 10000/);
});

test.each(ERAS)('§19.5 playground: progress, log lines and a question (%s)', async (era) => {
  const { page, complaints } = await own.open('/playground');
  await chooseEra(page, era);
  await logInToPlayground(page);
  await page.getByRole('heading', { name: 'echo' }).waitFor();

  await callTool(page, 'chatty');
  await page.getByText(/^Done in/).waitFor();
  expect(await page.locator('.pg-progress').innerText()).toContain('Nearly.');
  expect(await page.getByLabel('Log of the call').innerText()).toContain('Slow.');

  await page.getByRole('button', { name: /^asks\b/ }).click();
  await page.getByLabel('only').selectOption('form');
  await page.getByRole('button', { name: 'Call the tool' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Who is it?').waitFor();
  await dialog.getByLabel('Name').fill('Ada');
  await dialog.getByLabel('colour').selectOption('green');
  await dialog.getByRole('button', { name: 'Send', exact: true }).click();
  await expect.poll(() => resultOf(page).innerText()).toBe('Answered: form.');
  expect(complaints).toEqual([]);
});

test('§19.5 playground: prompts, resources and templates', async () => {
  const { page, complaints } = loggedIn;
  await page.getByRole('button', { name: /^Prompts/ }).click();
  await page.getByRole('button', { name: /^plain\b/ }).click();
  await page.getByRole('button', { name: 'Get the prompt' }).click();
  await expect.poll(() => resultOf(page).innerText()).toBe('Hello.');
  await page.getByRole('button', { name: /^Resources/ }).click();
  await page.getByRole('button', { name: 'Read the resource' }).click();
  await page.getByText(/^Done in/).waitFor();
  expect(complaints).toEqual([]);
});

test(
  '§19.5 playground: what is shown as a command runs nothing that a server made up',
  async () => {
    const planted = '$(echo planted)$TOKEN';
    const prompt = definePrompt({
      name: planted,
      description: 'Says hello.',
      get: () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'Hello.' } }] }),
    });
    const catalog = createLocalCatalog({ prompts: [prompt] });
    const other = closeAfterTest(await startSiteBrowser({ deps: { catalog } }));
    const { page } = await other.open('/playground');
    await logInToPlayground(page);
    await chooseEra(page, 'Stateless');
    await page.getByRole('button', { name: /^Prompts/ }).click();
    await page.getByRole('button', { name: 'Get the prompt' }).click();
    await expect.poll(() => resultOf(page).innerText()).toBe('Hello.');

    for (const summary of await page.locator('.pg-exchanges summary').all()) await summary.click();
    const command = page
      .locator('.pg-exchanges pre')
      .filter({ hasText: 'Mcp-Name: $(echo' })
      .last();
    const script = `curl() { printf '%s\\n' "$@"; }\n${await command.innerText()}`;
    const { stdout } = await promisify(execFile)('sh', ['-c', script], {
      env: { TOKEN: 'the-token' },
    });
    expect(stdout).toContain(`Mcp-Name: ${planted}\n`);
    expect(stdout).toContain('Authorization: Bearer the-token\n');
  },
  INSTALLATION_MS,
);

test('§19.5 playground: a form that is not filled in says what is missing, and calls nothing', async () => {
  const { page } = loggedIn;
  await page.getByRole('button', { name: /^Tools/ }).click();
  await page.getByRole('button', { name: /^tree\b/ }).click();
  await page.getByRole('heading', { name: 'tree' }).waitFor();
  const before = (await steps(page)).length;
  await page.getByRole('button', { name: 'Call the tool' }).click();
  await page.getByText('Enter a number.').waitFor();
  expect(await page.getByLabel('value').getAttribute('aria-invalid')).toBe('true');
  expect(await steps(page)).toHaveLength(before);
});

test('§19.5 playground: an answer that this tab did not ask for is refused, and no token is asked for', async () => {
  const { page, tokens } = await own.open('/playground/callback?code=stolen&state=other');
  await page.getByRole('alert').waitFor();
  expect(await page.getByRole('alert').innerText()).toContain('did not start the login');
  expect(page.url()).toBe(`${own.service.baseUrl}/playground`);
  expect(tokens.size).toBe(0);
  expect(await steps(page)).toEqual([]);
});

test('§19.5 playground: a login that was denied says so, and can be begun again', async () => {
  const { page } = await own.open('/playground');
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.waitForURL(/\/oauth\/authorize\?/);
  await page.getByRole('heading', { level: 1 }).hover();
  await page.getByRole('button', { name: 'Deny' }).click();
  expect(await page.getByRole('alert').innerText()).toBe('The user denied the request.');
  await page.getByRole('button', { name: 'Log in', exact: true }).waitFor();
});

test('§19.5 playground: the keyboard alone is enough', async () => {
  const { page } = await own.open('/playground');
  await page.getByRole('button', { name: 'Log in', exact: true }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('group', { name: 'Approve and Deny become active' }).waitFor();
  await page.keyboard.press('Tab');
  await page.getByRole('button', { name: 'Approve' }).waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByLabel('Name').focus();
  await page.keyboard.type('ada');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'echo' }).waitFor();
  await tabTo(page, 'text');
  await page.keyboard.type('typed');
  await tabTo(page, 'Call the tool');
  await page.keyboard.press('Enter');
  await expect.poll(() => resultOf(page).innerText()).toBe('typed');
});

/** As often as it takes to get to the field, or the button, of this label. */
async function tabTo(page: Page, label: string): Promise<void> {
  const named = '(document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim()';
  const isThere = `${named}.startsWith(${JSON.stringify(label)})`;
  for (let presses = 0; presses < 100; presses += 1) {
    await page.keyboard.press('Tab');
    if (await page.evaluate(isThere)) return;
  }
  throw new Error(`Tab does not lead to ${label}`);
}

test('§19.5 playground: without authentication nobody logs in', async () => {
  const open = closeAfterTest(await startSiteBrowser({ env: { AUTH_REQUIRED: 'false' } }));
  const { page, complaints, tokens } = await open.open('/playground');
  await page.getByRole('button', { name: 'Connect' }).click();
  await page.getByRole('heading', { name: 'echo' }).waitFor();
  expect(tokens.size).toBe(0);
  expect(complaints).toEqual([]);
});

test('§19.5 playground: below a path of BASE_URL', async () => {
  const below = closeAfterTest(await startSiteBrowser({ basePath: '/tools/gateway' }));
  const { page, complaints } = await below.open('/playground');
  await logInToPlayground(page);
  await page.getByRole('heading', { name: 'echo' }).waitFor();
  expect(page.url()).toBe(`${below.service.baseUrl}/playground`);
  await callTool(page, 'echo', { text: 'below' });
  await expect.poll(() => resultOf(page).innerText()).toBe('below');
  expect(complaints).toEqual([]);
});

test('§19.5 playground: in proxy mode the page says what the provider must know', async () => {
  const proxy = closeAfterTest(
    await startSiteBrowser({ env: { OAUTH_MODE: 'proxy', OAUTH_METADATA_ISSUER: 'self' } }),
  );
  const { page } = await proxy.open('/playground');
  await page.getByText(`${proxy.service.baseUrl}/playground/callback`).waitFor();
});
