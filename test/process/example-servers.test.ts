// docs/examples/servers: the configuration file and the servers of the page, started as it says.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../support/gateway/ports.ts';
import {
  endPosterns,
  makeFolder,
  type RunningPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { openSession, rpc } from '../support/gateway/process-http.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const EXAMPLES = join(ROOT, 'docs/examples/servers');
const SLOW = 60_000;
const PATIENT = { timeout: 50_000 } as const;

const children: ChildProcess[] = [];
let postern: RunningPostern;
let session: string;

beforeAll(async () => {
  const cwd = await makeFolder();
  // npx finds the packages as in a project that has them.
  await symlink(join(ROOT, 'node_modules'), join(cwd, 'node_modules'));
  await mkdir(join(cwd, 'docs'));
  await writeFile(join(cwd, 'docs', 'hello.txt'), 'Hello.');
  const env = {
    WEATHER_URL: await startServer('weather.mjs'),
    NOTES_URL: await startServer('notes.mjs'),
    MEMORY_FILE: join(cwd, 'memory.jsonl'),
    AUTH_REQUIRED: 'false',
    OAUTH_CONSENT: 'off',
  };
  const args = ['start', '--config', join(EXAMPLES, 'mcp.json')];
  postern = await startPostern(env, { args, cwd });
  session = await openSession(postern.url);
}, SLOW);

afterAll(async () => {
  await endPosterns();
  for (const child of children) child.kill('SIGKILL');
});

async function startServer(file: string): Promise<string> {
  const port = await freePort();
  const env = { PATH: process.env.PATH, PORT: String(port) };
  children.push(spawn(process.execPath, [join(EXAMPLES, file)], { env, stdio: 'inherit' }));
  return `http://127.0.0.1:${port}/mcp`;
}

async function ask(method: string, params: object) {
  const message = { jsonrpc: '2.0', id: 1, method, params };
  return JSON.parse(await (await rpc(postern.url, message, { session })).text());
}

async function call(name: string, args: object): Promise<string> {
  const { result } = await ask('tools/call', { name, arguments: args });
  return result.content[0].text;
}

test(
  '§18.1 examples: the tools of all servers of the file are listed, and none that it leaves out',
  async () => {
    const listNames = async () => {
      const { result } = await ask('tools/list', {});
      return result.tools.map(({ name }: { readonly name: string }) => name);
    };
    for (const name of [
      'everything__echo',
      'files__read_text_file',
      'memory__read_graph',
      'weather__forecast',
      'notes__add_note',
    ]) {
      await expect.poll(listNames, PATIENT).toContain(name);
    }
    expect(await listNames()).not.toContain('files__write_file');
  },
  SLOW,
);

test('§18.1 examples: each server answers', async () => {
  expect(await call('everything__echo', { message: 'hello' })).toContain('hello');
  expect(await call('files__read_text_file', { path: 'hello.txt' })).toBe('Hello.');
  expect(await call('memory__read_graph', {})).toContain('entities');
  expect(await call('weather__forecast', { city: 'Oslo' })).toBe('Sunny in Oslo.');
  expect(await call('notes__add_note', { text: 'one' })).toBe('Note 1 is kept.');
  expect(await call('notes__add_note', { text: 'two' })).toBe('Note 2 is kept.');
});

test('§18.1 examples: what the file excludes cannot be called either', async () => {
  const { error } = await ask('tools/call', {
    name: 'files__write_file',
    arguments: { path: 'hello.txt', content: '' },
  });
  expect(error.code).toBe(-32602);
});
