// examples/starter: npm create makes a folder, whose own tests and scripts work with the package.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { statelessRequest } from '../support/clients/stateless.ts';
import { npm, pack, packCheckout, ROOT } from '../support/deploy/pack.ts';
import { freePort } from '../support/gateway/ports.ts';
import { endPosterns, launch } from '../support/gateway/process.ts';
import { logIn } from '../support/gateway/process-login.ts';

const INSTALLATION_MS = 300_000;

let place: string;
let project: string;
let starter: string;
let made: Awaited<ReturnType<typeof create>>;

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'postern-starter-'));
  project = join(place, 'My Gateway');
  const postern = await packCheckout(place);
  starter = await pack(join(ROOT, 'examples', 'starter'), place);
  made = await create(project, '--postern', postern);
}, INSTALLATION_MS);
afterEach(endPosterns);
afterAll(() => rm(place, { recursive: true, force: true }));

/** What npm create does, with the package of this checkout. */
const create = (...args: readonly string[]) =>
  npm(
    place,
    'exec',
    '--yes',
    '--prefer-offline',
    '--package',
    starter,
    '--',
    'create-postern',
    ...args,
  );

test('§9 starter: npm create makes a project of its own name, with what postern init writes', async () => {
  expect(await readdir(project)).toEqual(
    expect.arrayContaining(['.env', '.gitignore', 'catalog.mjs', 'node_modules', 'postern.yaml']),
  );
  const manifest = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'));
  expect(manifest).toMatchObject({
    name: 'my-gateway',
    private: true,
    scripts: { dev: 'postern dev --catalog catalog.mjs --config postern.yaml' },
  });
  for (const typed of ['npm test', 'npm run dev', 'All of it in the folder: cd '])
    expect(made.stdout).toContain(typed);
});

test('§9 starter: its own tests pass, and fail when the tool is wrong', async () => {
  const { stdout } = await npm(project, 'test');
  expect(stdout).toMatch(/pass 2\b/);
  const wrong = { ...process.env, NODE_OPTIONS: '--import data:text/javascript,Math.random=()=>9' };
  await expect(promisify(execFile)('npm', ['test'], { cwd: project, env: wrong })).rejects.toThrow(
    'npm test',
  );
});

test('§5 starter: npm run dev serves its tool to a user who logs in', async () => {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const env = { DATA_DIR: join(place, 'data') };
  launch(env, { npm: true, cwd: project, args: ['dev', '--', '--port', String(port)] });
  const answers = () =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  await expect.poll(answers, { timeout: 30_000 }).toBe(true);
  const { accessToken } = await logIn(url, 'ada');
  const { message, headers } = statelessRequest('tools/call', {
    name: 'roll_dice',
    arguments: { sides: 4 },
  });
  const answer = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${accessToken}`,
      ...headers,
    },
    body: JSON.stringify(message),
  });
  const { result } = JSON.parse(await answer.text());
  expect(result.content[0].text).toMatch(/^ada rolled [1-4]$/);
});

test.each([
  [['project'], 'is there already, and not empty'],
  [[], 'One folder is needed.'],
  [['other', '--postgres'], "Unknown option '--postgres'"],
  [['other', '--postern', 'none.tgz'], 'there is no file none.tgz'],
])('§9 starter: create-postern %j is refused', async (args, problem) => {
  const main = join(ROOT, 'examples', 'starter', 'create.mjs');
  await mkdir(join(place, 'project', 'src'), { recursive: true });
  await expect(
    promisify(execFile)(process.execPath, [main, ...args], { cwd: place }),
  ).rejects.toThrow(problem);
});

test.each([
  { what: 'a folder of its own', folder: 'new', isThere: false },
  { what: 'what it put into an empty folder', folder: 'empty', isThere: true },
])('§9 starter: Ctrl+C takes $what away again', async ({ folder, isThere }) => {
  const bin = join(place, 'bin');
  await mkdir(bin, { recursive: true });
  await writeFile(join(bin, 'npm'), '#!/bin/sh\necho installing\nexec sleep 60\n', { mode: 0o755 });
  if (isThere) await mkdir(join(place, folder));
  const main = join(ROOT, 'examples', 'starter', 'create.mjs');
  // As a terminal does it: the signal is for the whole group.
  const created = spawn(process.execPath, [main, folder], {
    cwd: place,
    env: { ...process.env, PATH: `${bin}:${process.env.PATH}` },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const output of [created.stdout, created.stderr])
    output.setEncoding('utf8').on('data', (piece: string) => {
      printed += piece;
    });
  await expect.poll(() => printed).toContain('installing');
  process.kill(-Number(created.pid), 'SIGINT');
  const [code] = await once(created, 'close');
  expect([code, printed]).toEqual([
    130,
    expect.stringContaining(`Stopped. What was made in ${folder} is removed`),
  ]);
  expect(existsSync(join(place, folder))).toBe(isThere);
  if (isThere) expect(await readdir(join(place, folder))).toEqual([]);
});
