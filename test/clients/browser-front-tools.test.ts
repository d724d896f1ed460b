// §19.4: the tools on the front page, as a user finds them.
import { expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../src/index.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { logInToPlayground, startSiteBrowser } from '../support/site/site-browser.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const TEXT: { readonly type: 'string'; readonly examples?: readonly string[] } = { type: 'string' };

const toolNamed = (
  name: string,
  description: string,
  properties: Readonly<Record<string, typeof TEXT>> = {},
) =>
  defineTool({
    name,
    description,
    inputSchema: { type: 'object', properties, required: Object.keys(properties) },
    run: () => ({ content: [] }),
  });

const FEW_TOOLS = [
  toolNamed('files__read_file', 'Read a file, e.g. a note. It has to be text.', { path: TEXT }),
  toolNamed('files__list', 'Lists what is in a folder.\n\nHidden files are left out.'),
  toolNamed('hello', 'Greetings to somebody', { first_name: { ...TEXT, examples: ['Ada'] } }),
];

const MANY_TOOLS = ['files', 'github', 'weather'].flatMap((server) =>
  Array.from({ length: 20 }, (_, at) => toolNamed(`${server}__tool_${at}`, `Tool ${at}. More.`)),
);

const startWith = (tools: readonly ReturnType<typeof toolNamed>[]) =>
  startSiteBrowser({
    mode: 'broker',
    env: { SITE_SHOWS_TOOLS: 'true', SERVICE_DISPLAY_NAME: 'Acme' },
    deps: { catalog: createLocalCatalog({ tools }) },
  });

const few = useShared(() => startWith(FEW_TOOLS), INSTALLATION_MS);

test('§19.4 front page: tools are grouped by server, each with the first sentence of its description', async () => {
  const { page, complaints } = await few.open('/');
  const files = page.getByRole('region', { name: 'files' });
  await files.waitFor();
  expect(await files.getByRole('listitem').allInnerTexts()).toEqual([
    'read_file\n\nRead a file, e.g. a note.',
    'list\n\nLists what is in a folder.',
  ]);
  const others = page.getByRole('region', { name: 'Acme' });
  expect(await others.getByRole('listitem').allInnerTexts()).toEqual([
    'hello\n\nGreetings to somebody',
  ]);
  expect(complaints).toEqual([]);
});

test('§19.4 front page: each server has an example of what to ask, made from a tool', async () => {
  const { page } = await few.open('/');
  const files = page.getByRole('region', { name: 'files' });
  await files.getByText('“Use files to read a file, e.g. a note.”').waitFor();
  await page.getByRole('region', { name: 'Acme' }).getByText('“Use hello of Acme.”').waitFor();

  await logInToPlayground(page, 'Log in to see your tools');
  await files.getByText('“Use files to read a file, e.g. a note, with path …”').waitFor();
  await page.getByText('“Use hello of Acme, with first name Ada.”').waitFor();
});

test('§19.4 front page: a tool leads to itself in the playground', async () => {
  const { page } = await few.open('/');
  await page.getByRole('link', { name: 'list', exact: true }).click();
  await page.waitForURL(/\/playground\?tool=files__list$/);
  await logInToPlayground(page);
  await page.getByRole('heading', { name: 'files__list' }).waitFor();
});

test('§19.4 front page: the tools end with the line that connects the client that was chosen', async () => {
  const { page } = await few.open('/');
  const line = page.locator('.fp-tools pre');
  expect(await line.innerText()).toBe(
    `claude mcp add --transport http postern ${few.service.baseUrl}/mcp`,
  );
  await page.getByRole('tab', { name: 'Codex' }).click();
  expect(await line.innerText()).toBe(`codex mcp add postern --url ${few.service.baseUrl}/mcp`);
});

test('§19.4 front page: of many tools each server shows a few, and the rest when asked', async () => {
  const many = closeAfterTest(await startWith(MANY_TOOLS));
  const { page } = await many.open('/', {
    viewport: { width: 390, height: 844 },
  });
  const github = page.getByRole('region', { name: 'github' });
  await github.getByText('tool_0', { exact: true }).waitFor();
  expect(await github.getByRole('listitem').count()).toBe(6);
  await github.getByText('14 more tools').click();
  expect(await github.getByRole('listitem').count()).toBe(20);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
});

test('§19.4 front page: many servers are a list of names, each with its tools when asked', async () => {
  const names = ['files', 'github', 'weather', 'notes'];
  const tools = names.flatMap((server) =>
    Array.from({ length: 20 }, (_, at) => toolNamed(`${server}__tool_${at}`, `Tool ${at}.`)),
  );
  const { page } = await closeAfterTest(await startWith(tools)).open('/');
  const github = page.getByRole('region', { name: 'github' });
  await github.getByText('20 tools').click();
  expect(await github.getByText('tool_19', { exact: true }).isVisible()).toBe(true);
  const notes = page.getByRole('region', { name: 'notes' });
  expect(await notes.getByText('tool_0', { exact: true }).isVisible()).toBe(false);
});

test('§19.4 front page: on a phone a command is shown up to its address', async () => {
  const { page } = await few.open('/', { viewport: { width: 390, height: 844 } });
  const line = page.locator('.fp-panel:not([hidden]) pre');
  await line.waitFor();
  const [needed, given] = await line.evaluate((pre) => [pre.scrollWidth, pre.clientWidth]);
  expect(needed).toBe(given);
});

test('§19.4 front page: where nobody has to log in, tools are a click away', async () => {
  const open = closeAfterTest(await startSiteBrowser({ env: { AUTH_REQUIRED: 'false' } }));
  const { page, complaints } = await open.open('/');
  await page.getByRole('button', { name: 'Show the tools' }).click();
  await page.locator('.fp-tools li').first().waitFor();
  expect(await page.locator('.fp-tools li code').allInnerTexts()).toContain('echo');
  expect(complaints).toEqual([]);
});
