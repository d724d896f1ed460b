// §19.5: the playground's tools, from the list, or a link, to the result.
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import {
  type Catalog,
  createLocalCatalog,
  defineResourceTemplate,
  defineTool,
} from '../../src/index.ts';
import { useShared } from '../support/lifetimes.ts';
import {
  callTool,
  logInToPlayground,
  resultOf,
  startSiteBrowser,
  steps,
} from '../support/site/site-browser.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const said = (text: string) => ({ content: [{ type: 'text', text } as const] });

const SERVED = [
  'files__list_folder',
  'files__read_file',
  'files__write_file',
  'tickets__assign',
  'tickets__close',
  'tickets__create',
  'tickets__find',
];

/** Lets a call of `waits` go on. */
let release = (): void => {};

const local = createLocalCatalog({
  tools: [
    defineTool({
      name: 'echo',
      description: 'Says it again.',
      inputSchema: {
        type: 'object',
        properties: {
          text: { type: 'string' },
          note: { type: 'string' },
          tags: { type: 'array', items: { type: 'string' } },
        },
        required: ['text'],
      },
      run: ({ text }) => said(`Said: ${text}`),
    }),
    defineTool({
      name: 'waits',
      description: 'Answers when it is told to.',
      inputSchema: { type: 'object', properties: {} },
      async run() {
        await new Promise<void>((resolve) => {
          release = resolve;
        });
        return said('Waited.');
      },
    }),
    ...SERVED.map((name) =>
      defineTool({
        name,
        description: `A tool of ${name.split('__')[0]}.`,
        inputSchema: { type: 'object', properties: {} },
        run: () => said(name),
      }),
    ),
  ],
  resourceTemplates: [
    defineResourceTemplate({
      uriTemplate: 'memo://{topic}',
      name: 'memo',
      description: 'Of a topic.',
      read: () => undefined,
    }),
  ],
});

/** Servers may have templates of every kind. */
const catalog: Catalog = {
  ...local,
  listResourceTemplates: async () => ({
    items: [{ uriTemplate: 'memo://{topic}{?page}', name: 'memo', description: 'Of a topic.' }],
  }),
  readResource: async (uri) => ({ contents: [{ uri, text: uri }] }),
};

const own = useShared(
  () => startSiteBrowser({ deps: { catalog }, env: { AUTH_REQUIRED: 'false' } }),
  INSTALLATION_MS,
);
const guarded = useShared(() => startSiteBrowser({ deps: { catalog } }), INSTALLATION_MS);

async function connect(query = '', width = 1280) {
  const watched = await own.open(`/playground${query}`, { viewport: { width, height: 900 } });
  await watched.page.getByRole('button', { name: 'Connect' }).click();
  await watched.page.locator('.pg-call').waitFor();
  return watched;
}

/** Bodies of what the page sends from now on. */
function watchBodies(page: Page): readonly string[] {
  const bodies: string[] = [];
  page.on('request', (request) => bodies.push(request.postData() ?? ''));
  return bodies;
}

const groups = (page: Page) => page.locator('.pg-inventory summary:has(h3)');
const groupNames = (page: Page): Promise<string[]> => groups(page).allInnerTexts();
const tool = (page: Page, name: string) =>
  page.locator('.pg-inventory').getByRole('button', { name: new RegExp(`^${name}\\b`) });
const chosen = (page: Page) => page.locator('.pg-call h2');

test('§19.5 playground: tools stand in groups by their server, the built-in ones below the gateway’s name', async () => {
  const { page, complaints } = await connect();
  expect(await groupNames(page)).toEqual(['Postern 2', 'files 3', 'tickets 4']);

  await groups(page).filter({ hasText: 'files' }).click();
  await tool(page, 'files__read_file').waitFor({ state: 'hidden' });
  expect(await tool(page, 'echo').isVisible()).toBe(true);
  expect(await tool(page, 'tickets__find').isVisible()).toBe(true);

  // What is looked for is seen, also in a group that was folded.
  await page.getByRole('searchbox').fill('read');
  await tool(page, 'files__read_file').waitFor();
  expect(await groupNames(page)).toEqual(['files 1']);
  expect(complaints).toEqual([]);
});

test('§19.5 playground: names without a server’s prefix are one list', async () => {
  const { page } = await connect();
  await page.getByRole('button', { name: /^Templates/ }).click();
  await tool(page, 'memo').waitFor();
  expect(await groupNames(page)).toEqual([]);
});

test.each([
  { width: 390, isBeside: false },
  { width: 1280, isBeside: true },
  { width: 1920, isBeside: true },
])(
  '§19.5 playground: the result stands beside the form, or below it where there is no room ($width px)',
  async ({ width, isBeside }) => {
    const { page } = await connect('', width);
    await callTool(page, 'echo', { text: 'hello' });
    await expect.poll(() => resultOf(page).innerText()).toBe('Said: hello');
    const form = await page.locator('.pg-call form').boundingBox();
    const result = await page.getByRole('region', { name: 'Result' }).boundingBox();
    if (form === null || result === null) throw new Error('Something is not shown.');
    expect(result.x >= form.x + form.width).toBe(isBeside);
    expect(result.y >= form.y + form.height).toBe(!isBeside);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
  },
);

