// postern dev in a terminal: lines for people, a line for each server, and keys.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { catalogModule } from '../support/catalogs/catalog-files.ts';
import { freePort } from '../support/gateway/ports.ts';
import { endPosterns, makeFolder, startPostern } from '../support/gateway/process.ts';

afterEach(endPosterns);

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const MAIN = join(ROOT, 'dist', 'cli', 'main.js');
const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
/** Runs a command in a terminal of its own; that of util-linux. */
const SCRIPT = '/usr/bin/script';
const hasTerminal = process.platform === 'linux' && existsSync(SCRIPT);
const START = { timeout: 30_000 } as const;

async function startDev(env: Readonly<Record<string, string>> = {}) {
  const cwd = await makeFolder();
  const mcpServers = {
    everything: { command: process.execPath, args: [EVERYTHING] },
    broken: { command: 'no-such-program' },
    late: {
      command: '/bin/sh',
      args: ['-c', `test -e ready && exec '${process.execPath}' '${EVERYTHING}'`],
      cwd,
    },
  };
  await writeFile(join(cwd, 'mcp.json'), JSON.stringify({ mcpServers }));
  const port = await freePort();
  const terminal = openTerminal(`dev --config mcp.json --port ${port}`, cwd, env);
  const makeReady = () => writeFile(join(cwd, 'ready'), '');
  return { ...terminal, makeReady, url: `http://127.0.0.1:${port}` };
}

function openTerminal(args: string, cwd: string, env: Readonly<Record<string, string>> = {}) {
  const command = `exec '${process.execPath}' '${MAIN}' ${args}`;
  const terminal = spawn(SCRIPT, ['-qfec', command, '/dev/null'], {
    cwd,
    env: { PATH: process.env.PATH, SHELL: '/bin/sh', AUTH_REQUIRED: 'false', ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ended = new Promise<number | null>((resolve) => terminal.once('exit', resolve));
  onTestFinished(() => void terminal.kill('SIGKILL'));
  let printed = '';
  terminal.stdout.setEncoding('utf8').on('data', (piece: string) => {
    printed += piece.replaceAll('\r\n', '\n');
  });
  const press = (key: string) => void terminal.stdin.write(key);
  return { printed: () => printed, press, ended };
}

test.skipIf(!hasTerminal)(
  '§20.1 dev: a terminal gets lines for people, a line for each server, and what c and Ctrl+C stand for',
  async () => {
    const dev = await startDev();
    await expect.poll(dev.printed, START).toMatch(/^ {2}✓ everything {2}\d+ tools$/m);
    await expect.poll(dev.printed).toMatch(/^ {2}✗ broken {6}its command could not be started/m);
    expect(dev.printed()).toMatch(/^\d\d:\d\d:\d\d ! The MCP server broken is not available: /m);
    expect(dev.printed()).not.toMatch(/^\{"level"/m);
    expect(dev.printed()).toContain('Press c to see how clients connect, Ctrl+C to stop.');
    expect(dev.printed()).not.toContain('claude mcp add');

    dev.press('c');
    await expect.poll(dev.printed).toContain('    claude mcp add --transport http postern ');
    dev.press('\u0003');
    expect(await dev.ended).toBe(0);
    await expect(fetch(dev.url)).rejects.toThrow();
  },
);

test.skipIf(!hasTerminal)(
  '§20.1 dev: under --watch, too, Ctrl+C ends all of it, whatever was pressed before',
  async () => {
    const cwd = await makeFolder();
    await writeFile(join(cwd, 'catalog.mjs'), catalogModule('one'));
    const port = await freePort();
    const dev = openTerminal(`dev --catalog catalog.mjs --port ${port}`, cwd);
    await expect.poll(dev.printed, START).toContain('Press c to see how clients connect');
    dev.press('c');
    await expect.poll(dev.printed).toContain('    claude mcp add --transport http postern ');
    dev.press('\u0003');
    expect(await dev.ended).toBe(0);
    await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow();
  },
);

test.skipIf(!hasTerminal)(
  '§20.1 dev: of a server that failed it says once that it answers again, and no time that passes',
  async () => {
    const dev = await startDev();
    await expect.poll(dev.printed, START).toMatch(/^ {2}✗ late /m);
    expect(dev.printed()).not.toMatch(/^ {2}✗ .*started again in/m);
    await dev.makeReady();
    await expect.poll(dev.printed, START).toMatch(/^ {2}✓ late {8}answers again, \d+ tools$/m);
    dev.press('\u0003');
    await dev.ended;
    expect(dev.printed().match(/answers again/g)).toHaveLength(1);
  },
);

test.skipIf(!hasTerminal)('§18.4 lock: a terminal gets lines for people', async () => {
  const cwd = await makeFolder();
  const mcpServers = { broken: { command: 'no-such-program' } };
  await writeFile(join(cwd, 'mcp.json'), JSON.stringify({ mcpServers }));
  const lock = openTerminal('lock --config mcp.json', cwd);
  expect(await lock.ended).toBe(1);
  expect(lock.printed()).toMatch(/^\S*\d\d:\d\d:\d\d ! The MCP server broken is not available: /m);
  expect(lock.printed()).not.toContain('{"level"');
});

test.skipIf(!hasTerminal)('§20.1 dev: LOG_FORMAT=json wins over the terminal', async () => {
  const dev = await startDev({ LOG_FORMAT: 'json' });
  await expect.poll(dev.printed, START).toMatch(/^\{"level":"warn",.*server broken/m);
  await expect.poll(dev.printed).toContain('Press c to see how clients connect');
  expect(dev.printed()).not.toContain('✗');
});

test('§20.1 dev: the groups of a login can be chosen, and are those of one name alone', async () => {
  const dev = await startPostern({}, { args: ['dev'] });
  await expect.poll(() => dev.stdout).toContain('Press Ctrl+C to stop.');
  const [, tokens = ''] = /curl -s (\S+\/token-for\/)ada/.exec(dev.stdout) ?? [];
  const groupsIn = (token: string) =>
    JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).groups;
  const groupsOf = async (name: string) => groupsIn(await (await fetch(tokens + name)).text());

  expect(await groupsOf('bob')).toEqual(['developers']);
  expect(await groupsOf('ada?groups=operators,%20on-call')).toEqual(['operators', 'on-call']);
  expect(await groupsOf('ada')).toEqual(['operators', 'on-call']);
  expect(await groupsOf('bob')).toEqual(['developers']);
  expect(await groupsOf('ada?groups=')).toEqual([]);
  // An image on a page elsewhere, say.
  const headers = { 'sec-fetch-site': 'cross-site' };
  expect((await fetch(`${tokens}bob?groups=admins`, { headers })).status).toBe(403);
  expect(await groupsOf('bob')).toEqual(['developers']);
});
