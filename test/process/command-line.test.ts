// The command postern: what may stand after it, --catalog, and the file .env.
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect, test } from 'vitest';
import { toFlag } from '../../src/cli/command-line/command.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { createBanner, renderBanner } from '../../src/cli/dev/announce.ts';
import { loadConfig } from '../../src/config/load.ts';
import { CLIENT_SETUPS } from '../../src/pages/client-setups.ts';
import { callTool, catalogModule, writeFileIn } from '../support/catalogs/catalog-files.ts';
import { freePort } from '../support/gateway/ports.ts';
import {
  endPosterns,
  launch,
  MAIN,
  makeFolder,
  runPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';

const ANONYMOUS = { AUTH_REQUIRED: 'false', HOST: '127.0.0.1' } as const;

afterEach(endPosterns);

test.each([['help'], ['--help'], ['-h']])('§20.1 %s lists every command', async (...args) => {
  const { code, stdout, stderr } = await runPostern({}, { args });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^Usage: postern /);
  for (const { name, summary } of COMMANDS) {
    expect(stdout).toMatch(new RegExp(`^  ${name}( |$)`, 'm'));
    expect(stdout.replace(/\s+/g, ' ')).toContain(summary);
  }
});

test('§20.1 a reader that has gone, such as head, ends a command without a word', async () => {
  // `true` has ended long before anything is written.
  const command = '"$0" "$1" --help | true; echo "${PIPESTATUS[0]}"';
  const ended = await promisify(execFile)('bash', ['-c', command, process.execPath, MAIN]);
  expect(ended).toEqual({ stdout: '0\n', stderr: '' });
});

test.each(COMMANDS)('§20.1 help of postern $name: its options, with examples', async (row) => {
  const words = row.name.split(' ');
  const { code, stdout, stderr } = await runInside({}, { args: [...words, '--help'] });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(new RegExp(`^Usage: postern ${row.name} `));
  for (const name of Object.keys(row.options)) expect(stdout).toContain(toFlag(name));
  for (const typed of Object.keys(row.examples)) expect(stdout).toContain(typed);
});

test('§20.1 help of a command: postern help dev is postern dev --help', async () => {
  const asked = await runPostern({}, { args: ['help', 'dev'] });
  const { stdout } = await runPostern({}, { args: ['dev', '-h'] });
  expect(asked).toMatchObject({ code: 0, stdout });
});

test.each([
  { env: {}, isColored: false },
  { env: { FORCE_COLOR: '1' }, isColored: true },
  { env: { NO_COLOR: '1' }, isColored: false },
])('§20.1 colours are for terminals: with $env and no terminal: $isColored', async (row) => {
  const { stdout } = await runPostern(row.env, { args: ['--help'] });
  expect(stdout.includes('\u001b[')).toBe(row.isColored);
});

