// Tools of an author's own whose calls go on as tasks.
import { once } from 'node:events';
import { afterAll, describe, expect, test } from 'vitest';
import { elicit } from '../../../src/index.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { useShared } from '../../support/lifetimes.ts';
import { createDeferred, createTaskCatalog, type Work } from '../../support/tasks/task-catalog.ts';
import {
  beginTask,
  callTask,
  getTask,
  send,
  TASKS,
  taskBecomes,
  WITH_TASKS,
} from '../../support/tasks/task-client.ts';

/** The machine may have much to do. */
const SLOWLY = { timeout: 10_000 };

const works = new Map<string, Work>();
const gateway = useShared(() => startGateway({ deps: { catalog: createTaskCatalog(works) } }));

const UNKNOWN = { error: { code: -32602, message: 'Unknown task' } };

const CONSENT = {
  type: 'object',
  properties: { yes: { type: 'boolean' } },
  required: ['yes'],
} as const;

describe('who gets a task', () => {
  test('§29.1 server/discover says that there are tasks', async () => {
    const { json } = await stateless(gateway, 'server/discover');
    expect(json.result.capabilities.extensions).toEqual({ [TASKS]: {} });
  });

  test('§29.1 initialize does not: sessions have none', async () => {
    const { json } = await gateway.rpc({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'test', version: '1' },
      },
    });
    expect(json.result.capabilities.extensions).toBeUndefined();
  });

  test('§29.1 a client that declares them gets a task', async () => {
    const work = createDeferred();
    works.set('one', () => work.promise);
    const { json } = await callTask(gateway, 'job', 'one');
    const { result } = json;
    expect(result).toMatchObject({
      resultType: 'task',
      status: 'working',
      ttlMs: 3_600_000,
      pollIntervalMs: 1000,
    });
    expect(new Date(result.createdAt).toISOString()).toBe(result.createdAt);
    expect(result.lastUpdatedAt).toBe(result.createdAt);
    expect((await getTask(gateway, result.taskId)).json.result).toMatchObject({
      resultType: 'complete',
      taskId: result.taskId,
      status: 'working',
    });
    work.resolve('done');
    const ended = await taskBecomes(gateway, result.taskId, 'completed');
    expect(ended.result).toEqual({
      resultType: 'complete',
      content: [{ type: 'text', text: 'done' }],
    });
  });

  test('§29.1 one that does not gets the result', async () => {
    works.set('at once', async () => 'done');
    const { json } = await stateless(gateway, 'tools/call', {
      name: 'job',
      arguments: { label: 'at once' },
    });
    expect(json.result).toMatchObject({ resultType: 'complete', content: [{ text: 'done' }] });
  });

  test('§29.1 a tool that is always a task refuses it', async () => {
    const { status, json } = await stateless(gateway, 'tools/call', {
      name: 'always',
      arguments: { label: 'at once' },
    });
    expect(status).toBe(400);
    expect(json.error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
    });
  });

  test.each(['job', 'always'])('§29.1 in a session %s is a call like any other', async (name) => {
    works.set('at once', async () => 'done');
    const session = await gateway.open();
    const { json } = await gateway.call(session, 'tools/call', {
      name,
      arguments: { label: 'at once' },
    });
    expect(json.result).toEqual({ content: [{ type: 'text', text: 'done' }] });
  });

  test('§29.1 other tools never are tasks', async () => {
    works.set('at once', async () => 'done');
    const { json } = await callTask(gateway, 'plain', 'at once');
    expect(json.result).toMatchObject({ resultType: 'complete', content: [{ text: 'done' }] });
  });

  test('§29.1 what is wrong with the arguments is said at once', async () => {
    const { json } = await send(gateway, 'tools/call', { name: 'job', arguments: {} });
    expect(json.result).toMatchObject({ resultType: 'complete', isError: true });
  });
});

