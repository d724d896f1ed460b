// §18.1: the configuration file of a process: read at start, and again when it changes.
import { writeFileSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { callTool } from '../support/catalogs/catalog-files.ts';
import {
  endPosterns,
  makeFolder,
  type Postern,
  runPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';
import { connectToEach, startWorkers } from '../support/gateway/workers.ts';

afterEach(endPosterns);

const SERVER = fileURLToPath(new URL('../support/upstreams/scripted-server.mjs', import.meta.url));

const ANONYMOUS = { AUTH_REQUIRED: 'false' } as const;

/** Off: nothing has to run behind the gateway to read a file. */
const GOOD = '{ "mcpServers": { "files": { "command": "true", "disabled": true } } }';
const BAD = `{
  // Two of three lines are wrong.
  "mcpServers": {
    "github": { "url": "https://github.example/mcp", "headers": { "Authorization": "Bearer hunter2\\n" } },
    "files": { "comand": "npx" }
  }
}`;

const PROBLEMS = [
  expect.stringMatching(/^mcp\.json:4: mcpServers\.github\.headers\.Authorization: .*line break/),
  'mcp.json:5: mcpServers.files: "comand" is not known. Did you mean command?',
  expect.stringMatching(/^mcp\.json:5: mcpServers\.files: "command" or "url" is missing/),
];

async function makeFolderWith(text: string): Promise<string> {
  const folder = await makeFolder();
  await writeFile(join(folder, 'mcp.json'), text);
  return folder;
}

const linesWith = (postern: Postern, start: string) =>
  postern.log().filter(({ msg }) => msg.startsWith(start));

test.each(['start', 'dev'])(
  '§18.1 file: %s prints all problems of it, and ends with exit code 1',
  async (command) => {
    const cwd = await makeFolderWith(BAD);
    const args = [command, '--config', 'mcp.json'];
    const postern = await runPostern(ANONYMOUS, { args, cwd });
    expect(postern.code).toBe(1);
    const [heading, ...lines] = postern.stderr.trimEnd().split('\n');
    expect(heading).toBe('Postern cannot start:');
    expect(lines.map((line) => line.replace(/^ {2}- /, ''))).toEqual(PROBLEMS);
    expect(postern.stdout + postern.stderr).not.toContain('hunter2');
  },
);

test.each([
  { what: 'is not there', name: 'other.json', says: 'other.json: there is no such file (' },
  { what: 'is a folder', name: '.', says: '.: this is a folder.' },
  {
    what: 'is code',
    name: 'catalog.mjs',
    says: 'catalog.mjs: Postern reads JSON and YAML here. Pass your own tools',
  },
  { what: 'is TOML', name: 'config.toml', says: 'config.toml: Postern reads JSON and YAML' },
  { what: 'is in UTF-16', name: 'utf16.json', says: 'utf16.json: the file is not in UTF-8.' },
])('§18.1 file: one that $what is one line', async ({ name, says }) => {
  const cwd = await makeFolder();
  await writeFile(join(cwd, 'utf16.json'), Buffer.from(`\uFEFF${GOOD}`, 'utf16le'));
  const postern = await runPostern({ ...ANONYMOUS, POSTERN_CONFIG: name }, { cwd });
  expect(postern.code).toBe(1);
  expect(postern.stderr.split('\n')).toEqual([
    'Postern cannot start:',
    expect.stringContaining(`  - ${says}`),
    '',
  ]);
});

test('§18.1 file: --config wins over POSTERN_CONFIG, and the log says what was read', async () => {
  const cwd = await makeFolderWith(GOOD.replace('true }', 'true, "autoApprove": [] }'));
  await writeFile(join(cwd, 'mcp.yaml'), 'mcpServers: {}\ninputs: []\n');
  const env = { ...ANONYMOUS, POSTERN_CONFIG: 'mcp.json' };
  const postern = await startPostern(env, { args: ['start', '--config', 'mcp.yaml'], cwd });
  expect(linesWith(postern, 'Read the configuration file.')).toEqual([
    expect.objectContaining({ path: 'mcp.yaml', servers: [], rules: 0 }),
  ]);
  expect(linesWith(postern, 'mcp.yaml: these members')).toEqual([
    expect.objectContaining({ level: 'warn', msg: expect.stringMatching(/ignored: inputs\.$/) }),
  ]);
});

const SHARED = { command: process.execPath, args: [SERVER] };
const SERVERS = { wiki: { url: 'http://127.0.0.1:9/mcp' }, files: SHARED };

test('§18.5 rules: servers without rules are warned of in production, and so are processes that users share', async () => {
  const cwd = await makeFolderWith(JSON.stringify({ mcpServers: SERVERS }));
  const env = { ...ANONYMOUS, NODE_ENV: 'production' };
  const postern = await startPostern(env, { args: ['start', '--config', 'mcp.json'], cwd });
  expect(linesWith(postern, 'mcp.json: There are no rules.')).toEqual([
    expect.objectContaining({
      level: 'warn',
      msg: expect.stringMatching(
        /may use everything that these servers offer: wiki, files\. .*cannot tell them apart: files .*"rules": "everyone"/,
      ),
    }),
  ]);
});

test.each([
  { what: 'outside production', NODE_ENV: 'development', file: { mcpServers: SERVERS } },
  {
    what: 'where it is meant',
    NODE_ENV: 'production',
    file: { mcpServers: SERVERS, rules: 'everyone' },
  },
  { what: 'without servers', NODE_ENV: 'production', file: {} },
  {
    what: 'with rules',
    NODE_ENV: 'production',
    file: { mcpServers: SERVERS, rules: [{ who: 'everyone', may: ['wiki__*'] }] },
  },
])('§18.5 rules: nothing is said of missing rules $what', async ({ NODE_ENV, file }) => {
  const cwd = await makeFolderWith(JSON.stringify(file));
  const { stdout } = await runInside(
    { ...ANONYMOUS, NODE_ENV },
    { args: ['config', '--config', 'mcp.json'], cwd },
  );
  expect(stdout).toContain('mcp.json');
  expect(stdout).not.toContain('There are no rules');
});

test('§18.1 file: SIGHUP with a file that has problems keeps the running one and says why', async () => {
  const cwd = await makeFolderWith(GOOD);
  const postern = await startPostern(ANONYMOUS, { args: ['start', '--config', 'mcp.json'], cwd });
  await writeFile(join(cwd, 'mcp.json'), BAD);
  postern.kill('SIGHUP');
  await expect
    .poll(() => linesWith(postern, 'The configuration file has problems'))
    .toContainEqual(expect.objectContaining({ level: 'error', problems: PROBLEMS }));
  expect((await fetch(`${postern.url}/health/ready`)).status).toBe(200);
  expect(postern.stdout).not.toContain('hunter2');

  await writeFile(join(cwd, 'mcp.json'), '{ "builtIn": true }');
  postern.kill('SIGHUP');
  await expect
    .poll(() => linesWith(postern, 'Reloaded the configuration file.'))
    .toContainEqual(expect.objectContaining({ servers: [], rules: 0 }));
  postern.kill('SIGTERM');
  expect(await postern.ended).toEqual({ code: 0, signal: null });
});

test('§18.1 file: a change is loaded by itself, also when another file replaces it', async () => {
  const cwd = await makeFolderWith(GOOD);
  const postern = await startPostern(ANONYMOUS, { args: ['start', '--config', 'mcp.json'], cwd });
  const rule = { who: 'everyone', may: ['*'] };
  await writeFile(join(cwd, 'new.json'), JSON.stringify({ rules: [rule] }));
  await rename(join(cwd, 'new.json'), join(cwd, 'mcp.json'));
  await expect
    .poll(() => linesWith(postern, 'Reloaded the configuration file.'))
    .toEqual([expect.objectContaining({ rules: 1 })]);
});

test('§18.1 file: the servers of a changed file are served, and those that it lacks are gone', async () => {
  const server = { command: process.execPath, args: [SERVER], env: { MINE: '${SECRET}' } };
  const cwd = await makeFolderWith(JSON.stringify({ mcpServers: { one: server } }));
  const env = { ...ANONYMOUS, SECRET: 'hunter2', OTHER: 'x' };
  const postern = await startPostern(env, { args: ['start', '--config', 'mcp.json'], cwd });
  await expect.poll(() => callTool(postern.url, 'one__env')).toContain('"MINE":"hunter2"');
  expect(await callTool(postern.url, 'one__env')).not.toContain('OTHER');
  expect(await callTool(postern.url, 'service_ping')).toContain('pong');

  const changed = { mcpServers: { two: { ...server, prefix: '2' } }, builtIn: false };
  await writeFile(join(cwd, 'mcp.json'), JSON.stringify(changed));
  postern.kill('SIGHUP');
  await expect.poll(() => callTool(postern.url, '2__env')).toContain('"MINE":"hunter2"');
  for (const name of ['one__env', 'service_ping'])
    expect(await callTool(postern.url, name)).toMatchObject({ code: -32602 });
  expect(postern.stdout).not.toContain('hunter2');
});

test('§18.1 file: what is wrong with a rule is told with its place', async () => {
  const rules = [{ when: 'nonsense(', may: ['tool:x'] }];
  const cwd = await makeFolderWith(JSON.stringify({ rules }));
  const postern = await runPostern({ ...ANONYMOUS, POSTERN_CONFIG: 'mcp.json' }, { cwd });
  expect(postern.code).toBe(1);
  expect(postern.stderr).toMatch(
    / {2}- mcp\.json:1: rules\[0\]: may: "tool:x" begins with an unknown kind/,
  );
  expect(postern.stderr).toMatch(/ {2}- mcp\.json:1: rules\[0\]: when: /);
});

test('§18.7 lock: one that cannot be read stops the start, and keeps the running one', async () => {
  const cwd = await makeFolderWith(GOOD);
  const args = ['start', '--config', 'mcp.json'];
  const postern = await startPostern(ANONYMOUS, { args, cwd });
  await writeFile(join(cwd, 'postern.lock'), 'nonsense');
  await expect
    .poll(() => linesWith(postern, 'The configuration file has problems'))
    .toEqual([expect.objectContaining({ problems: [expect.stringContaining('postern.lock')] })]);
  const other = await runPostern(ANONYMOUS, { args, cwd });
  expect(other.code).toBe(1);
  expect(other.stderr).toMatch(/^Postern cannot start:\n {2}- .*postern\.lock/);
});

const RULES = '"rules": [{ "who": { "groups": ["staff"] }, "may": ["*"] }]';
const REFUSED = 'The configuration file was not loaded, because it has lost protections';
const RELOADED = 'Reloaded the configuration file.';

test('§18.1 file: a change that loses all rules is not loaded, until it says that this is meant', async () => {
  const cwd = await makeFolderWith(`{ ${RULES} }`);
  const args = ['start', '--config', 'mcp.json'];
  const postern = await startPostern(ANONYMOUS, { args, cwd });
  expect(await callTool(postern.url, 'service_ping')).toMatchObject({ code: -32602 });

  await writeFile(join(cwd, 'mcp.json'), '{ "mcpServers": {} }');
  postern.kill('SIGHUP');
  await expect
    .poll(() => linesWith(postern, REFUSED))
    .toContainEqual(
      expect.objectContaining({
        level: 'error',
        path: 'mcp.json',
        lost: [expect.stringMatching(/^All rules are gone\. .*"rules": "everyone"/)],
      }),
    );
  expect(await callTool(postern.url, 'service_ping')).toMatchObject({ code: -32602 });

  await writeFile(join(cwd, 'mcp.json'), '{ "rules": "everyone" }');
  postern.kill('SIGHUP');
  await expect
    .poll(() => linesWith(postern, RELOADED))
    .toContainEqual(expect.objectContaining({ rules: 'everyone' }));
  expect(await callTool(postern.url, 'service_ping')).toContain('pong');
});

test('§18.1 file: one that asks before less is not loaded, until it says that this is meant; a pattern that was misspelled is corrected without', async () => {
  const ofServer = { mcpServers: { one: { command: process.execPath, args: [SERVER] } } };
  const asking = (pattern: string, more: object = {}) =>
    JSON.stringify({
      ...ofServer,
      rules: [
        { who: 'everyone', may: ['*'] },
        { who: 'everyone', may: [pattern], ask: 'user' },
      ],
      ...more,
    });
  const cwd = await makeFolderWith(asking('one__env'));
  const postern = await startPostern(ANONYMOUS, { args: ['start', '--config', 'mcp.json'], cwd });
  // Its list has come by then; nobody can be asked.
  await expect.poll(() => callTool(postern.url, 'one__env')).not.toMatchObject({ code: -32602 });
  const load = async (text: string, msg: string, count: number) => {
    await writeFile(join(cwd, 'mcp.json'), text);
    postern.kill('SIGHUP');
    await expect.poll(() => linesWith(postern, msg).length).toBeGreaterThanOrEqual(count);
    return linesWith(postern, msg).at(-1);
  };
  expect(await load(asking('one__enw'), REFUSED, 1)).toMatchObject({
    level: 'error',
    lost: [
      expect.stringMatching(
        /^The "ask" for "one__env" \(before: mcp\.json:1, rules\[1\]\) is gone or matches nothing, .* "allowFewerProtections": true /,
      ),
    ],
  });
  expect(await callTool(postern.url, 'one__env')).not.toContain('PATH');

  await load(asking('one__enw', { allowFewerProtections: true }), RELOADED, 1);
  expect(await callTool(postern.url, 'one__env')).toContain('PATH');
  await expect
    .poll(() => linesWith(postern, 'mcp.json:1, rules[1]: no tool is called "one__enw"'))
    .toEqual([
      expect.objectContaining({
        level: 'warn',
        msg: expect.stringContaining('Did you mean "one__env"?'),
      }),
    ]);

  await load(asking('one__env'), RELOADED, 2);
  expect(await callTool(postern.url, 'one__env')).not.toContain('PATH');
});

test('§18.1 file: one in which a server has another name, so that its pattern asks about nothing, is not loaded', async () => {
  const naming = (name: string) =>
    JSON.stringify({
      mcpServers: { [name]: { command: process.execPath, args: [SERVER] } },
      rules: [
        { who: 'everyone', may: ['*'] },
        { who: 'everyone', may: ['on?__env'], ask: 'user' },
      ],
    });
  const cwd = await makeFolderWith(naming('one'));
  const postern = await startPostern(ANONYMOUS, { args: ['start', '--config', 'mcp.json'], cwd });
  await expect.poll(() => callTool(postern.url, 'one__env')).not.toMatchObject({ code: -32602 });
  // Under its new name it has not listed anything.
  await writeFile(join(cwd, 'mcp.json'), naming('two'));
  postern.kill('SIGHUP');
  await expect
    .poll(() => linesWith(postern, REFUSED))
    .toContainEqual(
      expect.objectContaining({ lost: [expect.stringMatching(/^The "ask" for "on\?__env"/)] }),
    );
  expect(await callTool(postern.url, 'one__env')).not.toContain('PATH');
});

test('§18.1 file: a start without rules serves, as nothing is lost', async () => {
  const cwd = await makeFolderWith('{ "rules": "everyone" }');
  const postern = await startPostern(ANONYMOUS, { args: ['start', '--config', 'mcp.json'], cwd });
  expect(await callTool(postern.url, 'service_ping')).toContain('pong');
});

test('§18.1 file: YAML without its end is not loaded while it is being written', async () => {
  const cwd = await makeFolder();
  const path = join(cwd, 'mcp.yaml');
  await writeFile(path, 'builtIn: true\n');
  const postern = await startPostern(ANONYMOUS, { args: ['start', '--config', 'mcp.yaml'], cwd });
  await writeFile(path, 'builtIn: false\n');
  postern.kill('SIGHUP');
  await expect
    .poll(() => linesWith(postern, 'The configuration file is being written.'))
    .toContainEqual(expect.objectContaining({ level: 'info', path: 'mcp.yaml' }));
  expect(linesWith(postern, RELOADED)).toEqual([]);
  expect(await callTool(postern.url, 'service_ping')).toContain('pong');
  await expect.poll(() => linesWith(postern, RELOADED)).toHaveLength(1);
  expect(await callTool(postern.url, 'service_ping')).toMatchObject({ code: -32602 });
});

test('§18.1 file: YAML that ends with its document end is loaded at once', async () => {
  const cwd = await makeFolder();
  const path = join(cwd, 'mcp.yaml');
  await writeFile(path, 'builtIn: true\n');
  const postern = await startPostern(ANONYMOUS, { args: ['start', '--config', 'mcp.yaml'], cwd });
  await writeFile(path, 'builtIn: false\n... # whole\n\n');
  postern.kill('SIGHUP');
  await expect.poll(() => linesWith(postern, RELOADED)).not.toEqual([]);
  expect(linesWith(postern, 'The configuration file is being written.')).toEqual([]);
});

test('§18.7 lock: one that is removed stays in force, until an empty one says that this is meant', async () => {
  const servers = { one: { command: process.execPath, args: [SERVER] } };
  const cwd = await makeFolderWith(JSON.stringify({ mcpServers: servers }));
  const lockPath = join(cwd, 'postern.lock');
  await writeFile(lockPath, '{ "version": 1, "servers": {} }');
  const postern = await startPostern(ANONYMOUS, { args: ['start', '--config', 'mcp.json'], cwd });
  await rm(lockPath);
  await expect
    .poll(() => linesWith(postern, REFUSED))
    .toContainEqual(
      expect.objectContaining({
        level: 'error',
        lost: [expect.stringMatching(/^postern\.lock is gone\. .* that contains \{\}\.$/)],
      }),
    );
  expect(await callTool(postern.url, 'one__env')).toMatchObject({ code: -32602 });

  await writeFile(lockPath, '{}\n');
  await expect.poll(() => linesWith(postern, RELOADED)).toHaveLength(1);
  await expect.poll(() => callTool(postern.url, 'one__env')).toContain('PATH');

  await rm(lockPath);
  await expect.poll(() => linesWith(postern, RELOADED)).toHaveLength(2);
});

test('§18.6 file: what auth needs of the settings is told at start', async () => {
  const auth = { type: 'token-exchange', audience: 'wiki' };
  const servers = { wiki: { url: 'https://wiki.example', auth } };
  const cwd = await makeFolderWith(JSON.stringify({ mcpServers: servers }));
  const postern = await runPostern({ ...ANONYMOUS, POSTERN_CONFIG: 'mcp.json' }, { cwd });
  expect(postern.code).toBe(1);
  expect(postern.stderr).toMatch(
    / {2}- mcp\.json: Server wiki: auth token-exchange needs the token/,
  );
});

test('§18.1 file: without one, SIGHUP ends the process, as it ever did', async () => {
  const postern = await startPostern(ANONYMOUS);
  postern.kill('SIGHUP');
  expect(await postern.ended).toEqual({ code: null, signal: 'SIGHUP' });
});

test('§18.1 file: with WORKERS it is read once for the log, and each worker loads it anew', async () => {
  const cwd = await makeFolderWith(GOOD.replace('true }', 'true, "autoApprove": [] }'));
  const env = { POSTERN_CONFIG: join(cwd, 'mcp.json') };
  const postern = await startWorkers({ env });
  expect(linesWith(postern, 'Read the configuration file.')).toHaveLength(1);
  await writeFile(join(cwd, 'mcp.json'), '{ "mcpServers": {} }');
  postern.kill('SIGHUP');
  await expect
    .poll(() => linesWith(postern, 'Reloaded the configuration file.').map(({ worker }) => worker))
    .toEqual(expect.arrayContaining([1, 2]));
  expect((await fetch(`${postern.url}/health`)).status).toBe(200);
});

test('§18.1 file: a worker that takes the place of another does not serve with less than the others', async () => {
  const rules = [{ who: 'everyone', may: ['who'] }];
  const cwd = await makeFolderWith(JSON.stringify({ rules }));
  const path = join(cwd, 'mcp.json');
  const postern = await startWorkers({ env: { POSTERN_CONFIG: path } });
  await writeFile(path, '{ "mcpServers": {} }');
  await expect.poll(() => linesWith(postern, REFUSED)).toHaveLength(2);
  const [one, other] = await connectToEach(postern.port);
  process.kill(Number(one?.pid), 'SIGKILL');
  await expect.poll(() => postern.stderr).toContain(`  - ${path}: All rules are gone.`);
  expect(await callTool(postern.url, 'who')).toBe(String(other?.pid));
  expect(await callTool(postern.url, 'works')).toMatchObject({ code: -32602 });

  await writeFile(path, '{ "rules": "everyone" }');
  await expect
    .poll(() => linesWith(postern, 'A new worker is serving.'), { timeout: 20_000 })
    .toHaveLength(1);
  await expect.poll(() => linesWith(postern, RELOADED)).not.toEqual([]);
  expect(await callTool(postern.url, 'works')).toMatch(/^\d+$/);
});

test('§18.1 file: a worker that takes the place of another does not read YAML that is being written', async () => {
  const cwd = await makeFolder();
  const path = join(cwd, 'mcp.yaml');
  const cut = 'rules:\n  - { who: everyone, may: [who] }\n  - who: everyone\n    may: [works]\n';
  const whole = `${cut}    when: args.secret == 'given'\n`;
  await writeFile(path, whole);
  const postern = await startWorkers({ env: { POSTERN_CONFIG: path } });
  const [one] = await connectToEach(postern.port);
  let writes = 0;
  const writing = setInterval(() => {
    writes += 1;
    writeFileSync(path, `${cut}${'#'.repeat(writes)}`);
  }, 200);
  try {
    await expect.poll(() => writes).toBeGreaterThan(0);
    process.kill(Number(one?.pid), 'SIGKILL');
    await expect.poll(() => writes, { timeout: 20_000 }).toBeGreaterThan(30);
    expect(linesWith(postern, 'A new worker is serving.')).toEqual([]);
  } finally {
    clearInterval(writing);
  }
  await writeFile(path, whole);
  await expect
    .poll(() => linesWith(postern, 'A new worker is serving.'), { timeout: 20_000 })
    .toHaveLength(1);
  for (let calls = 0; calls < 4; calls += 1)
    expect(await callTool(postern.url, 'works')).toMatchObject({ code: -32602 });
});

test('§18.1 file: with WORKERS a file that has problems is printed once', async () => {
  const cwd = await makeFolderWith(BAD);
  const env = { ...ANONYMOUS, WORKERS: '2', REDIS_URL: 'redis://127.0.0.1:1' };
  const postern = await runPostern(env, { args: ['start', '--config', 'mcp.json'], cwd });
  expect(postern.code).toBe(1);
  expect(postern.stderr.trimEnd().split('\n')).toHaveLength(1 + PROBLEMS.length);
});

test('§18.1 file: what dev prints names the servers and where a client is told of them', async () => {
  const cwd = await makeFolder();
  const servers = {
    wiki: { url: 'https://wiki.example/mcp?key=hunter2' },
    files: { command: 'true', args: ['hunter2'] },
  };
  const views = { research: { title: 'Research' }, all: {} };
  await writeFile(join(cwd, 'mcp.json'), JSON.stringify({ mcpServers: servers, views }));
  const postern = await startPostern(ANONYMOUS, { args: ['dev', '--config', 'mcp.json'], cwd });
  await expect.poll(() => postern.stdout).toContain('Press Ctrl+C to stop.');
  expect(postern.stdout).toMatch(
    /\n {2}Views {5}http:\S+\/mcp\/research \(Research\)\n {12}http:\S+\/mcp\/all\n/,
  );
  expect(postern.stdout).toContain(
    '  Servers   wiki (at wiki.example)\n            files (runs true)\n',
  );
  expect(postern.stdout).toContain('with a command, replacing its entries for these servers:');
  expect(postern.stdout).toMatch(/A single server: http:\/\/localhost:\d+\/mcp\/wiki /);
  expect(postern.stdout).not.toContain('hunter2');
});
