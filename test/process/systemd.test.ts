// docs/deploy.md: the way from postern init to a systemd service, run as it is written there. A stand-in for systemd starts the unit:
// its folder, user, home and environment, with a folder of the gateway that cannot be written.
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, copyFile, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import { codeBlocks, readPage } from '../support/gateway/documentation-pages.ts';
import { freePort } from '../support/gateway/ports.ts';
import { endPosterns, makeFolder, runPostern } from '../support/gateway/process.ts';
import { INSTALLATION_MS } from '../support/tools/npx-tool.ts';

const run = promisify(execFile);
const [, page = ''] = readPage('deploy').split('\n## systemd\n');
const [install = ''] = codeBlocks(page, 'sh');
const [unit = ''] = codeBlocks(page, 'ini');

const IS_ROOT = process.getuid?.() === 0;
/** Of the service: another user than the one who owns its files, where tests run as root. */
const [UID, GID] = IS_ROOT ? [4321, 4321] : [process.getuid?.() ?? 0, process.getgid?.() ?? 0];

/** Values of a key of the unit, in their order. */
const read = (key: string) =>
  [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value);

/** It says what a program behind the gateway finds, in its home. */
const PROGRAM = { command: 'sh', args: ['-c', 'pwd >"$HOME/cwd"; exec cat'] };

afterEach(endPosterns);

test('§20.6 systemd: what postern init wrote runs as the page says, with nothing but its state to write', {
  timeout: INSTALLATION_MS,
}, async () => {
  const place = await makeFolder();
  await chmod(place, 0o755);
  // What the page names, below a folder of the test's own.
  const opt = join(place, 'opt');
  const state = join(place, 'state');
  const gateway = join(place, 'my-gateway');
  const locate = (text: string) =>
    text
      .replaceAll('/opt/postern', opt)
      .replaceAll('/var/lib/postern', state)
      .replaceAll('cp -r my-gateway', `cp -r ${gateway}`)
      .replaceAll('root:postern', `${process.getuid?.()}:${GID}`);

  await mkdir(gateway);
  await writeFileIn(gateway, 'mcp.json', JSON.stringify({ mcpServers: { spy: PROGRAM } }));
  const login = ['--provider', 'other', '--issuer', 'http://127.0.0.1:1', '--client-id', 'c'];
  const address = ['--client-secret', 's', '--base-url', 'https://mcp.example.com'];
  const args = ['init', '--yes', ...login, ...address, '--tool', '--servers', 'mcp.json'];
  const made = await runPostern({}, { args, cwd: gateway });
  expect(made.code, made.stderr).toBe(0);

  const [user = '', ...typed] = install.trim().split('\n').map(locate);
  expect(user).toMatch(/^useradd --system .* postern$/);
  const [, home = ''] = /--home-dir (\S+)/.exec(user) ?? [];
  await run('sh', ['-euc', typed.join('\n')], {
    // All of the environment: a registry may need an authority of NODE_EXTRA_CA_CERTS.
    env: { ...process.env, npm_config_prefer_offline: 'true' },
    timeout: INSTALLATION_MS,
  });
  await run('chmod', ['-R', 'a-w', opt]);
  // StateDirectory=
  expect(read('StateDirectory')).toEqual(['postern']);
  await mkdir(state, { mode: 0o755 });
  await chown(state, UID, GID);

  // The node of the tests may be in a folder that other users cannot read.
  const bin = join(place, 'bin');
  await mkdir(bin);
  await copyFile(process.execPath, join(bin, 'node'));
  await chmod(join(bin, 'node'), 0o755);
  const port = await freePort();
  const set = read('Environment').map((line) => locate(line).split('='));
  const [command = '', ...rest] = (read('ExecStart')[0] ?? '').split(' ');
  const service = spawn(join(bin, command), rest, {
    cwd: locate(read('WorkingDirectory')[0] ?? '/'),
    // Of User=: systemd reads the home from the user database.
    env: {
      PATH: `${bin}:/usr/local/bin:/usr/bin:/bin`,
      HOME: home,
      USER: read('User')[0],
      HOST: '127.0.0.1',
      PORT: String(port),
      ...Object.fromEntries(set),
    },
    ...(IS_ROOT && { uid: UID, gid: GID }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void service.kill('SIGKILL'));
  let printed = '';
  for (const output of [service.stdout, service.stderr])
    output.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  const health = () =>
    fetch(`http://127.0.0.1:${port}/health`).then(
      ({ status }) => status,
      () => printed,
    );
  await expect.poll(health, { timeout: 30_000 }).toBe(200);
  const cwd = () => readFile(join(home, 'cwd'), 'utf8').catch(() => printed);
  await expect.poll(cwd, { timeout: 30_000 }).toBe(`${opt}\n`);
  service.kill('SIGTERM');
  await expect.poll(() => service.exitCode, { timeout: 20_000 }).toBe(0);
  expect(existsSync(join(state, 'oauth-state-secret')), printed).toBe(true);
  // So that the test's folder can be removed.
  await run('chmod', ['-R', 'u+w', opt]);
});
