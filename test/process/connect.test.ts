// postern connect: how to add the gateway to an MCP client.
import { afterEach, expect, test } from 'vitest';
import { ALL_CLIENT_SETUPS } from '../../src/pages/client-setups.ts';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import { endPosterns, makeFolder, runPostern } from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';

afterEach(endPosterns);

const connect = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runInside(env, { args: ['connect', ...args] });

test('§20.3 connect: without a client it lists them', async () => {
  const { code, stdout } = await connect([]);
  expect(code).toBe(0);
  for (const { id, title } of ALL_CLIENT_SETUPS)
    expect(stdout).toMatch(new RegExp(`^  ${id} +${title}$`, 'm'));
});

test('§20.3 connect: every client gets the address', async () => {
  const { stdout } = await connect([
    '--json',
    '--url',
    'https://mcp.example.com/tools/',
    '--name',
    'x',
  ]);
  const setups: { client: string; text: string; next: string | null }[] = JSON.parse(stdout);
  expect(setups.map(({ client }) => client)).toEqual(ALL_CLIENT_SETUPS.map(({ id }) => id));
  for (const { text, next } of setups) {
    expect(text).toContain('https://mcp.example.com/tools/mcp');
    expect(`${text}${next}`.replace('`postern dev`', '')).not.toContain('postern');
  }
});

test.each([
  { env: {}, url: 'http://localhost:3000/mcp' },
  { env: { PORT: '3010' }, url: 'http://localhost:3010/mcp' },
  { env: { BASE_URL: 'https://a.example/' }, url: 'https://a.example/mcp' },
])('§20.3 connect: the address follows from $env', async ({ env, url }) => {
  const { stdout } = await connect(['cursor'], env);
  expect(stdout).toContain(`"postern": {\n        "url": "${url}"`);
});

test('§20.3 connect: the address may stand behind the client', async () => {
  const { code, stdout } = await connect(['cursor', 'https://c.example'], {
    BASE_URL: 'https://a.example',
  });
  expect([code, stdout]).toEqual([0, expect.stringContaining('"url": "https://c.example/mcp"')]);
});

test.each([
  { args: ['localhost:4800'], url: 'http://localhost:4800/mcp' },
  { args: ['127.0.0.1:4800/mcp'], url: 'http://127.0.0.1:4800/mcp' },
  { args: ['--url', 'localhost:4800'], url: 'http://localhost:4800/mcp' },
  { args: ['c.example'], url: 'https://c.example/mcp' },
])('§20.3 connect: the address $args without a scheme is $url', async ({ args, url }) => {
  const { stdout } = await connect(['cursor', ...args]);
  expect(stdout).toContain(`"url": "${url}"`);
});

test.each([
  { args: ['cursor', 'c example'], says: 'URL: "c example" is not ' },
  {
    args: ['cursor', 'https://c.example', '--url', 'https://d.example'],
    says: 'The address is given twice',
  },
  { args: ['cursor', 'https://c.example', 'now'], says: 'Too many arguments: now.' },
])('§20.3 connect: $args is refused: $says', async ({ args, says }) => {
  const { code, stderr } = await connect(args);
  expect([code, stderr]).toEqual([2, expect.stringContaining(says)]);
});

test('§20.3 connect: the address follows from .env', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, '.env', 'BASE_URL=https://b.example\n');
  const { stdout } = await runPostern({}, { args: ['connect', 'claude-code'], cwd });
  expect(stdout).toContain('claude mcp add --transport http postern https://b.example/mcp');
});

test('§20.3 connect: nothing of an address in .env moves the cursor of a terminal', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, '.env', 'BASE_URL="http://localhost:3000/\u001b[2K\u009b1A"\n');
  for (const args of [['curl'], ['curl', '--json']]) {
    const { stdout } = await runInside({}, { args: ['connect', ...args], cwd });
    expect(stdout).toContain('u001b[2K');
    expect(stdout).not.toMatch(/(?!\n)\p{Cc}/u);
  }
});

test('§20.3 connect: in a terminal the name of the client is bold', async () => {
  const { stdout } = await runPostern({ FORCE_COLOR: '1' }, { args: ['connect', 'cursor'] });
  expect(stdout).toContain('\u001b[1mCursor\u001b[22m');
});

test('§20.3 connect: for curl it says where a token comes from', async () => {
  const { stdout } = await connect(['curl']);
  expect(stdout).toContain('curl <provider>/token-for/NAME');
  expect(stdout).toContain('docs/connect.md');
});

test('§20.3 connect: a client that nobody has tried is said to be one', async () => {
  const [untried, tried] = await Promise.all([connect(['zed']), connect(['opencode'])]);
  expect(untried.stdout).toContain('We have not tested this client');
  expect(tried.stdout).not.toContain('We have not tested');
});

test('§20.3 connect: a shell runs nothing of an address', async () => {
  const url = "https://a.example/$(id);id'";
  const { stdout } = await connect(['--json', '--url', url]);
  const setups: { language: string; text: string }[] = JSON.parse(stdout);
  const commands = setups.filter(({ language }) => language === 'sh');
  expect(commands.length).toBeGreaterThan(4);
  for (const { text } of commands) expect(text).toContain(` 'https://a.example/$(id);id'\\''/mcp'`);
});

test.each([
  { args: ['coursor'], says: /^CLIENT: "coursor" is not one of .*\. Did you mean cursor\?\n/ },
  {
    args: ['cursor', '--url', 'ftp://x'],
    says: /^--url: "ftp:\/\/x" is not an absolute http or https URL/,
  },
  {
    args: ['cursor', '--url', 'http://x/\u001b[2J'],
    says: /^--url: "http:\/\/x\/\\u001b\[2J" is not/,
  },
  { args: ['cursor', '--name', 'a b'], says: /^--name: "a b" must consist of/ },
])('§20.3 connect: $args is refused', async ({ args, says }) => {
  const { code, stderr } = await connect(args);
  expect(code).toBe(2);
  expect(stderr).toMatch(says);
});
