// What others could have a browser do.
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import {
  approve,
  fieldsOf,
  heading,
  logInAtProvider,
  postForm,
  startLogInBrowser,
  watch,
} from '../support/oauth/login-browser.ts';
import { STATE } from '../support/oauth/login-steps.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const CODE = expect.stringMatching(/^[\w-]{43}$/);
const REFUSED = 'Login failed';

const own = useShared(startLogInBrowser, INSTALLATION_MS);

const consentUrl = () => `${own.service.baseUrl}/oauth/consent`;

/** The form as it stands, but with the values of another page's. */
async function fill(page: Page, fields: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, value] of Object.entries(fields)) {
    const input = page.locator(`input[name=${name}]`);
    await input.evaluate((element, text) => void Object.assign(element, { value: text }), value);
  }
  expect(await fieldsOf(page)).toEqual(fields);
}

test.each(['no cookie', 'a cookie of its own'])(
  '§4.6 consent: an approval begun elsewhere is refused in a browser with %s',
  async (has) => {
    const mine = await own.page();
    const client = await own.register();
    await own.ask(mine, client);
    const theirs = await own.page();
    await own.ask(theirs, client);
    await fill(theirs, await fieldsOf(mine));
    if (has === 'no cookie') await theirs.context().clearCookies();
    await approve(theirs);
    await theirs.getByText('This page was opened in another browser').waitFor();
    expect(await heading(theirs)).toBe(REFUSED);
    expect(theirs.url()).toBe(consentUrl());

    await own.ask(theirs, client);
    expect(await heading(theirs)).toBe('Allow “Test Client” to log in as you?');
    await approve(mine);
    await logInAtProvider(mine);
    expect(await own.back(mine)).toMatchObject({ code: CODE });
    await mine.context().close();
    await theirs.context().close();
  },
);

test.each(['no cookie', 'a cookie of its own'])(
  '§4.6 consent: a callback in a browser with %s is refused, and the login is over for its own, too',
  async (has) => {
    const mine = await own.page();
    const seen = watch(mine);
    await own.ask(mine);
    await approve(mine);
    await mine.waitForURL(`${own.service.issuer}/login/**`);
    const link = seen.requests.find((url) => url.startsWith(`${own.service.issuer}/auth?`)) ?? '';

    // The link to the provider, sent to somebody: who logs in there would log in the sender.
    const theirs = await own.page();
    if (has !== 'no cookie') await own.ask(theirs);
    await theirs.goto(link);
    await logInAtProvider(theirs, 'victim');
    await theirs.getByText('This login was started in another browser').waitFor();
    expect(new URL(theirs.url()).pathname).toBe('/oauth/callback');
    expect(await heading(theirs)).toBe(REFUSED);

    await logInAtProvider(mine, 'attacker');
    await mine.getByText('has expired or is already finished').waitFor();
    expect(await heading(mine)).toBe(REFUSED);
    await mine.context().close();
    await theirs.context().close();
  },
);

test.each([
  { from: 'another site', at: () => own.site.origin, cookie: undefined },
  { from: 'another port', at: () => own.site.neighbour, cookie: expect.stringMatching('postern=') },
])(
  '§4.6 consent: the form sent by a page of $from is refused, be it the right one',
  async (row) => {
    const page = await own.page();
    const client = await own.register();
    await own.ask(page, client);
    const fields = { ...(await fieldsOf(page)), decision: 'approve' };
    const other = await page.context().newPage();
    await other.goto(row.at());
    const reply = await postForm(other, consentUrl(), fields);
    expect(reply.status()).toBe(403);
    expect(await other.locator('body').innerText()).toContain('invalid_origin');
    expect((await reply.request().allHeaders()).cookie).toEqual(row.cookie);

    await own.ask(other, client);
    expect(await heading(other)).toBe('Allow “Test Client” to log in as you?');
  },
);

test('§4.6 consent: a script of another page cannot read the question', async () => {
  const url = own.authorizeUrl(await own.register());
  for (const at of [own.site.origin, own.site.neighbour]) {
    const page = await own.page();
    await page.goto(at);
    const script = (to: string) => fetch(to, { credentials: 'include' }).then((got) => got.text());
    await expect(page.evaluate(script, url)).rejects.toThrow('Failed to fetch');
    await page.context().close();
  }
});

test('§4.6 consent: in production the form of the page itself is taken as well', async () => {
  const strict = await startLogInBrowser({ env: { NODE_ENV: 'production' } });
  const page = await strict.page();
  expect(await strict.logIn(page)).toMatchObject({ code: CODE, state: STATE });
  await strict.close();
});

test('§4.6 consent: no page can have the question in a frame', async () => {
  const url = own.authorizeUrl(await own.register());
  for (const around of [own.site.origin, own.site.neighbour]) {
    const page = await own.page();
    const asPage = await page.goto(url);
    expect(asPage?.headers()['content-security-policy']).toContain("frame-ancestors 'none'");
    expect(asPage?.headers()['x-frame-options']).toBe('DENY');
    await page.goto(around);
    const replied = page.waitForResponse(url);
    await page.setContent(`<iframe src="${url}"></iframe>`);
    expect((await replied).status()).toBe(403);
    const shown = () => page.frames().map((frame) => frame.url());
    await expect.poll(shown).toEqual([`${around}/`, 'chrome-error://chromewebdata/']);
    await page.context().close();
  }
});
