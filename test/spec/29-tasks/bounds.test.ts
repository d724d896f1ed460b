// How many tasks there may be, how long they run, and how long their results are kept.
import { describe, expect, test } from 'vitest';
import { elicit } from '../../../src/index.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { createDeferred, createTaskCatalog, type Work } from '../../support/tasks/task-catalog.ts';
import {
  beginTask,
  callTask,
  getTask,
  send,
  taskBecomes,
} from '../../support/tasks/task-client.ts';

/** The machine may have much to do. */
const SLOWLY = { timeout: 10_000 };

const works = new Map<string, Work>();
const catalog = createTaskCatalog(works);

const start = async (env: Readonly<Record<string, string>>, clock = manualClock()) => ({
  clock,
  gateway: closeAfterTest(await startGateway({ env, deps: { catalog, clock } })),
});

describe('bounds', () => {
  test('§29.7 one more of a user is refused, and runs nothing; another user’s begins', async () => {
    const { gateway } = await start({ MCP_USER_TASKS_MAX: '2' });
    let begun = 0;
    const work = createDeferred();
    works.set('counted', () => {
      begun += 1;
      return work.promise;
    });
    const first = await beginTask(gateway, 'counted');
    await beginTask(gateway, 'counted');
    const refused = await callTask(gateway, 'job', 'counted');
    expect(refused.status).toBe(429);
    expect(refused.json.error.data).toMatchObject({ reason: 'too_many_tasks' });
    expect(begun).toBe(2);
    const token = await gateway.issuer.sign({ sub: 'bob' });
    await beginTask(gateway, 'counted', { token });
    await send(gateway, 'tasks/cancel', { taskId: first });
    await expect
      .poll(async () => (await callTask(gateway, 'job', 'counted')).json.result?.status, SLOWLY)
      .toBe('working');
    work.resolve('done');
  });

  test('§29.7 a task that runs for too long is ended, and its tool told', async () => {
    const { gateway, clock } = await start({ MCP_TASK_TTL_SECONDS: '60' });
    const stopped = createDeferred();
    works.set('too long', ({ signal }) => {
      signal.addEventListener('abort', () => stopped.resolve('stopped'));
      return stopped.promise;
    });
    const taskId = await beginTask(gateway, 'too long');
    clock.advance(59_000);
    expect((await getTask(gateway, taskId)).json.result).toMatchObject({
      status: 'working',
      ttlMs: 60_000,
    });
    // The look that finds it comes within some seconds.
    clock.advance(500);
    const ended = (async () => {
      for (let step = 0; step < 50; step += 1) {
        clock.advance(200);
        await new Promise(setImmediate);
      }
    })();
    expect(await stopped.promise).toBe('stopped');
    await ended;
    const { error } = await taskBecomes(gateway, taskId, 'failed');
    expect(error.data.reason).toBe('task_expired');
  });

  test('§29.7 the result is kept as long again, from its end on, and no longer', async () => {
    const { gateway, clock } = await start({ MCP_TASK_TTL_SECONDS: '60' });
    const work = createDeferred();
    works.set('kept', () => work.promise);
    const taskId = await beginTask(gateway, 'kept');
    clock.advance(30_000);
    work.resolve('done');
    const { ttlMs } = await taskBecomes(gateway, taskId, 'completed');
    expect(ttlMs).toBe(90_000);
    clock.advance(59_000);
    expect((await getTask(gateway, taskId)).json.result.status).toBe('completed');
    clock.advance(2000);
    expect((await getTask(gateway, taskId)).json.error.message).toBe('Unknown task');
  });

  test('§29.7 results that no longer fit fail their task, and say so', async () => {
    const { gateway } = await start({});
    works.set('4 MB', async () => 'x'.repeat(4_000_000));
    const end = async () => {
      const taskId = await beginTask(gateway, '4 MB');
      return expect
        .poll(async () => (await getTask(gateway, taskId)).json.result, SLOWLY)
        .not.toMatchObject({ status: 'working' })
        .then(async () => (await getTask(gateway, taskId)).json.result);
    };
    for (let count = 0; count < 4; count += 1) expect((await end()).status).toBe('completed');
    const { status, error } = await end();
    expect(status).toBe('failed');
    expect(error.data.reason).toBe('task_result_too_large');
  });

  test('§29.7 answers that nobody has taken are bounded, and the question stays', async () => {
    const { gateway } = await start({});
    const NAME = { type: 'object', properties: { name: { type: 'string' } } } as const;
    works.set('asks twice', async ({ ask }) => {
      const answers = await ask({ one: elicit('One?', NAME), two: elicit('Two?', NAME) });
      return `${answers.one.action} ${answers.two.action}`;
    });
    const taskId = await beginTask(gateway, 'asks twice');
    await taskBecomes(gateway, taskId, 'input_required');
    const answer = (key: string, name: string) =>
      send(gateway, 'tasks/update', {
        taskId,
        inputResponses: { [key]: { action: 'accept', content: { name } } },
      });
    const large = 'x'.repeat(600_000);
    expect((await answer('one', large)).status).toBe(200);
    const refused = await answer('two', large);
    expect(refused.json.error).toMatchObject({ code: -32602 });
    expect(refused.text).toContain('1048576 bytes');
    await taskBecomes(gateway, taskId, 'input_required');
    await answer('two', 'short');
    const { result } = await taskBecomes(gateway, taskId, 'completed');
    expect(result.content[0].text).toBe('accept accept');
  });
});
