// The Dockerfile, without an engine: its commands run in folders.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { validate } from 'dockerfile-utils';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callTool } from '../support/catalogs/catalog-files.ts';
import { readDockerfile, readStages } from '../support/deploy/dockerfile.ts';
import { readIgnored } from '../support/deploy/dockerignore.ts';
import { buildImage, type Image, startImage } from '../support/deploy/image.ts';
import { freePort } from '../support/gateway/ports.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const INSTALLATION_MS = 300_000;

let image: Image;
let running: ChildProcess | undefined;

beforeAll(async () => {
  image = await buildImage();
}, INSTALLATION_MS);

afterAll(async () => {
  running?.kill('SIGKILL');
  await rm(dirname(image.folder), { recursive: true, force: true });
}, INSTALLATION_MS);

test('§10 image: the Dockerfile has no mistake that a linter finds', async () => {
  expect(validate(await readDockerfile())).toEqual([]);
});

test('§10 image: starts from images with a version, the LTS, and runs as a user by number', async () => {
  const stages = await readStages();
  const names = stages.map(({ name }) => name);
  const images = stages.map(({ from }) => from).filter((from) => !names.includes(from));
  for (const from of images) expect(from).toMatch(/^node:24-/);
  const [uid = 0] = image.user;
  expect(uid).toBeGreaterThan(0);
});

test('§10 image: has no packages of development, and no program but Node', async () => {
  const packages = await readdir(`${image.folder}/app/node_modules`);
  expect(packages).toEqual(expect.arrayContaining(['ioredis', 'pino', 'lmdb', 'oidc-provider']));
  for (const name of ['typescript', 'vitest', 'esbuild']) expect(packages).not.toContain(name);
  expect(image.healthcheck.at(0)).toBe('node');
});

test('§18.2 image: programs behind the gateway have a home that they can write to', () => {
  // compose.yaml and the chart let /tmp be written, and nothing else but /data.
  expect(image.env.HOME).toBe('/tmp');
});

test.each([
  '.env',
  '.env.production',
  'data/store.mdb',
  '.git/config',
  'node_modules/pino/pino.js',
  'dist/index.js',
])('§10 image: %s stays out of the build', async (path) => {
  expect((await readIgnored(ROOT))(path)).toBe(true);
});

test('§10 image: serves as a user that can write nothing but its volume, and stops at SIGTERM', async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const env = { PORT: String(port), HOST: '127.0.0.1', BASE_URL: url, AUTH_REQUIRED: 'false' };
  const isHealthy = async () => {
    const probe = await startImage(image, env, image.healthcheck);
    const [code] = await once(probe, 'exit');
    return code === 0;
  };
  expect(await isHealthy()).toBe(false);
  running = await startImage(image, env);
  const ended = once(running, 'exit');
  await expect.poll(isHealthy, { interval: 200 }).toBe(true);
  expect(await callTool(url, 'service_ping')).toContain('pong');
  const page = await fetch(`${url}/`, { headers: { accept: 'text/html' } });
  expect(page.status).toBe(200);
  expect(await readdir(`${image.folder}/data`)).toContain('store.mdb');
  running.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});