test.each(['version', '--version', '-v'])('§20.1 %s prints the version', async (arg) => {
  const { code, stdout, stderr } = await runInside({}, { args: [arg] });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test('§20.1 version --json has what a bug report needs', async () => {
  const { stdout } = await runPostern({}, { args: ['version', '--json'] });
  const { version: node, platform, arch } = process;
  expect(JSON.parse(stdout)).toEqual({
    name: 'postern',
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    node,
    platform,
    arch,
  });
});

test.each([
  { args: ['dve'], says: 'Unknown command: dve. Did you mean dev?' },
  { args: ['frobnicate'], says: 'Unknown command: frobnicate.' },
  { args: ['help', 'dve'], says: 'Unknown command: dve. Did you mean dev?' },
  {
    args: ['rules'],
    says: 'postern rules is not complete. There is: postern rules test, postern rules replay.',
  },
  { args: ['rules', 'tst'], says: 'Unknown command: rules tst. Did you mean rules test?' },
  {
    args: ['dev', '--catlog', 'x.js'],
    says: 'postern dev has no option --catlog. Did you mean --catalog?',
  },
  { args: ['--prot=1'], says: 'postern start has no option --prot. Did you mean --port?' },
  { args: ['start', '-x'], says: 'postern start has no option -x.' },
  { args: ['start', '--watch'], says: 'postern start has no option --watch.' },
  { args: ['dev', '--catalog'], says: '--catalog needs a value, for example --catalog' },
  { args: ['dev', '--catalog', '--watch'], says: '--catalog needs a value' },
  { args: ['dev', '--catalog='], says: '--catalog needs a value' },
  { args: ['dev', '--config'], says: '--config needs a value, for example --config mcp.json.' },
  { args: ['dev', '--port', '0'], says: '--port: "0" is not a number from 1 to 65535.' },
  { args: ['dev', '--port', '99999'], says: '--port: "99999" is not a number from 1 to 65535.' },
  { args: ['dev', '--watch=no'], says: '--watch does not take a value.' },
  { args: ['dev', 'now'], says: 'Too many arguments: now.' },
  {
    args: ['--port', '3010', 'dev'],
    says: 'Too many arguments: dev. The command comes first: node ',
  },
  { args: ['dev', '3010'], says: 'Too many arguments: 3010. Pass the port with --port 3010;' },
  { args: ['dev', 'm.json'], says: 'Too many arguments: m.json. Did you mean --config m.json?' },
  { args: ['dev', 'm.mjs'], says: 'Too many arguments: m.mjs. Did you mean --catalog m.mjs?' },
])('§20.1 command line: $args is refused: $says', async ({ args, says }) => {
  const { code, stdout, stderr } = await runInside({}, { args });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr.startsWith(says), stderr).toBe(true);
  expect(stderr).toMatch(/\npostern (\w+ )*--help lists .*\.\n$/);
});

test.each([
  { node: '20.20.2', inspector: false },
  { node: '22.18.0', inspector: false },
  { node: '22.19.0', inspector: true },
  { node: '24.13.0', inspector: true },
])('§20.1 dev: what it prints names the Inspector by Node.js $node: $inspector', (row) => {
  const config = loadConfig({ AUTH_REQUIRED: 'false', POSTERN_CATALOG: 'catalog.mjs' });
  const login = 'none needed';
  const facts = { login, tokenUrl: undefined, configFile: undefined, envFile: undefined };
  const text = renderBanner(createBanner(config, facts, row.node));
  expect(text.includes('npx @modelcontextprotocol/inspector')).toBe(row.inspector);
});

/** Those that reach a gateway on this machine. */
const LOCAL_CLIENTS = CLIENT_SETUPS.filter(({ isRemote }) => !isRemote);

test('§20.1 dev: what it prints connects every client on this machine, and fits a terminal', async () => {
  const { stdout, url } = await startDev({});
  for (const { id, title, language, place } of LOCAL_CLIENTS) {
    if (language === 'json') expect(stdout).toContain(`    ${title}: ${place}\n`);
    else if (id !== 'inspector')
      expect(stdout).toMatch(new RegExp(`^    ${id.split('-')[0]} .*`, 'm'));
  }
  expect(stdout).toContain(`{"servers":{"postern":{"type":"http","url":"${url}/mcp"}}}`);
  const COLUMNS = 80;
  const rows = stdout.split('\n').map((line) => Math.ceil(line.length / COLUMNS) || 1);
  expect(rows.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(40);
});

test.each([{ env: {} }, { env: { AUTH_REQUIRED: 'false' } }])(
  '§5 dev: the lines for curl work as they are, with $env',
  async ({ env }) => {
    const { stdout } = await startDev(env);
    const [, lines = ''] = /call it with curl:\n((?: {4}.*\n)+)/.exec(stdout) ?? [];
    const { stdout: answer } = await promisify(execFile)('sh', ['-c', lines]);
    expect(JSON.parse(answer).result.tools).toMatchObject([{ name: 'service_ping' }]);
    expect(lines.includes('TOKEN')).toBe(!('AUTH_REQUIRED' in env));
  },
);

async function startDev(env: Readonly<Record<string, string>>) {
  const postern = await startPostern(env, { args: ['dev'] });
  await expect.poll(() => postern.stdout).toContain('Press Ctrl+C to stop.');
  return { stdout: postern.stdout, url: `http://localhost:${postern.port}` };
}

test('§20.1 command line: --port wins over PORT', async () => {
  const port = await freePort();
  const env = { ...ANONYMOUS, HOST: '127.0.0.1', PORT: '1', DATA_DIR: await makeFolder() };
  const postern = launch(env, { args: ['start', '--port', String(port)] });
  await expect
    .poll(() => postern.log(), { timeout: 30_000 })
    .toContainEqual(expect.objectContaining({ msg: 'Listening.', port }));
  expect((await fetch(`http://127.0.0.1:${port}/health`)).status).toBe(200);
});

test.each(['start', 'dev'])(
  '§2.4 --catalog: %s serves the default export of a file, which shares the running package',
  async (command) => {
    const cwd = await makeFolder();
    await writeFileIn(cwd, 'catalog.mjs', catalogModule('mine'));
    const args = [command, '--catalog', 'catalog.mjs'];
    const { url } = await startPostern(ANONYMOUS, { args, cwd });
    expect(await callTool(url, 'say')).toBe('mine');
    // Thrown by the author's copy of postern, understood by the gateway's.
    expect(await callTool(url, 'me')).toMatchObject({ code: -32001 });
    expect(await callTool(url, 'service_ping')).toMatchObject({ code: -32602 });
  },
);

const BAD_NAME = `import { defineTool } from 'postern';

export default defineTool({
  name: 'two words', description: '', inputSchema: { type: 'object' }, run: () => ({ content: [] }),
});
`;

test.each([
  {
    what: 'is not there',
    text: undefined,
    says: /^--catalog: the file \/.*c\.mjs does not exist\. It is named by --catalog or POSTERN_CATALOG\.$/,
  },
  { what: 'throws', text: '\n  throw new Error("boom");\n', says: /^c\.mjs:2:9: boom$/ },
  { what: 'has a wrong tool', text: BAD_NAME, says: /^c\.mjs:3:16: Tool two words: a name has/ },
  {
    what: 'imports what there is not',
    text: "import { defineTol } from 'postern';\n",
    says: /^c\.mjs:1: .*'postern' does not provide an export named 'defineTol'$/,
  },
  {
    what: 'lacks a package',
    text: "import 'nope';\n",
    says: /^Cannot find package 'nope' imported/,
  },
  {
    what: 'exports nothing',
    text: 'export {};\n',
    says: /^c\.mjs must export .*export default cr/,
  },
  {
    what: 'ends too early',
    text: 'const say = [\n  1,\n',
    says: /^c\.mjs:\d+: Unexpected end of input$/,
  },
  {
    what: 'exports lists',
    text: 'export default { tools: [] };\n',
    says: /^c\.mjs must export its catalogue: export default createLocalCatalog/,
  },
])('§2.4 --catalog: a file that $what is one line', async ({ text, says }) => {
  const cwd = await makeFolder();
  if (text !== undefined) await writeFileIn(cwd, 'c.mjs', text);
  const port = String(await freePort());
  const { code, stderr } = await runPostern(
    { ...ANONYMOUS, PORT: port },
    { args: ['start', '--catalog', 'c.mjs'], cwd },
  );
  expect(code).toBe(1);
  const [head, line = '', ...more] = stderr.trimEnd().split('\n');
  expect(head).toBe('Postern cannot start:');
  expect(line.replace(/^ {2}- /, '')).toMatch(says);
  expect(more).toEqual([]);
});

test('§2.4 --catalog: of a syntax error in another file that file, the line and the place are shown', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, 'c.mjs', "import './tool.mjs';\n");
  await writeFileIn(cwd, 'tool.mjs', 'const a = 1;\nconst b = ;\n');
  const args = ['start', '--catalog', 'c.mjs'];
  const { code, stderr } = await runPostern(ANONYMOUS, { args, cwd });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^file:\/\/.*\/tool\.mjs:2\nconst b = ;\n {10}\^$/m);
  expect(stderr).not.toMatch(/^\s+at /m);
});

