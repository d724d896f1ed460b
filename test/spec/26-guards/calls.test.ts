// §26: guards on requests and results of both eras: in their order, and what follows where they change something or fail.
import { expect, test } from 'vitest';
import { callTool, stateless } from '../../support/clients/stateless.ts';
import { writeGuard } from '../../support/guards/module-guard.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import {
  sendJson,
  startScriptedHttp,
  toError,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string', pattern: '^[A-Z]' }, days: { type: 'integer' } },
  required: ['city'],
};

const OUTPUT = {
  type: 'object',
  properties: { degrees: { type: 'number' } },
  required: ['degrees'],
};

async function startServer() {
  const server = await startScriptedHttp('session');
  server.answer('initialize', (res, request) => {
    res.setHeader('mcp-session-id', 'session-1');
    const capabilities = { tools: {}, prompts: {}, resources: {} };
    const serverInfo = { name: 'raw', version: '1' };
    sendJson(res, toResult(request, { protocolVersion: '2025-11-25', capabilities, serverInfo }));
  });
  server.answer('tools/list', (res, request) =>
    sendJson(
      res,
      toResult(request, {
        tools: [
          { name: 'weather', inputSchema: SCHEMA, outputSchema: OUTPUT },
          { name: 'fails', inputSchema: { type: 'object' } },
          { name: 'open', inputSchema: { type: 'object' } },
        ],
      }),
    ),
  );
  server.answer('prompts/list', (res, request) =>
    sendJson(
      res,
      toResult(request, {
        prompts: [{ name: 'plan', arguments: [{ name: 'city', required: true }] }],
      }),
    ),
  );
  server.answer('resources/list', (res, request) =>
    sendJson(res, toResult(request, { resources: [{ name: 'a', uri: 'test://a' }] })),
  );
  server.answer('tools/call', (res, request) => {
    const { name } = request.message.params as { name: string };
    if (name === 'fails') {
      return sendJson(res, toError(request, -32099, 'My token is hunter2.'));
    }
    return sendJson(
      res,
      toResult(request, {
        content: [{ type: 'text', text: 'It is sunny.' }],
        structuredContent: { degrees: 21 },
        _meta: { 'example.com/station': 'S1' },
      }),
    );
  });
  server.answer('prompts/get', (res, request) =>
    sendJson(
      res,
      toResult(request, {
        messages: [{ role: 'user', content: { type: 'text', text: 'Plan it.' } }],
      }),
    ),
  );
  server.answer('resources/read', (res, request) =>
    sendJson(res, toResult(request, { contents: [{ uri: 'test://a', text: 'read' }] })),
  );
  return server;
}

const server = useShared(startServer);

const start = async (guards: readonly object[], more: object = {}) =>
  startForTest({ file: { mcpServers: { raw: server.url }, guards, ...more } });

/** What the server was sent last. */
const lastParams = (method: string) =>
  server.received.filter(({ message }) => message.method === method).at(-1)?.message.params as {
    arguments?: unknown;
    _meta?: unknown;
  };

const ERAS = [
  {
    era: 'session',
    ask: async (gateway: Awaited<ReturnType<typeof start>>, method: string, params: object) =>
      (await gateway.call(await gateway.open(), method, params)).json,
  },
  {
    era: 'stateless',
    ask: async (gateway: Awaited<ReturnType<typeof start>>, method: string, params: object) =>
      (await stateless(gateway, method, { ...params })).json,
  },
] as const;

const ITEMS = [
  { method: 'tools/call', params: { name: 'raw__open', arguments: {} }, end: 'tools/result' },
  {
    method: 'prompts/get',
    params: { name: 'raw__plan', arguments: { city: 'Rome' } },
    end: 'prompts/result',
  },
  { method: 'resources/read', params: { uri: 'test://a' }, end: 'resources/result' },
] as const;

const ROWS = ERAS.flatMap(({ era, ask }) => ITEMS.map((item) => ({ era, ask, ...item })));

test.each(ROWS)(
  '§26.1 $era era: a guard that refuses $method keeps it from the server',
  async (row) => {
    const use = await writeGuard("return { decision: 'refuse', message: 'Not on Sundays.' };");
    const gateway = await start([{ name: 'sundays', on: [row.method], use }]);
    const before = server.count(row.method);
    const answer = await row.ask(gateway, row.method, row.params);
    expect(JSON.stringify(answer)).toContain('Not on Sundays.');
    expect(server.count(row.method)).toBe(before);
    if (row.method === 'tools/call') expect(answer.result.isError).toBe(true);
    else expect(answer.error.message).toBe('Not on Sundays.');
  },
);

test.each(ROWS)(
  '§26.1 $era era: a guard that refuses $end keeps the result from the client',
  async (row) => {
    const use = await writeGuard("return { decision: 'refuse', message: 'Not for you.' };");
    const gateway = await start([{ name: 'results', on: [row.end], use }]);
    const answer = await row.ask(gateway, row.method, row.params);
    const text = JSON.stringify(answer);
    expect(text).toContain('Not for you.');
    expect(text).not.toMatch(/sunny|Plan it|"read"/);
  },
);

