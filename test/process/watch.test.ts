// postern dev --watch: a new process after each change, which goes on where the last one stopped.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { callTool, catalogModule, writeFileIn } from '../support/catalogs/catalog-files.ts';
import { endPosterns, makeFolder, startPostern } from '../support/gateway/process.ts';
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
  return { ...postern, kill: postern.kill, cwd, said, stderr: () => postern.stderr };
}

test('§2.4 --watch: a change is served at once, and sessions live on', async () => {
  const postern = await watch(catalogModule('one'));
  const session = await openSession(postern.url);
  await writeFileIn(postern.cwd, 'catalog.mjs', catalogModule('two'));
  await expect.poll(postern.said, SOON).toBe('two');
  expect(await checkSession(postern.url, { session })).toBe(200);
  expect(postern.stderr()).toContain('[watch] catalog.mjs changed.');
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
  expect(alone.stderr).not.toContain('[watch]');
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

test('§2.4 --watch: a broken file is said, and does not end it', async () => {
  const postern = await watch(catalogModule('one'));
  await writeFileIn(postern.cwd, 'catalog.mjs', 'export default nothing;\n');
  await expect.poll(postern.stderr, SOON).toContain('catalog.mjs:1:16: nothing is not defined');
  await expect.poll(postern.stderr, SOON).toContain('Ended with exit code 1');
  await writeFileIn(postern.cwd, 'catalog.mjs', catalogModule('mended'));
  await expect.poll(postern.said, SOON).toBe('mended');
});

test('§2.4 --watch: a file in a folder that is new counts, the store’s own do not', async () => {
  const postern = await watch(catalogModule('one'), { DATA_DIR: 'store' });
  await writeFileIn(postern.cwd, 'store/kept.json', '{}');
  await mkdir(join(postern.cwd, 'tools'));
  await writeFileIn(postern.cwd, 'tools/notes.txt', 'no code');
  await writeFileIn(postern.cwd, 'tools/text.mjs', "export const text = 'from below';\n");
  await expect.poll(postern.stderr, SOON).toContain('[watch] tools/text.mjs changed.');
  const importing = catalogModule('?').replace('"?"', 'text');
  await writeFileIn(
    postern.cwd,
    'catalog.mjs',
    `import { text } from './tools/text.mjs';\n${importing}`,
  );
  await expect.poll(postern.said, SOON).toBe('from below');
  await writeFileIn(postern.cwd, 'tools/text.mjs', "export const text = 'from below, again';\n");
  await expect.poll(postern.said, SOON).toBe('from below, again');
  expect(postern.stderr()).not.toMatch(/store\/|notes/);
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