describe('how a task ends', () => {
  test('§29.2 what the tool throws is a result, as of other calls', async () => {
    works.set('throws', () => Promise.reject(new Error('secret')));
    const taskId = await beginTask(gateway, 'throws');
    const { result } = await taskBecomes(gateway, taskId, 'completed');
    expect(result.isError).toBe(true);
    expect(JSON.stringify(result)).not.toContain('secret');
    expect(gateway.log).toContainEqual(
      expect.objectContaining({ msg: 'A task failed.', error: 'tool_failed' }),
    );
  });

  test('§29.2 what the client cannot be asked fails the task', async () => {
    works.set('roots', async ({ ask }) => {
      await ask({ roots: { method: 'roots/list', params: {} } });
      return 'never';
    });
    const task = await taskBecomes(gateway, await beginTask(gateway, 'roots'), 'failed');
    expect(task.error).toMatchObject({ code: -32021 });
    expect(task.statusMessage).toContain('roots');
    expect(task.result).toBeUndefined();
  });

  test('§29.2 a result that is too large fails it, and says what is allowed', async () => {
    works.set('large', async () => 'x'.repeat(4_300_000));
    const task = await taskBecomes(gateway, await beginTask(gateway, 'large'), 'failed');
    expect(task.error.data).toMatchObject({
      reason: 'task_result_too_large',
      details: expect.stringContaining('4194304 are allowed'),
    });
  });

  test('§29.2 tasks/cancel ends it, and the tool hears of it', async () => {
    const stopped = createDeferred();
    works.set('endless', ({ signal }) => {
      signal.addEventListener('abort', () => stopped.resolve('stopped'));
      return new Promise(() => {});
    });
    const taskId = await beginTask(gateway, 'endless');
    const { json } = await send(gateway, 'tasks/cancel', { taskId });
    expect(json.result).toEqual({ resultType: 'complete', _meta: expect.anything() });
    expect(await stopped.promise).toBe('stopped');
    expect((await getTask(gateway, taskId)).json.result.status).toBe('cancelled');
    // Once more is no mistake.
    expect((await send(gateway, 'tasks/cancel', { taskId })).json.result).toBeDefined();
  });

  test('§29.2 the log does not call that a failure, though the tool throws', async () => {
    works.set('gives up', async ({ signal }) => {
      await once(signal, 'abort');
      throw signal.reason;
    });
    const taskId = await beginTask(gateway, 'gives up');
    const before = gateway.log.length;
    await send(gateway, 'tasks/cancel', { taskId });
    await expect
      .poll(() => gateway.log.slice(before), SLOWLY)
      .toContainEqual(
        expect.objectContaining({ msg: 'A task was cancelled.', error: 'request_cancelled' }),
      );
    expect(gateway.log.slice(before)).not.toContainEqual(
      expect.objectContaining({ msg: 'A task failed.' }),
    );
  });

  test('§29.2 a result that comes after that counts for nothing', async () => {
    const work = createDeferred();
    works.set('late', () => work.promise);
    const taskId = await beginTask(gateway, 'late');
    await send(gateway, 'tasks/cancel', { taskId });
    work.resolve('too late');
    await work.promise;
    expect((await getTask(gateway, taskId)).json.result).toMatchObject({ status: 'cancelled' });
  });
});

