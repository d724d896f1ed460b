// Guards on what servers say of their tasks, and on what clients answer, whatever such a server writes.
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/platform/json.ts';
import { openEvents } from '../../support/clients/event-stream.ts';
import { openClient } from '../../support/clients/session-client.ts';
import {
  CLIENT_CAPABILITIES,
  stateless,
  statelessRequest,
} from '../../support/clients/stateless.ts';
import { writeGuard } from '../../support/guards/module-guard.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { getTask, send, WITH_TASKS } from '../../support/tasks/task-client.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import {
  type ScriptedHttp,
  sendJson,
  startScriptedHttp,
  toError,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const NOW = '2026-11-26T20:00:00.000Z';
const HANDLE = { taskId: 'one', createdAt: NOW, lastUpdatedAt: NOW, ttlMs: 60_000 };
const SECRET = 'the secret';
const SAID = { content: [{ type: 'text', text: SECRET }] };
const ASKED = {
  method: 'elicitation/create',
  params: {
    message: SECRET,
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
  },
};
const ACCEPTED = { action: 'accept', content: { name: SECRET } };

const HIDE = `const text = JSON.stringify(message.value);
  return text.includes('${SECRET}')
    ? { decision: 'change', value: JSON.parse(text.replaceAll('${SECRET}', 'hidden')) }
    : { decision: 'pass' };`;

const SENT_TO_PAGES = {
  [CLIENT_CAPABILITIES]: { ...WITH_TASKS[CLIENT_CAPABILITIES], elicitation: { url: {} } },
};

const guard = async (on: string, tools?: readonly string[]) => ({
  name: 'hide',
  on: [on],
  use: await writeGuard(HIDE),
  ...(tools && { tools }),
});

/** Each tool answers with a task, of which `tell` says what it is. */
async function startServer(tell: (asked: JsonObject) => JsonObject): Promise<ScriptedHttp> {
  const server = closeAfterTest(await startScriptedHttp('stateless'));
  const tools = ['first', 'second'].map((name) => ({ name, inputSchema: { type: 'object' } }));
  server.answer('server/discover', (res, request) =>
    sendJson(
      res,
      toResult(request, {
        resultType: 'complete',
        supportedVersions: ['2026-07-28'],
        capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
      }),
    ),
  );
  server.answer('tools/list', (res, request) =>
    sendJson(res, toResult(request, { resultType: 'complete', tools, ttlMs: 0 })),
  );
  server.answer('tools/call', (res, request) =>
    sendJson(res, toResult(request, { resultType: 'task', status: 'working', ...HANDLE, ...SAID })),
  );
  server.answer('tasks/get', (res, request) =>
    sendJson(
      res,
      toResult(request, { resultType: 'complete', ...HANDLE, ...tell(request.message) }),
    ),
  );
  return server;
}

const start = (server: ScriptedHttp, guards: readonly object[], env = {}) =>
  startForTest({ file: { mcpServers: { one: server.url }, guards }, env });

type Gateway = Awaited<ReturnType<typeof start>>;

async function begin(gateway: Gateway, name = 'first'): Promise<string> {
  const { text, json } = await send(gateway, 'tools/call', { name: `one__${name}`, arguments: {} });
  expect(text).not.toContain(SECRET);
  expect(json.result).toMatchObject({ resultType: 'task', status: 'working' });
  return json.result.taskId;
}

describe('guards on results', () => {
  test.each([
    ['a result', { status: 'completed', result: SAID }],
    [
      'one that says that it is a task',
      { status: 'completed', result: { resultType: 'task', ...SAID } },
    ],
    ['an error', { status: 'failed', error: { code: -32000, message: SECRET } }],
    ['data of an error', { status: 'failed', error: { code: -1, message: 'No', data: SECRET } }],
    ['what it is doing', { status: 'working', statusMessage: SECRET }],
    ['members that no task has', { status: 'working', note: SECRET }],
  ])('§29.5 look at %s', async (_what, task) => {
    const gateway = await start(await startServer(() => task), [await guard('tools/result')]);
    const taskId = await begin(gateway);
    const { text, json } = await getTask(gateway, taskId);
    expect(json.result.status).toBe(task.status);
    expect(text).not.toContain(SECRET);
    if (task.status !== 'working') expect(text).toContain('hidden');
  });

  test.each([
    ['tasks/get', 'hide', HIDE],
    ['tasks/update', 'hide', HIDE],
    ['tasks/cancel', 'hide', HIDE],
    ['tasks/get', 'refuse', "return { decision: 'refuse', message: 'hidden' };"],
  ])(
    '§29.5 look at the error with which a server answers %s itself, and %s it',
    async (method, _does, body) => {
      const server = await startServer(() => ({}));
      server.answer(method, (res, request) => sendJson(res, toError(request, -32000, SECRET)));
      const gateway = await start(server, [
        { name: 'looks', on: ['tools/result'], use: await writeGuard(body) },
      ]);
      const taskId = await begin(gateway);
      const { text, json } = await send(gateway, method, { taskId, inputResponses: {} });
      expect(json.error.message).toContain('hidden');
      expect(text).not.toContain(SECRET);
    },
  );

  test('§29.5 a client that can have no tasks gets nothing past them, whatever the result calls itself', async () => {
    const server = await startServer(() => ({}));
    server.become('session');
    server.answer('tools/list', (res, request) =>
      sendJson(
        res,
        toResult(request, { tools: [{ name: 'first', inputSchema: { type: 'object' } }] }),
      ),
    );
    server.answer('tools/call', (res, request) =>
      sendJson(
        res,
        toResult(request, { resultType: 'task', ...HANDLE, status: 'working', ...SAID }),
      ),
    );
    const gateway = await start(server, [await guard('tools/result')]);
    const plain = await stateless(gateway, 'tools/call', { name: 'one__first', arguments: {} });
    expect(plain.json.result).toMatchObject({ resultType: 'complete', isError: true });
    expect(plain.text).not.toContain(SECRET);
    const client = await openClient(gateway);
    const answer = await client.ask('tools/call', { name: 'one__first', arguments: {} });
    expect(JSON.stringify(answer)).not.toContain(SECRET);
    expect(answer.result).not.toHaveProperty('resultType');
  });
});

describe('guards on questions', () => {
  const asks = () => ({ status: 'input_required', inputRequests: { who: ASKED } });

  test('§29.5 look at what is asked', async () => {
    const gateway = await start(await startServer(asks), [await guard('elicitation')]);
    const { text } = await getTask(gateway, await begin(gateway));
    expect(text).toContain('hidden');
    expect(text).not.toContain(SECRET);
  });

  test('§29.5 that look at one tool look at its task, whichever task is listened to before', async () => {
    const guards = [await guard('elicitation', ['one__second'])];
    const gateway = await start(await startServer(asks), guards, { MCP_STREAMS: 'true' });
    const taskIds = [await begin(gateway, 'first'), await begin(gateway, 'second')];
    const { message, headers } = statelessRequest(
      'subscriptions/listen',
      { notifications: { taskIds } },
      { meta: WITH_TASKS },
    );
    const stream = await openEvents({
      port: await gateway.listen(),
      headers: {
        ...headers,
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${await gateway.issuer.sign()}`,
      },
      body: message,
    });
    await stream.next();
    const told = new Map<string, string>();
    for (let count = 0; count < 2; count += 1) {
      const { params } = await stream.next();
      told.set(params.taskId, JSON.stringify(params.inputRequests));
    }
    stream.hangUp();
    expect(told.get(taskIds[0] ?? '')).toContain(SECRET);
    expect(told.get(taskIds[1] ?? '')).not.toContain(SECRET);
  });

  test.each([
    ['the answer', asks],
    ['an answer that nobody asked for', () => ({ status: 'working' })],
    [
      'an answer to what is another question by now',
      () => ({ status: 'input_required', inputRequests: { who: { method: 'roots/list' } } }),
    ],
  ])('§29.5 %s reaches the server through them, or not at all', async (_what, tell) => {
    const server = await startServer(tell);
    const gateway = await start(server, [await guard('elicitation/result')]);
    const taskId = await begin(gateway);
    await send(gateway, 'tasks/update', { taskId, inputResponses: { who: ACCEPTED } });
    expect(JSON.stringify(server.received.map(({ message }) => message))).not.toContain(SECRET);
  });
});

test('§29.5 `_meta` of a client reaches a server with the call that becomes a task, and not with what is asked of it later', async () => {
  const server = await startServer(() => ({ status: 'working' }));
  const gateway = await start(server, []);
  const taskId = await begin(gateway);
  const meta = { 'com.example/note': SECRET };
  await getTask(gateway, taskId, { meta });
  await send(gateway, 'tasks/update', { taskId, inputResponses: {} }, { meta });
  await send(gateway, 'tasks/cancel', { taskId }, { meta });
  const received = server.received.filter(({ message }) =>
    String(message.method).startsWith('tasks/'),
  );
  expect(received).toHaveLength(3);
  expect(JSON.stringify(received)).not.toContain(SECRET);
});

test('§29.5 pages that a failed task wants its user to open say who asks, and are for clients that can open them', async () => {
  const page = { mode: 'url', message: 'Open it.', url: 'https://a.example', elicitationId: '1' };
  const error = { code: -32042, message: 'Open it.', data: { elicitations: [page] } };
  const server = await startServer(() => ({ status: 'failed', error }));
  const gateway = await start(server, []);
  const taskId = await begin(gateway);
  const able = await getTask(gateway, taskId, { meta: SENT_TO_PAGES });
  expect(able.json.result.error.data.elicitations).toEqual([
    { ...page, message: expect.stringMatching(/ asks: Open it\.$/) },
  ]);
  const { text } = await getTask(gateway, taskId);
  expect(text).toContain('this client cannot be sent there');
  expect(text).not.toContain('a.example');
});

test('§26 guards on questions look at the pages of an error in place of what a task is, whichever request it answers', async () => {
  const server = await startServer(() => ({ status: 'working' }));
  const gateway = await start(server, [await guard('elicitation')]);
  const taskId = await begin(gateway);
  const page = { mode: 'url', message: SECRET, url: 'https://a.example', elicitationId: '1' };
  const error = { code: -32042, message: 'Open it.', data: { elicitations: [page] } };
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    server.answer(method, (res, { message: { id } }) =>
      sendJson(res, JSON.stringify({ jsonrpc: '2.0', id, error })),
    );
    const params = { taskId, inputResponses: {} };
    const { json, text } = await send(gateway, method, params, { meta: SENT_TO_PAGES });
    expect(json.error.code, text).toBe(-32042);
    expect(text).toContain('hidden');
    expect(text).not.toContain(SECRET);
  }
});
