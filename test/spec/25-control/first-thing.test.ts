// The mcp.json of the README with a view of eight tools out of three servers, a guard that redacts a key in a result, and a
// user who is asked before a file is written: with real servers, and with real clients that can be asked and that cannot.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { APPROVE, readApprovalLink } from '../../support/approvals/asking-gateway.ts';
import {
  type AskedForm,
  CONNECTING_CLIENTS,
} from '../../support/connections/connecting-clients.ts';
import {
  type ConnectingGateway,
  startConnectingGateway,
} from '../../support/connections/connecting-gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { buildTool, serveForTest } from '../../support/upstreams/listing-server.ts';

/** In parts, so that nobody takes it for a key of somebody. */
const KEY = ['ghp', 'R8v2mQ7xT4kLz9WbN3cYpH6dJfA1sE5uGo0i'].join('_');

const EIGHT = [
  'files__read_text_file',
  'files__list_directory',
  'files__get_file_info',
  'files__write_file',
  'github__search_code',
  'github__get_file',
  'memory__read_graph',
  'memory__search_nodes',
];

interface First {
  readonly gateway: ConnectingGateway;
  readonly url: URL;
  /** Where the files server may write. */
  readonly folder: string;
}

const findProgram = (name: string) =>
  fileURLToPath(
    new URL(`../../../node_modules/@modelcontextprotocol/${name}/dist/index.js`, import.meta.url),
  );

async function start(): Promise<First> {
  const { path: folder } = closeAfterTest(await createTemporaryFolder());
  await writeFile(join(folder, 'notes.txt'), `The key is ${KEY}, keep it.`);
  const github = await serveForTest({
    tools: ['search_code', 'get_file', 'delete_repository'].map((name) => buildTool(name)),
    answers: {
      'tools/call': () => ({
        result: {
          content: [{ type: 'text', text: `found ${KEY}` }],
          structuredContent: { line: `token=${KEY}` },
        },
      }),
    },
  });
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: {
        files: { command: process.execPath, args: [findProgram('server-filesystem'), folder] },
        github: { url: github.url, headers: { Authorization: 'Bearer none' } },
        memory: {
          command: process.execPath,
          args: [findProgram('server-memory')],
          env: { MEMORY_FILE_PATH: join(folder, 'memory.json') },
        },
      },
      file: {
        views: { research: { tools: EIGHT } },
        guards: [
          {
            name: 'keys',
            on: ['tools/result'],
            use: { builtIn: 'secrets', action: 'redact' },
          },
        ],
        rules: [
          { who: 'everyone', may: ['*'] },
          { who: 'everyone', may: ['files__write_file'], ask: 'user' },
        ],
      },
    }),
  );
  return { gateway, url: new URL('/mcp/research', gateway.baseUrl), folder };
}

const ROWS = CONNECTING_CLIENTS.map((row) => [row.title, row] as const);

test.for(ROWS)(
  '§25 client %s that can be asked: eight tools, no key, and a file that is written once its user agrees',
  async ([, row]) => {
    const { url, folder } = await start();
    const forms: AskedForm[] = [];
    const answers = ['refuse', 'once'];
    const client = await row.connect(url, {
      onForm: async (asked) => {
        forms.push(asked);
        return { action: 'accept', content: { decision: answers.shift() ?? 'refuse' } };
      },
    });
    expect(await client.listToolNames()).toEqual(EIGHT);
    const notes = join(folder, 'notes.txt');
    for (const [name, args] of [
      ['files__read_text_file', { path: notes }],
      ['github__search_code', { query: 'token' }],
    ] as const) {
      const { isError, text } = await client.call(name, args);
      expect([isError, text]).toEqual([false, expect.stringMatching(/The key is|found/)]);
      expect(text).not.toContain(KEY);
    }
    expect(forms).toEqual([]);
    // What the view does not have is unknown, whoever may use it at /mcp.
    await expect(
      client.call('github__delete_repository').then(({ isError }) => isError || 'called'),
    ).rejects.toThrow(/github__delete_repository/);

    const path = join(folder, 'new.txt');
    const args = { path, content: 'written' };
    expect((await client.call('files__write_file', args)).isError).toBe(true);
    await expect(readFile(path, 'utf8')).rejects.toThrow('ENOENT');
    expect((await client.call('files__write_file', args)).isError).toBe(false);
    expect(await readFile(path, 'utf8')).toBe('written');
    expect(forms).toHaveLength(2);
    expect(forms[0]?.message).toContain('write_file');
    expect(forms[0]?.message).toContain(path);
    await client.close();
  },
);

test.for(ROWS)(
  '§25 client %s that cannot be asked: its model gets a link, and the call goes on once its user approved it there',
  async ([, row]) => {
    const { gateway, url, folder } = await start();
    const client = await row.connect(url, { person: 'ada' });
    const path = join(folder, 'new.txt');
    const args = { path, content: 'written' };
    const refused = await client.call('files__write_file', args);
    expect(refused.isError).toBe(true);
    await expect(readFile(path, 'utf8')).rejects.toThrow('ENOENT');

    const browser = gateway.createBrowser({ person: 'ada' });
    const page = await browser.open(readApprovalLink(refused.text));
    expect(page.text).toContain('write_file');
    await browser.press(page, APPROVE);
    const other = await client.call('files__write_file', { ...args, content: 'something else' });
    expect(other.isError).toBe(true);
    expect((await client.call('files__write_file', args)).isError).toBe(false);
    expect(await readFile(path, 'utf8')).toBe('written');
    // One use.
    expect((await client.call('files__write_file', args)).isError).toBe(true);
    expect(gateway.auditText()).not.toContain(KEY);
    expect(JSON.stringify(gateway.log)).not.toContain(KEY);
    expect(
      gateway
        .auditLines()
        .filter(({ event }) => event === 'tool_call')
        .map(({ view, tool }) => [view, tool]),
    ).toEqual(Array.from({ length: 4 }, () => ['research', 'files__write_file']));
    await client.close();
  },
);