test('§19.5 playground: a result goes when another tool is chosen, a call starts, or one is not sent', async () => {
  const { page } = await connect();
  const region = page.getByRole('region', { name: 'Result' });
  await callTool(page, 'echo', { text: 'hello' });
  await expect.poll(() => region.innerText()).toContain('Said: hello');
  await tool(page, 'files__read_file').click();
  await expect.poll(() => region.innerText()).not.toContain('Said: hello');
  expect(await page.locator('.pg-outcome').innerText()).toBe('');

  await callTool(page, 'waits');
  await expect.poll(() => page.locator('.pg-outcome').innerText()).toBe('Running…');
  release();
  await expect.poll(() => region.innerText()).toContain('Waited.');
  await page.getByRole('button', { name: 'Call the tool' }).click();
  await expect.poll(() => page.locator('.pg-outcome').innerText()).toBe('Running…');
  expect(await region.innerText()).not.toContain('Waited.');
  release();
  await page.getByText(/^Done in/).waitFor();

  await callTool(page, 'echo', { text: 'again' });
  await expect.poll(() => region.innerText()).toContain('Said: again');
  await callTool(page, 'echo', { text: '' });
  await page.getByText('Not sent.').waitFor();
  expect(await region.innerText()).not.toContain('Said: again');
});

test('§19.5 playground: a required text is not sent empty by accident, and an optional one is left out', async () => {
  const { page } = await connect();
  const bodies = watchBodies(page);
  await callTool(page, 'echo');
  await page.getByText('Enter a value.').waitFor();
  const text = page.getByRole('textbox', { name: 'text' });
  expect(await text.getAttribute('aria-invalid')).toBe('true');
  expect(await page.evaluate('document.activeElement.getAttribute("aria-invalid")')).toBe('true');
  expect(bodies).toEqual([]);

  await page.getByRole('checkbox', { name: 'Send it empty' }).check();
  await page.getByRole('button', { name: 'Call the tool' }).click();
  await expect.poll(() => resultOf(page).innerText()).toBe('Said: ');
  expect(bodies.map((body) => JSON.parse(body).params.arguments)).toEqual([{ text: '' }]);

  // An item that was added and not filled in is none.
  await text.fill('hello');
  await page.getByRole('button', { name: 'Add to tags' }).click();
  await page.getByRole('button', { name: 'Call the tool' }).click();
  await page.getByText('Enter a value.').waitFor();
  expect(bodies).toHaveLength(1);
});

test('§19.5 playground: a variable of a query may be left out of a template', async () => {
  const { page } = await connect();
  await page.getByRole('button', { name: /^Templates/ }).click();
  const bodies = watchBodies(page);
  await page.getByRole('button', { name: 'Read the resource' }).click();
  await page.getByText('Enter a value.').waitFor();
  expect(bodies).toEqual([]);
  await page.getByRole('textbox', { name: 'topic' }).fill('tea');
  await page.getByRole('button', { name: 'Read the resource' }).click();
  await page.getByText(/^Done in/).waitFor();
  expect(bodies.map((body) => JSON.parse(body).params.uri)).toEqual(['memo://tea']);
});

test('§19.5 playground: the newest request stands first', async () => {
  const { page } = await connect();
  await callTool(page, 'echo', { text: 'hello' });
  await page.getByText(/^Done in/).waitFor();
  await callTool(page, 'files__read_file');
  await expect.poll(() => steps(page)).toContain('Call files__read_file');
  const shown = await page.locator('.pg-step > span:first-child').allInnerTexts();
  expect(shown.slice(0, 2)).toEqual(['Call files__read_file', 'Call echo']);
  expect(shown.at(-1)).toBe('Open a session');
});

test('§19.5 playground: a link leads to a tool, also over the login', async () => {
  const { page } = await guarded.open('/playground?tool=tickets__close');
  await logInToPlayground(page);
  await expect.poll(() => chosen(page).innerText()).toBe('tickets__close');
});

test('§19.5 playground: a link to a tool that is unknown names the nearest', async () => {
  const { page, complaints } = await connect('?tool=read_file');
  const notice = page.locator('.pg-columns [role=alert]');
  expect(await notice.innerText()).toBe(
    'You have no tool named read_file. Did you mean files__read_file?',
  );
  await notice.getByRole('button', { name: 'files__read_file' }).click();
  expect(await chosen(page).innerText()).toBe('files__read_file');
  expect(await notice.count()).toBe(0);

  const { page: other } = await connect('?tool=sing_a_song');
  expect(await other.locator('.pg-columns [role=alert]').innerText()).toBe(
    'You have no tool named sing_a_song.',
  );
  expect(complaints).toEqual([]);
});

test('§19.5 playground: a name that is typed wrong leads to the nearest', async () => {
  const { page } = await connect();
  await page.getByRole('searchbox').fill('raed_file');
  const found = page.locator('.pg-inventory').getByText('You have no tool named raed_file.');
  await found.getByRole('button', { name: 'files__read_file' }).click();
  expect(await chosen(page).innerText()).toBe('files__read_file');
  expect(await page.getByRole('searchbox').inputValue()).toBe('');
  expect(await groupNames(page)).toHaveLength(3);
});
