// §19.3: what a server asks while a call runs, and what the person at the playground answers.
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import {
  callTool,
  chooseEra,
  ERAS,
  resultOf,
  startSiteBrowser,
} from '../support/site/site-browser.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const own = useShared(() => startSiteBrowser({ env: { AUTH_REQUIRED: 'false' } }), INSTALLATION_MS);

async function connect(era: string) {
  const watched = await own.open('/playground');
  await chooseEra(watched.page, era);
  await watched.page.getByRole('button', { name: 'Connect' }).click();
  await watched.page.getByRole('button', { name: /^asks\b/ }).click();
  return watched;
}

const askOnly = async (page: Page, only: string) => {
  await page.getByLabel('only').selectOption(only);
  await page.getByRole('button', { name: 'Call the tool' }).click();
};

/** Bodies of what the page sends from now on. */
function watchBodies(page: Page): readonly string[] {
  const bodies: string[] = [];
  page.on('request', (request) => bodies.push(request.postData() ?? ''));
  return bodies;
}

test.each(ERAS)(
  '§19.3 playground: a form, a model’s answer and roots, all at once (%s)',
  async (era) => {
    const { page, complaints } = await connect(era);
    await page.getByText('Folders for servers that ask').click();
    await page.getByLabel('Roots, one per line').fill('file:///home/ada/work\n/home/ada\n');
    await page.getByText('“/home/ada” is ignored').waitFor();
    const bodies = watchBodies(page);
    await callTool(page, 'asks');

    const dialog = page.getByRole('dialog');
    await dialog.getByRole('heading', { name: 'asks asks you' }).waitFor();
    expect(await dialog.innerText()).toContain('A tool of Postern wrote this.');
    await dialog.getByLabel('Name').fill('Ada');
    await dialog.getByRole('button', { name: 'Send', exact: true }).click();

    await dialog.getByRole('heading', { name: 'asks asks for a model’s answer' }).waitFor();
    expect(await dialog.innerText()).toMatch(
      /Be brief\.[\s\S]*Say hello\.[\s\S]*At most 100 tokens/,
    );
    await dialog.getByLabel('Your answer').fill('Hello.');
    await dialog.getByRole('button', { name: 'Send', exact: true }).click();

    await expect.poll(() => resultOf(page).innerText()).toBe('Answered: form, model, folders.');
    const sent = bodies.join('\n');
    expect(sent).toContain('"roots":[{"uri":"file:///home/ada/work"}]');
    expect(sent).toContain('"content":{"type":"text","text":"Hello."}');
    expect(complaints).toEqual([]);
  },
);

test.each(ERAS)('§19.3 playground: a model’s answer can be declined (%s)', async (era) => {
  const { page } = await connect(era);
  await askOnly(page, 'model');
  await page.getByRole('dialog').getByRole('button', { name: 'Decline' }).click();
  await page.locator('.pg-outcome.is-bad').waitFor();
  // The server learns it in one era; in the other the call just does not go on.
  expect(await page.getByRole('region', { name: 'Result' }).innerText()).toContain(
    era === 'Sessions' ? 'The client answered with an error.' : 'You declined to answer',
  );
  expect(await page.getByRole('dialog').count()).toBe(0);
});

test.each(ERAS)('§19.3 playground: without roots an empty list is answered (%s)', async (era) => {
  const { page } = await connect(era);
  const bodies = watchBodies(page);
  await askOnly(page, 'folders');
  await expect.poll(() => resultOf(page).innerText()).toBe('Answered: folders.');
  expect(bodies.join('\n')).toContain('"roots":[]');
});

test('§19.3 playground: a question that was left with Escape ends the dialog, and a cancelled call tells the server', async () => {
  const { page } = await connect('Sessions');
  await askOnly(page, 'form');
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  const bodies = watchBodies(page);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  await expect.poll(() => resultOf(page).innerText()).toBe('Answered: form.');
  expect(bodies.join('\n')).toContain('"action":"cancel"');
});
