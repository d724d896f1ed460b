// §10: how a service of several processes (WORKERS) starts, or says once why it does not.
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import { freePort } from '../support/gateway/ports.ts';
import { endPosterns, makeFolder, runPostern, startPostern } from '../support/gateway/process.ts';
import { readRefusal } from '../support/gateway/refused-start.ts';
import { startWorkers } from '../support/gateway/workers.ts';

afterEach(endPosterns);

/** Nobody listens there: a start needs no Redis. */
const WORKERS = {
  AUTH_REQUIRED: 'false',
  HOST: '127.0.0.1',
  REDIS_URL: 'redis://127.0.0.1:9',
  WORKERS: '3',
} as const;

test.each([
  { command: 'start', workers: '2' },
  { command: 'start', workers: 'auto' },
  { command: 'dev', workers: '2' },
])('§10 workers: $command with WORKERS=$workers needs REDIS_URL, and says why', async (row) => {
  const { command, workers } = row;
  const env = { AUTH_REQUIRED: 'false', WORKERS: workers };
  const { code, stdout, stderr } = await runPostern(env, { args: [command] });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toBe(
    `Invalid settings:\n  - WORKERS: ${workers} needs REDIS_URL. Without Redis, sessions and registered clients are kept in DATA_DIR, which only one process can use. Remove WORKERS, or set REDIS_URL, for example REDIS_URL=redis://localhost:6379\n`,
  );
});

test.each(['0', '-1', '1.5', '257', 'all'])(
  '§10 workers: WORKERS=%s is refused',
  async (workers) => {
    expect(await readRefusal({ ...WORKERS, WORKERS: workers })).toEqual([
      `WORKERS: "${workers}" is not valid. It must be auto, or a whole number from 1 to 256.`,
    ]);
  },
);

test('§10 workers: that the port is taken is said once', async () => {
  const other = createServer();
  await new Promise<void>((listening) => other.listen(0, '127.0.0.1', listening));
  const address = other.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const { code, stderr } = await runPostern({ ...WORKERS, PORT: String(port) });
  await new Promise((closed) => other.close(closed));
  expect(code).toBe(1);
  expect(stderr).toMatch(
    new RegExp(`^Postern cannot start:\\n {2}- PORT: port ${port} on .*in use.*\\n$`),
  );
});

test.each([
  { what: 'is missing', file: undefined, says: /^Postern cannot start:\n {2}- .*none\.mjs.*\n$/ },
  { what: 'throws', file: "throw new Error('broken')", says: /broken/ },
  { what: 'is no JavaScript', file: 'export default }', says: /broken\.mjs:1: Unexpected token/ },
])('§10 workers: that the catalogue $what is said once', async ({ file, says }) => {
  const folder = await makeFolder();
  const name = file === undefined ? 'none.mjs' : await writeFileIn(folder, 'broken.mjs', file);
  const env = { ...WORKERS, PORT: String(await freePort()) };
  const args = ['start', '--catalog', join(folder, name)];
  const { code, stderr } = await runPostern(env, { args });
  expect(code).toBe(1);
  expect(stderr).toMatch(says);
  expect(stderr.match(/Postern cannot start/g)).toHaveLength(1);
});

test('§10 workers: one that is killed while it starts is one line', async () => {
  const folder = await makeFolder();
  const killed = await writeFileIn(folder, 'killed.mjs', "process.kill(process.pid, 'SIGKILL')");
  const env = { ...WORKERS, PORT: String(await freePort()) };
  const args = ['start', '--catalog', join(folder, killed)];
  const { code, stderr } = await runPostern(env, { args });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^Postern cannot start:\n {2}- A worker was killed by SIGKILL .*\n$/);
});

test('§5 workers: start-up lines are printed once, other lines name their worker', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, '.env', 'SERVICE_DISPLAY_NAME=Tor');
  const service = await startWorkers({
    count: 3,
    cwd,
    env: { HOST: '0.0.0.0', LOG_LEVEL: 'debug', MCP_RATE_LIMIT: '5' },
  });
  const startLines = service.log().filter(({ worker }) => worker === undefined);
  expect(startLines.map(({ level, msg }) => `${level}: ${msg}`)).toEqual([
    expect.stringMatching(/^info: Read \.env/),
    expect.stringMatching(/^warn: .*MCP_RATE_LIMIT_MAX/),
    expect.stringMatching(/^warn: BASE_URL is not set/),
    expect.stringMatching(/^warn: AUTH_REQUIRED=false/),
    'info: Listening.',
  ]);
  expect(startLines.at(-1)).toMatchObject({ port: service.port, workers: 3 });
  for (let request = 0; request < 6; request += 1) await fetch(`${service.url}/nowhere`);
  const others = () => service.log().filter(({ path }) => path === '/nowhere');
  await expect.poll(() => others().length).toBe(6);
  for (const { worker } of others()) expect([1, 2, 3]).toContain(worker);
});

test('§10 workers: with one, and in dev, the service is one process', async () => {
  for (const [command, workers] of [
    ['start', '1'],
    ['dev', '2'],
  ] as const) {
    const service = await startPostern({ ...WORKERS, WORKERS: workers }, { args: [command] });
    expect(service.stdout).not.toContain('"worker":');
    service.kill('SIGTERM');
    expect(await service.ended).toEqual({ code: 0, signal: null });
  }
});