test('§2.4 --catalog: a file in TypeScript is served, or the answer says which Node can', async () => {
  const cwd = await makeFolder();
  const typed = catalogModule('typed').replace('const say', 'const one: number = 1;\nconst say');
  await writeFileIn(cwd, 'c.mts', typed);
  const how = { args: ['start', '--catalog', 'c.mts'], cwd };
  if ('typescript' in process.features && process.features.typescript) {
    const { url } = await startPostern(ANONYMOUS, how);
    expect(await callTool(url, 'say')).toBe('typed');
  } else {
    const { code, stderr } = await runPostern(ANONYMOUS, how);
    expect(code).toBe(1);
    expect(stderr).toMatch(/Node\.js v[\d.]+ cannot run TypeScript: .*c\.mts.* 22\.18 .*tsx/);
  }
});

test('§5 .env: fills in what the environment does not set, and is told by name only', async () => {
  const cwd = await makeFolder();
  const lines = [
    'SERVICE_DISPLAY_NAME="From the file"',
    'METRICS_ENABLED=true',
    'MAX_BODY_BYTES=5000',
    'OAUTH_CLIENT_SECRET=hunter2',
    'MY_OWN=hunter3',
  ];
  await writeFileIn(cwd, '.env', lines.join('\n'));
  // Empty counts as not set.
  const env = { ...ANONYMOUS, METRICS_ENABLED: '', MAX_BODY_BYTES: '6000' };
  const postern = await startPostern(env, { args: ['start'], cwd });
  expect((await fetch(`${postern.url}/metrics`)).status).toBe(200);
  const read = () => postern.log().find(({ msg }) => msg.startsWith('Read .env'));
  await expect.poll(read).toMatchObject({
    level: 'info',
    variables: ['METRICS_ENABLED', 'OAUTH_CLIENT_SECRET', 'SERVICE_DISPLAY_NAME'],
  });
  expect(await callTool(postern.url, 'service_ping')).toBe('From the file MCP Server: pong');
  expect(postern.stdout).not.toContain('hunter');
});

