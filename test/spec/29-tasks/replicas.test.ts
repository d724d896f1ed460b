// Tasks over several replicas: any of them answers, and one that goes takes none with it unsaid.
import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { elicit } from '../../../src/index.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { createDeferred, createTaskCatalog, type Work } from '../../support/tasks/task-catalog.ts';
import { beginTask, getTask, send, taskBecomes } from '../../support/tasks/task-client.ts';

const works = new Map<string, Work>();
const redis = useShared(startRedis);

const CONSENT = {
  type: 'object',
  properties: { yes: { type: 'boolean' } },
  required: ['yes'],
} as const;

const startReplica = (issuer?: string): Promise<TestGateway> =>
  startGateway({
    env: { REDIS_URL: redis.url, ...(issuer && { OIDC_ISSUER: issuer }) },
    deps: { catalog: createTaskCatalog(works) },
  });

async function startTwo() {
  const first = closeAfterTest(await startReplica());
  const second = closeAfterTest(await startReplica(first.issuer.url));
  return { first, second, token: await first.issuer.sign() };
}

/** As after a minute without a word of any replica. */
async function forgetReplicas(): Promise<void> {
  const client = new Redis(redis.url);
  const keys = await client.keys('*task-replica:*');
  expect(keys.length).toBeGreaterThan(0);
  await client.del(...keys);
  await client.quit();
}

describe('two replicas', () => {
  test('§29.4 either answers, asks, and takes answers', async () => {
    const { first, second, token } = await startTwo();
    const work = createDeferred();
    works.set('asks', async ({ ask, progress }) => {
      progress(1, 2, 'Half done');
      const { consent } = await ask({ consent: elicit('Well?', CONSENT) });
      return `${consent.action} ${await work.promise}`;
    });
    const taskId = await beginTask(first, 'asks', { token });
    const asked = await taskBecomes(second, taskId, 'input_required', { token });
    expect(asked.inputRequests.consent.params.message).toBe('Well?');
    const inputResponses = { consent: { action: 'decline' } };
    await send(second, 'tasks/update', { taskId, inputResponses }, { token });
    await taskBecomes(second, taskId, 'working', { token });
    work.resolve('done');
    const { result } = await taskBecomes(second, taskId, 'completed', { token });
    expect(result.content[0].text).toBe('decline done');
  });

  test('§29.4 a task is cancelled at the other', async () => {
    const { first, second, token } = await startTwo();
    const stopped = createDeferred();
    works.set('endless', ({ signal }) => {
      signal.addEventListener('abort', () => stopped.resolve('stopped'));
      return stopped.promise;
    });
    const taskId = await beginTask(first, 'endless', { token });
    await send(second, 'tasks/cancel', { taskId }, { token });
    expect(await stopped.promise).toBe('stopped');
    expect((await getTask(first, taskId, { token })).json.result.status).toBe('cancelled');
  });

  test('§29.4 another user does not find it there', async () => {
    const { first, second, token } = await startTwo();
    const work = createDeferred();
    works.set('mine', () => work.promise);
    const taskId = await beginTask(first, 'mine', { token });
    const other = await first.issuer.sign({ sub: 'mallory' });
    expect((await getTask(second, taskId, { token: other })).json.error.message).toBe(
      'Unknown task',
    );
    work.resolve('done');
    await taskBecomes(second, taskId, 'completed', { token });
  });

  test('§29.6 the task of a replica that is gone has failed, and says why', async () => {
    const { first, second, token } = await startTwo();
    const work = createDeferred();
    works.set('lost', ({ signal }) => {
      signal.addEventListener('abort', () => work.resolve('told to stop'));
      return work.promise;
    });
    const taskId = await beginTask(first, 'lost', { token });
    await forgetReplicas();
    const { json } = await getTask(second, taskId, { token });
    expect(json.result).toMatchObject({
      status: 'failed',
      statusMessage: expect.stringContaining('has stopped'),
      error: { code: -32603, data: { reason: 'task_lost' } },
    });
    // Where it lives all the same, its work ends: nobody would get what it does.
    expect(await work.promise).toBe('told to stop');
    expect((await getTask(first, taskId, { token })).json.result.status).toBe('failed');
  });

  test('§29.6 a replica that stops lets tasks end, and the result is read at the other', async () => {
    const { first, second, token } = await startTwo();
    const work = createDeferred();
    works.set('ends in time', () => work.promise);
    const taskId = await beginTask(first, 'ends in time', { token });
    const closing = first.gateway.close();
    work.resolve('just in time');
    await closing;
    const { json } = await getTask(second, taskId, { token });
    expect(json.result).toMatchObject({
      status: 'completed',
      result: { content: [{ text: 'just in time' }] },
    });
  });

  test('§29.6 one that does not end has failed', async () => {
    const { first, second, token } = await startTwo();
    works.set('too slow', () => new Promise(() => {}));
    const taskId = await beginTask(first, 'too slow', { token });
    await first.gateway.close();
    const { json } = await getTask(second, taskId, { token });
    expect(json.result.error.data.reason).toBe('task_lost');
  }, 30_000);
});