test.each(ERAS)(
  '§26.1 $era era: a guard changes what the server gets and what the client gets',
  async ({ ask }) => {
    const use = await writeGuard(`
    if (message.on === 'tools/call') {
      return { decision: 'change', value: { ...message.value, arguments: { city: 'Paris' } } };
    }
    return { decision: 'change', value: { ...message.value, content: [{ type: 'text', text: 'Changed.' }] } };`);
    const gateway = await start([{ name: 'both', on: ['tools/call', 'tools/result'], use }]);
    const answer = await ask(gateway, 'tools/call', {
      name: 'raw__weather',
      arguments: { city: 'Rome' },
    });
    expect(lastParams('tools/call').arguments).toEqual({ city: 'Paris' });
    expect(answer.result.content).toEqual([{ type: 'text', text: 'Changed.' }]);
    expect(answer.result.structuredContent).toEqual({ degrees: 21 });
  },
);

test('§26.1 guards are asked in their order, each of what the one before made of it', async () => {
  const add = (letter: string) =>
    writeGuard(`return { decision: 'change', value: { ...message.value,
      arguments: { said: (message.value.arguments.said ?? '') + '${letter}' } } };`);
  const on = ['tools/call'];
  const gateway = await start([
    { name: 'a', on, use: await add('a') },
    { name: 'b', on, use: await add('b') },
    { name: 'elsewhere', on, tools: ['raw__weather'], use: await add('x') },
    { name: 'other-point', on: ['prompts/get'], use: await add('y') },
    { name: 'c', on, servers: ['raw'], use: await add('c') },
  ]);
  await callTool(gateway, 'raw__open');
  expect(lastParams('tools/call').arguments).toEqual({ said: 'abc' });
});

test('§26.2 a guard is told who calls, and never a token', async () => {
  const use = await writeGuard("return { decision: 'refuse', message: JSON.stringify(message) };");
  const gateway = await start([{ name: 'told', on: ['tools/call'], use }]);
  const token = await gateway.issuer.sign({ email: 'ada@example.com', groups: ['staff'] });
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const { json } = await callTool(
    gateway,
    'raw__open',
    { a: 1 },
    {
      token,
      id: 'my-id',
      meta: { traceparent, 'example.com/mine': 1 },
    },
  );
  const [{ text }] = json.result.content;
  expect(JSON.parse(text)).toMatchObject({
    guard: 'told',
    on: 'tools/call',
    method: 'tools/call',
    phase: 'request',
    server: 'raw',
    name: 'raw__open',
    value: { name: 'raw__open', arguments: { a: 1 }, _meta: { 'example.com/mine': 1 } },
    user: { email: 'ada@example.com', groups: ['staff'] },
    requestId: 'my-id',
    traceparent,
  });
  expect(text).not.toContain(token);
  expect(text).not.toContain(token.split('.')[2] ?? '');
});

test('§26.1 results are seen whole: structuredContent, _meta, and the errors of servers', async () => {
  const use = await writeGuard(
    "return { decision: 'refuse', message: JSON.stringify(message.value) };",
  );
  const gateway = await start([{ name: 'told', on: ['tools/result'], use }]);
  const { json } = await callTool(gateway, 'raw__weather', { city: 'Rome' });
  expect(JSON.parse(json.result.content[0].text)).toEqual({
    content: [{ type: 'text', text: 'It is sunny.' }],
    structuredContent: { degrees: 21 },
    _meta: { 'example.com/station': 'S1' },
  });
  const failed = await callTool(gateway, 'raw__fails');
  expect(JSON.parse(failed.json.result.content[0].text)).toEqual({
    error: { code: -32099, message: 'My token is hunter2.' },
  });
});

test('§26.1 the words of an error are changed, and it stays an error', async () => {
  const use = await writeGuard(
    "return { decision: 'change', value: { error: { ...message.value.error, message: 'Failed.' } } };",
  );
  const gateway = await start([{ name: 'words', on: ['tools/result'], use }]);
  const { json } = await callTool(gateway, 'raw__fails');
  expect(json.error).toMatchObject({ code: -32099, message: 'Failed.' });
});

test('§26.3 what a guard changes is judged by the rules again', async () => {
  const use = await writeGuard(
    "return { decision: 'change', value: { ...message.value, arguments: { city: 'Secret' } } };",
  );
  const guards = [{ name: 'changes', on: ['tools/call'], use }];
  const rules = [{ who: 'everyone', when: 'args.city != "Secret"', may: ['raw__weather'] }];
  const gateway = await start(guards, { rules });
  const before = server.count('tools/call');
  const { json } = await callTool(gateway, 'raw__weather', { city: 'Rome' });
  expect(json.error.message).toContain('Unknown tool');
  expect(server.count('tools/call')).toBe(before);
});

