// §17: how a service of several processes (WORKERS) ends.
import { afterEach, expect, test } from 'vitest';
import { INITIALIZE_REQUEST } from '../support/gateway/gateway.ts';
import { endPosterns, isGroupAlive, type RunningPostern } from '../support/gateway/process.ts';
import { isRefused, openSession, postHalf } from '../support/gateway/process-http.ts';
import {
  connectToEach,
  isAlive,
  openConnection,
  startWorkers,
  type WorkerConnection,
} from '../support/gateway/workers.ts';

afterEach(endPosterns);

const LONG_DELAY = { SHUTDOWN_DELAY_MS: '600000' } as const;

async function beginShutdown(service: RunningPostern, signal: NodeJS.Signals): Promise<void> {
  service.kill(signal);
  await expect.poll(() => service.stdout, { interval: 5 }).toContain('"Shutting down');
}

async function expectAllGone(service: RunningPostern, workers: readonly WorkerConnection[]) {
  for (const { pid } of workers) await expect.poll(() => isAlive(pid)).toBe(false);
  expect(await isRefused(service.port)).toBe(true);
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  '§17 workers: %s ends all of them with exit code 0, and says so once',
  async (signal) => {
    const service = await startWorkers();
    const workers = await connectToEach(service.port);
    service.kill(signal);
    expect(await service.ended).toEqual({ code: 0, signal: null });
    await expectAllGone(service, workers);
    expect(service.stderr).toBe('');
    const messages = service.log().map(({ level, msg }) => `${level}: ${msg}`);
    expect(messages.slice(-2)).toEqual([
      'info: Shutting down; a second signal stops the process at once.',
      'info: Stopped.',
    ]);
    expect(messages.filter((line) => line.includes('Listening.'))).toHaveLength(1);
  },
);

test('§17 workers: SIGTERM drops no call of those that come and go', async () => {
  const service = await startWorkers({ env: { SHUTDOWN_DELAY_MS: '500' } });
  const session = await openSession(service.url);
  const statuses: number[] = [];
  let isLoaded = false;

  /** One call after the other, until an answer says that its connection closes. */
  async function callUntilClosed(): Promise<void> {
    const connection = await openConnection(service.port);
    for (let isOpen = true; isOpen; ) {
      const answer = await connection.call('works', session);
      await answer.text();
      statuses.push(answer.status);
      isLoaded ||= statuses.length > 100;
      isOpen = answer.headers.connection !== 'close';
    }
    connection.close();
  }
  const clients = Array.from({ length: 16 }, callUntilClosed);
  await expect.poll(() => isLoaded).toBe(true);
  service.kill('SIGTERM');
  await Promise.all(clients);
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(await service.ended).toEqual({ code: 0, signal: null });
});

test('§17 workers: a call whose body is half sent is answered', async () => {
  const service = await startWorkers();
  const calls = await Promise.all(
    Array.from({ length: 4 }, () => postHalf(service.port, '/mcp', INITIALIZE_REQUEST)),
  );
  service.kill('SIGTERM');
  await expect.poll(() => isRefused(service.port)).toBe(true);
  for (const call of calls) expect((await call.finish()).status).toBe(200);
  expect(await service.ended).toEqual({ code: 0, signal: null });
});

test('§17 workers: during the delay none is ready, and all serve', async () => {
  const service = await startWorkers({ env: LONG_DELAY });
  const workers = await connectToEach(service.port);
  await beginShutdown(service, 'SIGTERM');
  for (const worker of workers) {
    const isReady = async () => (await fetch(`${service.url}/health/ready`)).status;
    await expect.poll(isReady).toBe(503);
    const answer = await worker.get('/health');
    expect([answer.status, answer.headers.connection]).toEqual([200, 'close']);
  }
  expect(service.hasEnded).toBe(false);
});

test.each([
  { first: 'SIGTERM', second: 'SIGTERM', code: 143 },
  { first: 'SIGTERM', second: 'SIGINT', code: 130 },
] as const)('§17 workers: $second after $first ends all at once', async (row) => {
  const service = await startWorkers({ env: LONG_DELAY });
  const workers = await connectToEach(service.port);
  await beginShutdown(service, row.first);
  service.kill(row.second);
  expect(await service.ended).toEqual({ code: row.code, signal: null });
  await expectAllGone(service, workers);
});

test('§17 workers: Ctrl+C, which all processes of a terminal receive, is one wish to end', async () => {
  const service = await startWorkers({ npm: true });
  expect(isGroupAlive(service.pid)).toBe(true);
  const call = await postHalf(service.port, '/mcp', INITIALIZE_REQUEST);
  process.kill(-service.pid, 'SIGINT');
  await expect.poll(() => isRefused(service.port)).toBe(true);
  expect((await call.finish()).status).toBe(200);
  expect(await service.ended).toEqual({ code: 0, signal: null });
  await expect.poll(() => isGroupAlive(service.pid)).toBe(false);
});

test('§17 workers: a manager of services that sends SIGTERM to each process ends them cleanly', async () => {
  const service = await startWorkers({ leadsGroup: true });
  const call = await postHalf(service.port, '/mcp', INITIALIZE_REQUEST);
  process.kill(-service.pid, 'SIGTERM');
  await expect.poll(() => isRefused(service.port)).toBe(true);
  expect((await call.finish()).status).toBe(200);
  expect(await service.ended).toEqual({ code: 0, signal: null });
  expect(service.log().filter(({ level }) => level !== 'info')).toEqual([]);
  await expect.poll(() => isGroupAlive(service.pid)).toBe(false);
});

test('§17 workers: when the main process is killed they end by themselves', async () => {
  const service = await startWorkers();
  const workers = await connectToEach(service.port);
  service.kill('SIGKILL');
  await service.ended;
  await expectAllGone(service, workers);
});
