// postern dev --watch: a new process after each change, which goes on where the last one stopped.
import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { callTool, catalogModule, writeFileIn } from '../support/catalogs/catalog-files.ts';
import { endPosterns, makeFolder, runPostern, startPostern } from '../support/gateway/process.ts';
import { checkSession, isRefused, openSession } from '../support/gateway/process-http.ts';

const ANONYMOUS = { AUTH_REQUIRED: 'false' } as const;
/** Node starts anew for each change. */
const SOON = { timeout: 20_000 } as const;

afterEach(endPosterns);

async function watch(text: string, env: Readonly<Record<string, string>> = {}) {
  const cwd = await makeFolder();
  await writeFileIn(cwd, 'catalog.mjs', text);
  const args = ['dev', '--catalog', 'catalog.mjs', '--watch'];
  const postern = await startPostern({ ...ANONYMOUS, ...env }, { args, cwd });
  const said = () => callTool(postern.url, 'say').catch(() => 'nobody answers');
  const { stdout, stderr } = { stdout: () => postern.stdout, stderr: () => postern.stderr };
  return { ...postern, kill: postern.kill, cwd, said, stdout, stderr };
}

test('§2.4 --watch: a change is served at once, and sessions live on', async () => {
  const postern = await watch(catalogModule('one'));
  const session = await openSession(postern.url);
  await writeFileIn(postern.cwd, 'catalog.mjs', catalogModule('two'));
  await expect.poll(postern.said, SOON).toBe('two');
  expect(await checkSession(postern.url, { session })).toBe(200);
  await expect
    .poll(postern.stdout)
    .toMatch(/\nReloaded: catalog\.mjs changed\. 2 tools, 1 session kept\.\n$/);
  expect(postern.stdout().split('MCP URL')).toHaveLength(2);
});

test('§2.4 --watch: an editor that puts a new file in the place of the old one is followed, each time', async () => {
  const postern = await watch(catalogModule('one'));
  for (const next of ['two', 'three']) {
    await writeFileIn(postern.cwd, 'catalog.mjs~', catalogModule(next));
    await rename(join(postern.cwd, 'catalog.mjs~'), join(postern.cwd, 'catalog.mjs'));
    await expect.poll(postern.said, SOON).toBe(next);
  }
});

test('§2.4 dev: a catalogue of one’s own is watched without --watch, and not with --no-watch', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, 'catalog.mjs', catalogModule('one'));
  await writeFileIn(cwd, '.env', 'POSTERN_CATALOG=catalog.mjs\n');
  const watched = await startPostern(ANONYMOUS, { args: ['dev'], cwd });
  const alone = await startPostern(ANONYMOUS, { args: ['dev', '--no-watch'], cwd });
  await writeFileIn(cwd, 'catalog.mjs', catalogModule('two'));
  const say = (url: string) => callTool(url, 'say').catch(() => 'nobody answers');
  await expect.poll(() => say(watched.url), SOON).toBe('two');
  expect(await say(alone.url)).toBe('one');
  expect(alone.stdout).not.toContain('Reloaded');
});

test('§2.4 dev: without a catalogue, .env is followed, and the files that it names', async () => {
  const cwd = await makeFolder();
  const postern = await startPostern(ANONYMOUS, { args: ['dev'], cwd });
  await mkdir(join(cwd, 'tools'));
  await writeFileIn(cwd, 'tools/catalog.mjs', catalogModule('one'));
  await writeFileIn(cwd, '.env', 'POSTERN_CATALOG=tools/catalog.mjs\n');
  await expect.poll(() => postern.stdout, SOON).toContain('Reloaded: .env changed. 2 tools.\n');
  await writeFileIn(cwd, 'tools/catalog.mjs', catalogModule('two'));
  await expect
    .poll(() => callTool(postern.url, 'say').catch(() => 'nobody answers'), SOON)
    .toBe('two');
});

test('§2.4 dev: the configuration file is loaded without a restart, and repaired after one', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, 'p.yaml', 'mcpServers: {}\n');
  const postern = await startPostern(ANONYMOUS, { args: ['dev', '--config', 'p.yaml'], cwd });
  await expect.poll(() => postern.stdout).toContain('none in p.yaml');
  await writeFileIn(cwd, 'p.yaml', 'mcpServers: { files: { command: "true" } }\n');
  await expect
    .poll(() => postern.stdout, SOON)
    .toContain(
      'Reloaded: p.yaml changed. 1 server, 1 tool of the gateway itself.\n  Servers   files (runs true)\n',
    );
  await writeFileIn(cwd, 'p.yaml', 'mcpServers: 1\n');
  await writeFileIn(cwd, '.env', 'METRICS_ENABLED=true\n');
  await expect.poll(() => postern.stderr, SOON).toContain('Waiting for a change.');
  await writeFileIn(cwd, 'p.yaml', 'mcpServers: {}\n');
  await expect.poll(() => postern.stdout, SOON).toContain('Reloaded: p.yaml changed. 1 tool.\n');
});

test('§2.4 dev: after a change of the lock alone it names the lock, and after SIGHUP no file', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, 'p.yaml', 'mcpServers: {}\n');
  const args = ['dev', '--no-watch', '--config', 'p.yaml'];
  const postern = await startPostern(ANONYMOUS, { args, cwd });
  await writeFileIn(cwd, 'postern.lock', '{"version":1,"servers":{}}');
  await expect.poll(() => postern.stdout, SOON).toContain('Reloaded: postern.lock changed. ');
  postern.kill('SIGHUP');
  await expect.poll(() => postern.stdout, SOON).toContain('Reloaded. ');
  expect(postern.stdout).not.toContain('p.yaml changed');
});

