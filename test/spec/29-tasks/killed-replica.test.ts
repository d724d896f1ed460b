// A replica that is killed says nothing any more: what it ran is given up, and counts no longer once its user wants that.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { openStore } from '../../../src/store/open.ts';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { freePort } from '../../support/gateway/ports.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { createTaskCatalog, type Work } from '../../support/tasks/task-catalog.ts';
import { beginTask, callTask, send, WITH_TASKS } from '../../support/tasks/task-client.ts';
import { startConformanceGateway } from '../../support/tools/conformance-gateway.ts';

const redis = useShared(startRedis);
const works = new Map<string, Work>();
const catalog = createTaskCatalog(works);

async function openSharedStore() {
  const config = loadConfig({ AUTH_REQUIRED: 'false', REDIS_URL: redis.url });
  return openStore(config, { clock: systemClock, log: collectLog().log });
}

test('§29.7 a task that is cancelled counts no longer, though its replica hears nothing any more', async () => {
  const env = { REDIS_URL: redis.url, MCP_USER_TASKS_MAX: '1' };
  const store = await openSharedStore();
  const first = closeAfterTest(
    await startGateway({ env, deps: { catalog, store: { ...store, subscribe: () => () => {} } } }),
  );
  const second = closeAfterTest(
    await startGateway({ env: { ...env, OIDC_ISSUER: first.issuer.url }, deps: { catalog } }),
  );
  const token = await first.issuer.sign();
  works.set('endless', () => new Promise(() => {}));
  works.set('short', async () => 'done');
  const taskId = await beginTask(first, 'endless', { token });
  expect((await callTask(second, 'job', 'short', { token })).status).toBe(429);
  await send(second, 'tasks/cancel', { taskId }, { token });
  const { json } = await callTask(second, 'job', 'short', { token });
  expect(json.result).toMatchObject({ resultType: 'task' });
}, 40_000);

test('§29.7 more tasks than all together may run are refused, whoever runs them', async () => {
  const gateway = closeAfterTest(
    await startGateway({
      env: { REDIS_URL: redis.url, MCP_USER_TASKS_MAX: '0' },
      deps: { catalog },
    }),
  );
  works.set('short', async () => 'done');
  const store = await openSharedStore();
  const budget = 'mcp:session:tasks-running:all';
  const all = 8192 * 16_384;
  const others = { name: 'others', bytes: all };
  await expect
    .poll(() => store.reserveBytes(budget, others, { maxBytes: all, ttlSeconds: 60 }))
    .toBe(true);
  const refused = await callTask(gateway, 'job', 'short');
  expect(refused.status).toBe(429);
  expect(refused.json.error.data).toMatchObject({ reason: 'too_many_tasks' });
  await store.releaseBytes(budget, others);
  expect((await callTask(gateway, 'job', 'short')).json.result.resultType).toBe('task');
  await store.close();
}, 40_000);

let killed: ChildProcess | undefined;
afterEach(() => void killed?.kill('SIGKILL'));

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
async function post(url: string, method: string, params: object): Promise<any> {
  const { message, headers } = statelessRequest(method, { ...params }, { meta: WITH_TASKS });
  const response = await fetch(url, {
    method: 'POST',
    body: JSON.stringify(message),
    headers: { ...headers, 'content-type': 'application/json', accept: 'application/json' },
  });
  return response.json();
}

test('§29.6 the task of a process that was killed has failed for whoever asks at another one', async () => {
  const env = {
    REDIS_URL: redis.url,
    PORT: String(await freePort()),
    OAUTH_STATE_SECRET: 'one-secret-of-more-than-32-characters',
  };
  killed = spawn(process.execPath, ['--import', 'tsx', 'scripts/start-conformance.ts'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, ...env },
  });
  const [line]: unknown[] = await once(killed.stdout ?? killed, 'data');
  const url = String(line).replace('MCP URL: ', '').trim();
  const params = { name: 'slow_compute', arguments: { seconds: 600 } };
  const { taskId } = (await post(url, 'tools/call', params)).result;
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  const other = closeAfterTest(
    await startConformanceGateway({ ...env, PORT: String(await freePort()) }),
  );
  const ask = async () => (await post(other.mcpUrl, 'tasks/get', { taskId })).result;
  expect(await ask()).toMatchObject({ status: 'working' });
  // As after a minute.
  const client = new Redis(redis.url);
  const keys = await client.keys('*task-replica:*');
  await client.del(...keys);
  await client.quit();
  expect(await ask()).toMatchObject({
    status: 'failed',
    error: { code: -32603, data: { reason: 'task_lost' } },
  });
}, 60_000);
