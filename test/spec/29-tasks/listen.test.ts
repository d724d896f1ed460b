// Status notifications of tasks on subscriptions/listen.
import { describe, expect, test } from 'vitest';
import { openEvents } from '../../support/clients/event-stream.ts';
import { stateless, statelessRequest } from '../../support/clients/stateless.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { useShared } from '../../support/lifetimes.ts';
import { createDeferred, createTaskCatalog, type Work } from '../../support/tasks/task-catalog.ts';
import { beginTask, send, WITH_TASKS } from '../../support/tasks/task-client.ts';

const works = new Map<string, Work>();
const gateway = useShared(() =>
  startGateway({ env: { MCP_STREAMS: 'true' }, deps: { catalog: createTaskCatalog(works) } }),
);

async function listen(taskIds: readonly string[], sub?: string) {
  const { message, headers } = statelessRequest(
    'subscriptions/listen',
    { notifications: { taskIds } },
    { id: 'mine', meta: WITH_TASKS },
  );
  return openEvents({
    port: await gateway.listen(),
    headers: {
      ...headers,
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${await gateway.issuer.sign(sub === undefined ? {} : { sub })}`,
    },
    body: message,
  });
}

const _meta = { 'io.modelcontextprotocol/subscriptionId': 'mine' };

const acknowledged = (notifications: object) => ({
  jsonrpc: '2.0',
  method: 'notifications/subscriptions/acknowledged',
  params: { notifications, _meta },
});

describe('subscriptions/listen', () => {
  test('§29.3 tells each state of a task, with its result at the end', async () => {
    const work = createDeferred();
    works.set('told', () => work.promise);
    const taskId = await beginTask(gateway, 'told');
    const stream = await listen([taskId, 'never']);
    expect(await stream.next()).toEqual(acknowledged({ taskIds: [taskId] }));
    expect(await stream.next()).toMatchObject({
      method: 'notifications/tasks',
      params: { taskId, status: 'working', ttlMs: 3_600_000, _meta },
    });
    work.resolve('done');
    expect(await stream.next()).toMatchObject({
      method: 'notifications/tasks',
      params: { taskId, status: 'completed', result: { content: [{ text: 'done' }] }, _meta },
    });
    stream.hangUp();
  });

  test('§29.3 tells that it was cancelled', async () => {
    const work = createDeferred();
    works.set('cancelled', () => work.promise);
    const taskId = await beginTask(gateway, 'cancelled');
    const stream = await listen([taskId]);
    await stream.next();
    await stream.next();
    await send(gateway, 'tasks/cancel', { taskId });
    expect(await stream.next()).toMatchObject({ params: { taskId, status: 'cancelled' } });
    stream.hangUp();
    work.resolve('done');
  });

  test('§29.3 tells nobody of another’s task', async () => {
    const work = createDeferred();
    works.set('secret', () => work.promise);
    const taskId = await beginTask(gateway, 'secret');
    const stream = await listen([taskId], 'mallory');
    expect(await stream.next()).toEqual(acknowledged({}));
    stream.hangUp();
    work.resolve('done');
  });

  test('§29.3 refuses a client that does not declare tasks', async () => {
    const { json } = await stateless(
      gateway,
      'subscriptions/listen',
      { notifications: { taskIds: ['one'] } },
      { headers: { accept: 'application/json, text/event-stream' } },
    );
    expect(json.error.code).toBe(-32021);
  });

  test.each([
    [{ taskIds: 'one' }, 'must be an array of ids of tasks'],
    [{ taskIds: Array(201).fill('one') }, 'may have at most 200 ids of tasks'],
  ])('§29.3 refuses %j', async (notifications, details) => {
    const { json } = await send(
      gateway,
      'subscriptions/listen',
      { notifications },
      { headers: { accept: 'application/json, text/event-stream' } },
    );
    expect(json.error).toMatchObject({
      code: -32602,
      data: { details: expect.stringContaining(details) },
    });
  });

  test('§29.7 more than 200 tasks of one user at once are refused, whatever the streams; another user’s are not', async () => {
    const made = (name: string) => Array.from({ length: 150 }, (_, index) => `${name}${index}`);
    const work = createDeferred();
    works.set('many', () => work.promise);
    const first = await listen([await beginTask(gateway, 'many'), ...made('a')]);
    await first.next();
    const second = await listen(made('b'));
    expect(second.status).toBe(503);
    expect(await second.text()).toContain('too_many_streams');
    const others = await listen(made('b'), 'bob');
    expect(others.status).toBe(200);
    others.hangUp();
    first.hangUp();
    await expect
      .poll(async () => {
        const again = await listen(made('b'));
        again.hangUp();
        return again.status;
      })
      .toBe(200);
    work.resolve('done');
  });
});
