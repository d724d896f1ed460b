// Tasks of a server behind the gateway: another gateway, whose tools are tasks.
import { describe, expect, test } from 'vitest';
import { elicit } from '../../../src/index.ts';
import { CLIENT_CAPABILITIES, stateless } from '../../support/clients/stateless.ts';
import { freePort } from '../../support/gateway/ports.ts';
import { useShared } from '../../support/lifetimes.ts';
import { createDeferred, createTaskCatalog, type Work } from '../../support/tasks/task-catalog.ts';
import { callTask, getTask, send, TASKS, taskBecomes } from '../../support/tasks/task-client.ts';
import { startConformanceGateway } from '../../support/tools/conformance-gateway.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';

const works = new Map<string, Work>();

const server = useShared(async () => {
  const { mcpUrl, close } = await startConformanceGateway(
    { PORT: String(await freePort()) },
    { catalog: createTaskCatalog(works) },
  );
  return { mcpUrl, close };
});
const gateway = useShared(() => startRelayGateway({ servers: { one: server.mcpUrl } }));

const CONSENT = {
  type: 'object',
  properties: { yes: { type: 'boolean' } },
  required: ['yes'],
} as const;

async function begin(label: string): Promise<string> {
  const { json } = await callTask(gateway, 'one__job', label);
  expect(json.result).toMatchObject({ resultType: 'task', status: 'working' });
  return json.result.taskId;
}

describe('a server of the stateless era', () => {
  test('§29.5 what it says that it has is advertised', async () => {
    const { json } = await stateless(gateway, 'server/discover');
    expect(json.result.capabilities.extensions).toEqual({ [TASKS]: {} });
  });

  test('§29.5 its task is the client’s, under an id of the gateway’s', async () => {
    const work = createDeferred();
    works.set('one', () => work.promise);
    const taskId = await begin('one');
    expect(taskId).toMatch(/^r\./);
    expect((await getTask(gateway, taskId)).json.result).toMatchObject({
      resultType: 'complete',
      taskId,
      status: 'working',
      ttlMs: 3_600_000,
    });
    work.resolve('done');
    const { result } = await taskBecomes(gateway, taskId, 'completed');
    expect(result.content).toEqual([{ type: 'text', text: 'done' }]);
  });

  test('§29.5 its questions say who asks, and get their answers', async () => {
    works.set('asks', async ({ ask }) => {
      const { consent } = await ask({ consent: elicit('Well?', CONSENT) });
      return consent.action;
    });
    const taskId = await begin('asks');
    const { inputRequests } = await taskBecomes(gateway, taskId, 'input_required');
    expect(inputRequests.consent.params.message).toBe('one asks: Well?');
    const inputResponses = { consent: { action: 'accept', content: { yes: true } } };
    const { json } = await send(gateway, 'tasks/update', { taskId, inputResponses });
    expect(json.result).toEqual({ resultType: 'complete', _meta: expect.anything() });
    const { result } = await taskBecomes(gateway, taskId, 'completed');
    expect(result.content[0].text).toBe('accept');
  });

  test('§29.5 tasks/cancel reaches it', async () => {
    const stopped = createDeferred();
    works.set('endless', ({ signal }) => {
      signal.addEventListener('abort', () => stopped.resolve('stopped'));
      return stopped.promise;
    });
    const taskId = await begin('endless');
    await send(gateway, 'tasks/cancel', { taskId });
    expect(await stopped.promise).toBe('stopped');
    await taskBecomes(gateway, taskId, 'cancelled');
  });

  test('§29.5 an error of the protocol is passed on', async () => {
    works.set('roots', async ({ ask }) => {
      await ask({ roots: { method: 'roots/list', params: {} } });
      return 'never';
    });
    const task = await taskBecomes(gateway, await begin('roots'), 'failed');
    expect(task.error).toMatchObject({ code: -32021 });
  });

  test('§29.5 a client that cannot have tasks gets none, and the server is told so', async () => {
    works.set('at once', async () => 'done');
    const call = (name: string) =>
      stateless(gateway, 'tools/call', { name, arguments: { label: 'at once' } });
    expect((await call('one__job')).json.result).toMatchObject({
      resultType: 'complete',
      content: [{ text: 'done' }],
    });
    expect((await call('one__always')).json.error).toMatchObject({ code: -32021 });
  });

  test('§29.5 nor does a session, even of a client that declares them', async () => {
    works.set('at once', async () => 'done');
    const opened = await gateway.rpc({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: { extensions: { [TASKS]: {} } },
        clientInfo: { name: 'test', version: '1' },
      },
    });
    const session = opened.headers['mcp-session-id'] ?? '';
    const { json } = await gateway.call(session, 'tools/call', {
      name: 'one__job',
      arguments: { label: 'at once' },
    });
    expect(json.result.content).toEqual([{ type: 'text', text: 'done' }]);
  });
});

describe('whose a relayed task is', () => {
  test.each(['tasks/get', 'tasks/update', 'tasks/cancel'])(
    '§29.5 %s: another user, and another path, do not find it',
    async (method) => {
      const work = createDeferred();
      works.set('mine', () => work.promise);
      const taskId = await begin('mine');
      const params = { taskId, inputResponses: {} };
      const token = await gateway.issuer.sign({ sub: 'mallory' });
      const foreign = await send(gateway, method, params, { token });
      expect(foreign.json.error).toMatchObject({ code: -32602, message: 'Unknown task' });
      const forged = await send(gateway, method, {
        ...params,
        taskId: `${taskId.slice(0, -8)}AAAAAAAA`,
      });
      expect(forged.json).toEqual(foreign.json);
      expect((await getTask(gateway, taskId)).json.result.status).toBe('working');
      work.resolve('done');
    },
  );

  test('§29.5 what the client declares is asked for, of relayed tasks, too', async () => {
    const work = createDeferred();
    works.set('declared', () => work.promise);
    const taskId = await begin('declared');
    const { json } = await getTask(gateway, taskId, { meta: { [CLIENT_CAPABILITIES]: {} } });
    expect(json.error.code).toBe(-32021);
    work.resolve('done');
  });
});
