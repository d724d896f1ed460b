// §17: npm start and npm run dev hand signals on and leave nothing behind.
import { spawn, spawnSync } from 'node:child_process';
import { cp, mkdir } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import { freePort } from '../support/gateway/ports.ts';
import {
  endPosterns,
  isGroupAlive,
  linkCheckout,
  makeFolder,
  startPostern,
} from '../support/gateway/process.ts';
import { checkSession, isRefused, openSession } from '../support/gateway/process-http.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { startUpstream } from '../support/oauth/upstream.ts';

const ANONYMOUS = { AUTH_REQUIRED: 'false' } as const;
/** npm itself takes its time. */
const SLOW = { timeout: 60_000 } as const;

afterEach(endPosterns);

test(
  '§4.3 npm start: SIGTERM reaches the service, which finishes its work and exits with 0',
  SLOW,
  async () => {
    const upstream = closeAfterTest(await startUpstream());
    const held: ServerResponse[] = [];
    upstream.answer((res) => void held.push(res));
    const npm = await startPostern(
      { ...ANONYMOUS, OIDC_ISSUER: upstream.url, OAUTH_TOKEN_URL: `${upstream.url}/token` },
      { npm: true },
    );
    const token = fetch(`${npm.url}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: 'r',
        client_id: 'c',
      }),
    });
    await expect.poll(() => held.length, { timeout: 10_000 }).toBe(1);
    npm.kill('SIGTERM');
    await expect.poll(() => isRefused(npm.port), { timeout: 10_000 }).toBe(true);
    held[0]?.end('{}');
    expect((await token).status).toBe(200);
    expect(await npm.ended).toEqual({ code: 0, signal: null });
    expect(isGroupAlive(npm.pid)).toBe(false);
  },
);

test.each([
  { script: 'start', signal: 'SIGTERM' },
  { script: 'start', signal: 'SIGINT' },
  { script: 'dev', signal: 'SIGTERM' },
  { script: 'dev', signal: 'SIGINT' },
] as const)(
  '§4.3 npm: $signal ends npm run $script with exit code 0, all of it',
  SLOW,
  async ({ script, signal }) => {
    const npm = await startPostern(ANONYMOUS, { npm: true, args: [script] });
    expect(isGroupAlive(npm.pid)).toBe(true);
    // A terminal sends Ctrl+C to all of a group; a container sends SIGTERM to its first process.
    if (signal === 'SIGINT') process.kill(-npm.pid, signal);
    else npm.kill(signal);
    await expect.poll(() => isGroupAlive(npm.pid), { timeout: 20_000 }).toBe(false);
    expect(await npm.ended).toEqual({ code: 0, signal: null });
    expect(await isRefused(npm.port)).toBe(true);
    // What it held is free: the next one has the same folder.
    const next = await startPostern({ ...ANONYMOUS, DATA_DIR: npm.dataDir });
    expect(await checkSession(next.url, { session: await openSession(next.url) })).toBe(200);
  },
);

test.each(['start', 'dev'])(
  '§4.3 npx: postern %s ends once npx was ended',
  SLOW,
  async (command) => {
    const port = await freePort();
    const cwd = linkCheckout();
    const npx = spawn('npx', ['postern', command, '--port', String(port)], {
      cwd,
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        HOST: '127.0.0.1',
        DATA_DIR: await makeFolder(),
        ...ANONYMOUS,
      },
      stdio: 'ignore',
    });
    onTestFinished(() => void npx.kill('SIGKILL'));
    await expect.poll(() => isRefused(port), { timeout: 30_000 }).toBe(false);
    npx.kill('SIGTERM');
    await expect.poll(() => isRefused(port), { timeout: 20_000 }).toBe(true);
  },
);

test('§5 npm start: a start that fails fails npm, too, and says why', SLOW, async () => {
  const npm = await startPostern({ PORT: '0' }, { npm: true }).catch(String);
  expect(npm).toMatch(/PORT: "0" is not valid/);
  expect(npm).toMatch(/OIDC_ISSUER is missing/);
});

test('§9 npm run build: packages that are not those of package-lock.json are one line', async () => {
  const checkout = await makeFolder();
  const script = fileURLToPath(new URL('../../scripts/build.mjs', import.meta.url));
  await cp(script, join(checkout, 'scripts', 'build.mjs'));
  for (const name of ['src', 'node_modules']) await mkdir(join(checkout, name));
  for (const tool of ['typescript', 'tsx', 'esbuild', 'rollup', 'vitepress'])
    await mkdir(join(checkout, 'node_modules', tool));
  const wanted = { '': {}, 'node_modules/a': { version: '2.0.0' }, b: { optional: true } };
  await writeFileIn(checkout, 'package-lock.json', JSON.stringify({ packages: wanted }));
  const installed = { packages: { 'node_modules/a': { version: '1.0.0' } } };
  await writeFileIn(checkout, 'node_modules/.package-lock.json', JSON.stringify(installed));
  const built = spawnSync(process.execPath, ['scripts/build.mjs'], { cwd: checkout });
  expect(built.status).toBe(1);
  expect(String(built.stderr)).toBe(
    'The build failed: node_modules does not match package-lock.json (a is 1.0.0, and has to be 2.0.0). Run: npm ci\n',
  );
});