describe('while it runs', () => {
  test('§29.3 progress is its status', async () => {
    const work = createDeferred();
    works.set('steps', ({ progress }) => {
      progress(1, 3, 'Reading the first file');
      return work.promise;
    });
    const taskId = await beginTask(gateway, 'steps');
    await expect
      .poll(async () => (await getTask(gateway, taskId)).json.result.statusMessage, SLOWLY)
      .toBe('Reading the first file');
    work.resolve('done');
    await taskBecomes(gateway, taskId, 'completed');
  });

  test('§29.3 a question is asked by its state, and answered by tasks/update', async () => {
    works.set('asks', async ({ ask }) => {
      const { first, second } = await ask({
        first: elicit('First?', CONSENT),
        second: elicit('Second?', CONSENT),
      });
      return `${first.action} ${second.action}`;
    });
    const taskId = await beginTask(gateway, 'asks');
    const { inputRequests } = await taskBecomes(gateway, taskId, 'input_required');
    expect(inputRequests).toEqual({
      first: {
        method: 'elicitation/create',
        params: { message: 'First?', requestedSchema: CONSENT },
      },
      second: {
        method: 'elicitation/create',
        params: { message: 'Second?', requestedSchema: CONSENT },
      },
    });
    const update = (inputResponses: unknown) =>
      send(gateway, 'tasks/update', { taskId, inputResponses });
    // What nobody asked is left alone.
    expect((await update({ third: { action: 'decline' } })).json.result).toBeDefined();
    const wrong = await update({ first: { action: 'accept', content: { yes: 'perhaps' } } });
    expect(wrong.json.error).toMatchObject({
      code: -32602,
      data: { details: expect.stringContaining('"first"') },
    });
    expect((await update('nothing')).json.error.code).toBe(-32602);
    await update({ first: { action: 'accept', content: { yes: true } } });
    const { json } = await getTask(gateway, taskId);
    expect(json.result).toMatchObject({ status: 'input_required' });
    expect(Object.keys(json.result.inputRequests)).toEqual(['second']);
    // An answer counts once.
    await update({ first: { action: 'decline' }, second: { action: 'decline' } });
    const { result } = await taskBecomes(gateway, taskId, 'completed');
    expect(result.content[0].text).toBe('accept decline');
  });

  test('§29.3 a client that hangs up does not end it', async () => {
    const work = createDeferred();
    works.set('goes on', async ({ signal }) => {
      const text = await work.promise;
      return `${text}, aborted: ${signal.aborted}`;
    });
    const taskId = await beginTask(gateway, 'goes on');
    work.resolve('done');
    const { result } = await taskBecomes(gateway, taskId, 'completed');
    expect(result.content[0].text).toBe('done, aborted: false');
  });
});

describe('whose a task is', () => {
  const over = createDeferred();
  // A gateway that stops waits for what runs.
  afterAll(() => over.resolve('over'));
  const begin = async (label: string) => {
    works.set(label, () => over.promise);
    return beginTask(gateway, label);
  };

  test.each(['tasks/get', 'tasks/update', 'tasks/cancel'])(
    '§29.4 %s: to another user it is unknown, in the same words as one that never was',
    async (method) => {
      const taskId = await begin(`secret ${method}`);
      const token = await gateway.issuer.sign({ sub: 'mallory' });
      const params = { inputResponses: {} };
      const foreign = await send(gateway, method, { ...params, taskId }, { token });
      const never = await send(gateway, method, { ...params, taskId: 'never' });
      expect(foreign.json).toMatchObject(UNKNOWN);
      expect(foreign.json).toEqual(never.json);
      expect((await getTask(gateway, taskId)).json.result.status).toBe('working');
    },
  );

  test.each(['tasks/get', 'tasks/update', 'tasks/cancel'])(
    '§29.4 %s wants a client that declares tasks, and a header that names the task',
    async (method) => {
      const taskId = await begin(`headers ${method}`);
      const params = { taskId, inputResponses: {} };
      const undeclared = await stateless(gateway, method, params);
      expect(undeclared.json.error).toMatchObject({
        code: -32021,
        data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
      });
      const unnamed = await stateless(gateway, method, params, {
        meta: WITH_TASKS,
        headers: { 'mcp-name': undefined },
      });
      expect(unnamed.json.error.code).toBe(-32020);
    },
  );

  test('§29.4 its id is nobody else’s to guess', async () => {
    const taskId = await begin('unguessable');
    expect(taskId).toMatch(/^[\w-]{43}$/);
  });
});