test('§2.4 dev: where the first start fails, it ends', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, 'catalog.mjs', 'export default nothing;\n');
  const ended = await runPostern(ANONYMOUS, { args: ['dev', '--catalog', 'catalog.mjs'], cwd });
  expect(ended).toMatchObject({ code: 1, stdout: '' });
  expect(ended.stderr).toContain('catalog.mjs:1:16: nothing is not defined');
});

test('§2.4 dev: of a catalogue elsewhere, .env of this folder is watched as well', async () => {
  const elsewhere = await makeFolder();
  const cwd = await makeFolder();
  await writeFileIn(elsewhere, 'catalog.mjs', catalogModule('one'));
  const args = ['dev', '--catalog', `${elsewhere}/catalog.mjs`];
  const postern = await startPostern(ANONYMOUS, { args, cwd });
  await expect.poll(() => postern.stdout).toContain('is running for development');
  await writeFileIn(cwd, '.env', 'METRICS_ENABLED=true\n');
  const status = () =>
    fetch(`${postern.url}/metrics`).then(
      (response) => response.status,
      () => 0,
    );
  await expect.poll(status, SOON).toBe(200);
});

test.each([
  ['has a syntax error', 'export default {;\n', 'catalog.mjs:1'],
  [
    'fails while it is loaded',
    'export default nothing;\n',
    'catalog.mjs:1:16: nothing is not defined',
  ],
])('§2.4 --watch: where a file %s, the next change is waited for', async (_what, text, place) => {
  const postern = await watch(catalogModule('one'));
  const session = await openSession(postern.url);
  await writeFileIn(postern.cwd, 'catalog.mjs', text);
  await expect
    .poll(postern.stderr, SOON)
    .toContain('Ended with exit code 1. Waiting for a change.');
  expect(postern.stderr()).toContain(place);
  await writeFileIn(postern.cwd, 'catalog.mjs', catalogModule('mended'));
  await expect.poll(postern.said, SOON).toBe('mended');
  expect(await checkSession(postern.url, { session })).toBe(200);
});

test('§2.4 --watch: a file that is never done loading is replaced by the next change', async () => {
  const postern = await watch(catalogModule('one'));
  const waiting =
    "console.log('It waits.');\nawait new Promise(() => setInterval(() => {}, 1000));\n";
  await writeFileIn(postern.cwd, 'catalog.mjs', waiting);
  await expect.poll(postern.stdout, SOON).toContain('It waits.');
  await writeFileIn(postern.cwd, 'catalog.mjs', catalogModule('mended'));
  await expect.poll(postern.said, SOON).toBe('mended');
});

test('§2.4 --watch: what fails only while it serves ends it until the next change', async () => {
  const postern = await watch(catalogModule('one'));
  const failing = `setInterval(() => { throw new Error('late'); }, 1);\n`;
  await writeFileIn(postern.cwd, 'catalog.mjs', `${catalogModule('two')}${failing}`);
  await expect.poll(postern.stderr, SOON).toContain('Ended with exit code 1');
  await writeFileIn(postern.cwd, 'catalog.mjs', catalogModule('mended'));
  await expect.poll(postern.said, SOON).toBe('mended');
});

test('§2.4 --watch: code that changes while the configuration file is broken is served once that is repaired', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, 'catalog.mjs', catalogModule('one'));
  await writeFileIn(cwd, 'p.yaml', 'mcpServers: {}\n');
  const args = ['dev', '--catalog', 'catalog.mjs', '--config', 'p.yaml'];
  const postern = await startPostern(ANONYMOUS, { args, cwd });
  const said = () => callTool(postern.url, 'say').catch(() => 'nobody answers');
  await writeFileIn(cwd, 'p.yaml', 'mcpServers: 1\n');
  await writeFileIn(cwd, 'catalog.mjs', catalogModule('two'));
  await expect.poll(() => postern.stderr, SOON).toContain('Waiting for a change.');
  await writeFileIn(cwd, 'p.yaml', 'mcpServers: {}\n');
  await expect.poll(said, SOON).toBe('two');
});

test('§2.4 --watch: a file in a folder that is new counts, the store’s own do not', async () => {
  const postern = await watch(catalogModule('one'), { DATA_DIR: 'store' });
  await writeFileIn(postern.cwd, 'store/kept.json', '{}');
  await mkdir(join(postern.cwd, 'tools'));
  await writeFileIn(postern.cwd, 'tools/notes.txt', 'no code');
  await writeFileIn(postern.cwd, 'tools/text.mjs', "export const text = 'from below';\n");
  await expect.poll(postern.stdout, SOON).toContain('Reloaded: tools/text.mjs changed.');
  const importing = catalogModule('?').replace('"?"', 'text');
  await writeFileIn(
    postern.cwd,
    'catalog.mjs',
    `import { text } from './tools/text.mjs';\n${importing}`,
  );
  await expect.poll(postern.said, SOON).toBe('from below');
  await writeFileIn(postern.cwd, 'tools/text.mjs', "export const text = 'from below, again';\n");
  await expect.poll(postern.said, SOON).toBe('from below, again');
  expect(postern.stdout()).not.toMatch(/store\/|notes/);
});

test('§4.3 --watch: when it is killed, what it runs ends as well', async () => {
  const postern = await watch(catalogModule('one'));
  postern.kill('SIGKILL');
  await expect.poll(() => isRefused(postern.port), SOON).toBe(true);
});

test.each(['SIGTERM', 'SIGINT'] as const)('§4.3 --watch: %s ends all of it', async (signal) => {
  const postern = await watch(catalogModule('one'));
  postern.kill(signal);
  expect(await postern.ended).toEqual({ code: 0, signal: null });
  expect(await isRefused(postern.port)).toBe(true);
});
