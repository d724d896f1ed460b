// §17: a process ends within its time whatever its store does, and its log says what held it up.
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import { INITIALIZE_REQUEST } from '../support/gateway/gateway.ts';
import { endPosterns, makeFolder, startPostern } from '../support/gateway/process.ts';
import { openSession } from '../support/gateway/process-http.ts';
import { connectToEach, startWorkers } from '../support/gateway/workers.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { startRedis } from '../support/stores/redis.ts';

const ANONYMOUS = { AUTH_REQUIRED: 'false' } as const;
const HOLDER = fileURLToPath(new URL('../contract/hold-writer.ts', import.meta.url));

afterEach(endPosterns);

/** A gateway that is writing a session to a store which another process holds. */
async function startHeld() {
  const postern = await startPostern(ANONYMOUS);
  await openSession(postern.url);
  const holder = fork(HOLDER, [join(postern.dataDir, 'store.mdb')], {
    execArgv: ['--import', 'tsx'],
  });
  closeAfterTest({ close: () => void holder.kill('SIGKILL') });
  await once(holder, 'message');
  const answer = fetch(`${postern.url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(INITIALIZE_REQUEST),
  }).catch(() => undefined);
  // Answered behind it: by then that one is with the store.
  await fetch(`${postern.url}/health`);
  return { postern, answer };
}

test('§17 shutdown: a write that never ends holds nothing up for longer than what is in flight', {
  timeout: 60_000,
}, async () => {
  const { postern, answer } = await startHeld();
  postern.kill('SIGTERM');
  expect(await postern.ended).toEqual({ code: null, signal: 'SIGKILL' });
  await answer;
  const errors = postern.log().filter(({ level }) => level === 'error');
  // Before these the store said that it cannot be written.
  expect(errors.slice(-2)).toEqual([
    expect.objectContaining({
      msg: 'The shutdown failed.',
      cause: 'The store did not close within 2 s',
    }),
    expect.objectContaining({
      msg: expect.stringContaining('as a write to store.mdb in DATA_DIR did not end within 1 s'),
    }),
  ]);
});

test('§17 shutdown: a second signal ends a process whose write never ends', {
  timeout: 60_000,
}, async () => {
  const { postern, answer } = await startHeld();
  postern.kill('SIGTERM');
  await expect.poll(() => postern.stdout).toContain('"Shutting down');
  postern.kill('SIGTERM');
  expect(await postern.ended).toEqual({ code: null, signal: 'SIGKILL' });
  await answer;
});

test('§17 shutdown: Redis that never answers holds nothing up', { timeout: 60_000 }, async () => {
  const redis = closeAfterTest(await startRedis());
  const postern = await startPostern({
    ...ANONYMOUS,
    REDIS_URL: redis.url,
    RATE_LIMIT_COUNTING: 'leased',
  });
  await openSession(postern.url);
  redis.freeze();
  postern.kill('SIGTERM');
  expect(await postern.ended).toMatchObject({ signal: null });
});

/** Holds a thread of Node.js up for ever, as a disk that hangs does. */
const HOLD_THREAD = `
import { open } from 'node:fs';
import { createLocalCatalog } from 'postern/define';

open(process.env.FIFO, 'r', () => {});
export default createLocalCatalog({ tools: [] });
`;

test('§17 shutdown: a thread that never ends holds nothing up, and the log says what it is at', {
  timeout: 60_000,
}, async () => {
  const folder = await makeFolder();
  const fifo = join(folder, 'fifo');
  execFileSync('mkfifo', [fifo]);
  const catalog = await writeFileIn(folder, 'catalog.mjs', HOLD_THREAD);
  const postern = await startPostern({
    ...ANONYMOUS,
    POSTERN_CATALOG: join(folder, catalog),
    FIFO: fifo,
  });
  postern.kill('SIGTERM');
  expect(await postern.ended).toEqual({ code: null, signal: 'SIGKILL' });
  expect(postern.log().at(-1)).toMatchObject({
    level: 'error',
    msg: 'This process is killed, as work on a file or folder did not end within 1 s. Look for the cause.',
  });
});

test('§17 workers: one that is blocked is killed, and the log names it', {
  timeout: 90_000,
}, async () => {
  const service = await startWorkers();
  const [blocked] = await connectToEach(service.port);
  const pid = blocked?.pid ?? 0;
  process.kill(pid, 'SIGSTOP');
  service.kill('SIGTERM');
  expect(await service.ended).toEqual({ code: 1, signal: null });
  expect(service.log()).toContainEqual(
    expect.objectContaining({ msg: expect.stringContaining('does not exit, and is killed'), pid }),
  );
});