const BAD_CHANGES = [
  { title: 'another tool', on: 'tools/call', value: "{ name: 'raw__open', arguments: {} }" },
  { title: 'no arguments', on: 'tools/call', value: "{ name: 'raw__weather' }" },
  {
    title: 'arguments of a wrong type',
    on: 'tools/call',
    value: "{ name: 'raw__weather', arguments: { city: 1 } }",
  },
  {
    title: 'arguments that a pattern refuses',
    on: 'tools/call',
    value: "{ name: 'raw__weather', arguments: { city: 'rome' } }",
  },
  { title: 'a text', on: 'tools/call', value: "'text'" },
  { title: 'no content', on: 'tools/result', value: '{ structuredContent: { degrees: 1 } }' },
  {
    title: 'content of no type',
    on: 'tools/result',
    value: "{ content: [{ text: 'x' }], structuredContent: { degrees: 1 } }",
  },
  {
    title: 'a structure that the outputSchema refuses',
    on: 'tools/result',
    value: "{ content: [], structuredContent: { degrees: 'warm' } }",
  },
] as const;

test.each(BAD_CHANGES)(
  '§26.3 a change to $title is a failure of the guard',
  async ({ on, value }) => {
    const use = await writeGuard(`return { decision: 'change', value: ${value} };`);
    const refusing = await start([{ name: 'bad', on: [on], use }]);
    const refused = await callTool(refusing, 'raw__weather', { city: 'Rome' });
    expect(refused.json.result.isError).toBe(true);
    expect(refused.json.result.content[0].text).toContain('The guard bad could not check this');
    const passing = await start([{ name: 'bad', on: [on], use, onError: 'pass' }]);
    const passed = await callTool(passing, 'raw__weather', { city: 'Rome' });
    expect(passed.json.result.content).toEqual([{ type: 'text', text: 'It is sunny.' }]);
    expect(lastParams('tools/call').arguments).toEqual({ city: 'Rome' });
  },
);

const FAILURES = [
  { title: 'throws', body: "throw new Error('the value was hunter2');", reason: 'it threw' },
  { title: 'rejects', body: "return Promise.reject(new TypeError('x'));", reason: 'TypeError' },
  { title: 'answers nothing', body: 'return undefined;', reason: 'not an object' },
  { title: 'answers a text', body: "return 'pass';", reason: 'not an object' },
  { title: 'answers another word', body: "return { decision: 'maybe' };", reason: 'no "decision"' },
  {
    title: 'changes to nothing',
    body: "return { decision: 'change' };",
    reason: 'without a value',
  },
] as const;

test.each(FAILURES)(
  '§26.3 a guard that $title does as onError says, and the log says which, once a minute',
  async ({ body, reason }) => {
    const use = await writeGuard(body);
    const on = ['tools/call'];
    const refusing = await start([{ name: 'broken', on, use }]);
    for (let call = 0; call < 3; call += 1) {
      const { json } = await callTool(refusing, 'raw__open');
      expect(json.result.isError).toBe(true);
    }
    const lines = refusing.log.filter(({ msg }) => msg.startsWith('The guard broken failed'));
    expect(lines).toHaveLength(1);
    expect(lines[0]?.msg).toContain(reason);
    expect(lines[0]?.msg).not.toContain('hunter2');
    const passing = await start([{ name: 'broken', on, use, onError: 'pass' }]);
    const { json } = await callTool(passing, 'raw__open');
    expect(json.result.content[0].text).toBe('It is sunny.');
  },
);

test('§26.5 what guards say is counted, and a call that one refused is denied in the audit log’s terms', async () => {
  const use = await writeGuard("return { decision: 'refuse' };");
  const gateway = await start([{ name: 'counted', on: ['tools/call'], use }]);
  const { json } = await callTool(gateway, 'raw__open');
  expect(json.result.content[0].text).toBe('Refused by the guard counted.');
  const { text } = await gateway.request({ path: '/metrics' });
  expect(text).toContain(
    'guard_decisions_total{guard="counted",on="tools/call",outcome="refused"} 1',
  );
});

test('§26.1 guards are loaded anew with the file', async () => {
  const use = await writeGuard("return { decision: 'refuse', message: 'No.' };");
  const gateway = await start([]);
  expect((await callTool(gateway, 'raw__open')).json.result.isError).toBeUndefined();
  const mcpServers = { raw: server.url };
  await gateway.reload({ mcpServers, guards: [{ name: 'new', on: ['tools/call'], use }] });
  expect((await callTool(gateway, 'raw__open')).json.result.content[0].text).toBe('No.');
  await gateway.reload({ mcpServers });
  expect((await callTool(gateway, 'raw__open')).json.result.isError).toBeUndefined();
});