test('§5 .env: postern dev says in its first lines what it read', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, '.env', 'SERVICE_DISPLAY_NAME=Mine\n');
  const postern = await startPostern(ANONYMOUS, { args: ['dev'], cwd });
  await expect.poll(() => postern.stdout).toContain('.env (SERVICE_DISPLAY_NAME)');
  expect(await callTool(postern.url, 'service_ping')).toBe('Mine MCP Server: pong');
});

test('§5 .env: written by any editor: a byte order mark, CRLF, export, quotes and comments', async () => {
  const cwd = await makeFolder();
  const lines = ['SERVICE_DISPLAY_NAME="Mine" # ours', 'export METRICS_ENABLED=true', '', '# no'];
  await writeFileIn(cwd, '.env', `\ufeff${lines.join('\r\n')}\r\n`);
  const { stdout } = await runPostern(ANONYMOUS, { args: ['config', '--json'], cwd });
  const { settings } = JSON.parse(stdout);
  const read = (variable: string) =>
    settings.find((row: { variable: string }) => row.variable === variable);
  expect(read('SERVICE_DISPLAY_NAME')).toMatchObject({ value: 'Mine' });
  expect(read('METRICS_ENABLED')).toMatchObject({ value: 'true' });
});

test('§5 .env: a folder of that name is somebody else’s', async () => {
  const cwd = await makeFolder();
  await mkdir(join(cwd, '.env'));
  const postern = await startPostern(ANONYMOUS, { cwd });
  expect(postern.stdout).not.toContain('Read .env');
});

test('§5 .env: a wrong setting in it stops the start', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, '.env', 'LOG_LEVEL=loud\n');
  const { code, stderr } = await runPostern(ANONYMOUS, { cwd });
  expect(code).toBe(1);
  expect(stderr).toContain('LOG_LEVEL: "loud" is not valid');
});

test('§20.1 a command that waits for what never comes ends with exit code 1, and says so', async () => {
  // Standard input that nobody ends, and that keeps nothing alive.
  const preload = `import { Readable } from 'node:stream';
    Object.defineProperty(process, 'stdin', { value: new Readable({ read() {} }) });`;
  const { code, stderr } = await runPostern(
    { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}` },
    { args: ['clients', 'hash', '--secret', '-'] },
  );
  expect([code, stderr]).toEqual([1, expect.stringContaining('did not finish')]);
});
