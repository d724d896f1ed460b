// Numbers keep their spelling beside arguments and results, too: in what servers ask, list and tell, in what clients answer, in what
// somebody approves; and rules decide on no other number than the server gets.
import type { ServerResponse } from 'node:http';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openClient } from '../../support/clients/session-client.ts';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { createAnyJsonText } from '../../support/fuzz/json-texts.ts';
import { startGuardServer } from '../../support/guards/guard-server.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { chooseCount } from '../../support/tools/long-run.ts';
import { type CatalogGateway, startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { startEchoingServers } from '../../support/upstreams/echoing-servers.ts';
import {
  type Respond,
  type ScriptedHttp,
  sendJson,
  startEvents,
  startScriptedHttp,
  toEvent,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const NUMBERS = '[7205759403792793601,1e400,1.0,-0,0.12345678901234567891]';

const ABLE = { elicitation: {}, sampling: {} };

/** A call of 2026-07-28 whose params end with `more`, as it is written. */
async function callStateless(
  gateway: CatalogGateway,
  name: string,
  more: string,
  given: {
    readonly meta?: object;
    readonly method?: string;
    readonly headers?: object;
    readonly token?: string;
  } = {},
) {
  const { message, headers } = statelessRequest(
    given.method ?? 'tools/call',
    given.method === 'tools/get' ? {} : { name },
    {
      meta: {
        'io.modelcontextprotocol/clientCapabilities': {
          ...ABLE,
          extensions: { 'io.modelcontextprotocol/tasks': {} },
        },
        ...given.meta,
      },
    },
  );
  const written = JSON.stringify(message).replace('"params":{', `"params":{${more},`);
  const token = given.token ?? (await gateway.issuer.sign({ sub: 'ann' }));
  return gateway.rpc(written, { token, headers: { ...headers, ...given.headers } });
}

const write =
  (result: string): Respond =>
  (res, { message }) =>
    sendJson(res, `{"jsonrpc":"2.0","id":${message.id},"result":${result}}`);

const LISTED = `{"tools":[{"name":"any","description":"Counts rows","inputSchema":{"type":"object","properties":{"a":{"enum":${NUMBERS},"maximum":1e400}}},"_meta":{"x/y":1.0}}]}`;

async function startServer(era: 'session' | 'stateless'): Promise<ScriptedHttp> {
  const server = closeAfterTest(await startScriptedHttp(era));
  const complete = era === 'stateless' ? '"resultType":"complete",' : '';
  server.answer('tools/list', write(LISTED.replace('{', `{${complete}`)));
  return server;
}

const startGateway = async (server: ScriptedHttp, more: object = {}) =>
  startForTest({ file: { mcpServers: { one: { url: server.url } }, ...more } });

const OF_CALL = (server: ScriptedHttp, method = 'tools/call') =>
  server.received.filter(({ message }) => message.method === method).map(({ text }) => text);

test.each(['session', 'stateless'] as const)(
  '§18.3 numbers: entries of the lists of a server of the %s era, and `_meta` of a client, are as they were spelled',
  async (era) => {
    const server = await startServer(era);
    const gateway = await startGateway(server);
    const token = await gateway.issuer.sign({ sub: 'ann' });
    const session = await gateway.open({ token });
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const { text } = await gateway.rpc(list, { token, session });
    expect(text).toContain(`"properties":{"a":{"enum":${NUMBERS},"maximum":1e400}}`);
    expect(text).toContain('"_meta":{"x/y":1.0}');
    await gateway.rpc(
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__any","_meta":{"x/a" : ${NUMBERS},"progressToken":1}}}`,
      { token, session },
    );
    expect(OF_CALL(server)[0]).toContain(`"x/a":${NUMBERS}`);
  },
);

test('§25.3 numbers: tools that are found, described or pinned have them as they were spelled', async () => {
  const server = await startServer('session');
  const views = { some: { servers: ['one'], search: true, pinned: ['one__any'] } };
  const gateway = await startForTest({
    file: { mcpServers: { one: { url: server.url } }, views },
    view: 'some',
  });
  const token = await gateway.issuer.sign({ sub: 'ann' });
  const session = await gateway.open({ token });
  const ask = async (method: string, params: object = {}) =>
    (await gateway.rpc({ jsonrpc: '2.0', id: 1, method, params }, { token, session })).text;
  const whole = `"properties":{"a":{"enum":${NUMBERS},"maximum":1e400}}`;
  expect(await ask('tools/list')).toContain(whole);
  for (const given of [
    { name: 'search_tools', arguments: { query: 'count rows' } },
    { name: 'describe_tools', arguments: { names: ['one__any'] } },
  ]) {
    expect((await ask('tools/call', given)).replaceAll('\\"', '"')).toContain(whole);
  }
});

test('§18.3 numbers: what a server of the session era asks, is answered and tells meanwhile is as it was spelled', async () => {
  const server = await startServer('session');
  let answered: (() => void) | undefined;
  server.answer('tools/call', (res, { message }) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    const say = (text: string) => res.write(`data: {"jsonrpc":"2.0",${text}}\n\n`);
    say(`"method":"notifications/message","params":{"level":"error","data":{"at":${NUMBERS}}}`);
    say(
      `"id":7,"method":"elicitation/create","params":{"message":"How many?","requestedSchema":{"type":"object","properties":{"n":{"type":"number","maximum":1e400,"default":1.0}}}}`,
    );
    answered = () =>
      res.end(`data: {"jsonrpc":"2.0","id":${message.id},"result":{"content":[]}}\n\n`);
  });
  server.answer('response', (res) => {
    res.writeHead(202).end();
    answered?.();
  });
  const gateway = await startGateway(server);
  const token = await gateway.issuer.sign({ sub: 'ann' });
  const opened = await gateway.rpc(
    {
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: ABLE,
        clientInfo: { name: 'c', version: '1' },
      },
    },
    { token },
  );
  const session = opened.headers['mcp-session-id'] ?? '';
  await gateway.rpc(
    { jsonrpc: '2.0', id: 1, method: 'logging/setLevel', params: { level: 'debug' } },
    { token, session },
  );
  const port = await gateway.listen();
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    headers: {
      host: new URL(gateway.baseUrl).host,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`,
      'mcp-session-id': session,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 2,
      method: 'tools/call',
      params: { name: 'one__any' },
    }),
  });
  let events = '';
  let hasAnswered = false;
  for await (const piece of response.body ?? []) {
    events += Buffer.from(piece).toString();
    const [, question] = /^data: (.*"elicitation\/create".*)\n\n/m.exec(events) ?? [];
    if (question === undefined || hasAnswered) continue;
    hasAnswered = true;
    const answer = `{"jsonrpc":"2.0","id":${JSON.stringify(JSON.parse(question).id)},"result":{"action":"accept", "content":{"n":${NUMBERS}}}}`;
    await gateway.rpc(answer, { token, session });
  }
  expect(events).toContain(`"data":{"at":${NUMBERS}}`);
  expect(events).toContain('"maximum":1e400,"default":1.0');
  const [sent] = server.received.filter(({ message }) => 'result' in message);
  expect(sent?.text).toContain(`"result":{"action":"accept", "content":{"n":${NUMBERS}}}`);
});

const LOGGED = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":{"at":${NUMBERS}}}}`;

/** On the stream of its session, as Rust's SDK does, in the middle of a call. */
async function startLoggingAside() {
  const server = await startServer('session');
  const streams = new Map<unknown, ServerResponse>();
  let call: { readonly session: unknown; end(): void } | undefined;
  const log = () => {
    // The answer to the question shows that what came before has been read.
    const question = toEvent({ jsonrpc: '2.0', id: 7, method: 'ping' });
    if (call) streams.get(call.session)?.write(toEvent(LOGGED) + question);
  };
  server.answer('GET', (res, { headers }) => {
    streams.set(headers['mcp-session-id'], startEvents(res));
    log();
  });
  server.answer('tools/call', (res, request) => {
    const end = () => sendJson(res, toResult(request, { content: [] }));
    call = { session: request.headers['mcp-session-id'], end };
    log();
  });
  server.answer('response', (res) => {
    res.writeHead(202).end();
    call?.end();
  });
  return { url: server.url };
}

const LOGGING_PROGRAM = {
  command: process.execPath,
  isolation: 'session',
  args: [
    '-e',
    `require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line);
      const answer = (result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
      if (method === 'initialize')
        answer({ protocolVersion: '2025-11-25', capabilities: { tools: {}, logging: {} }, serverInfo: { name: 's', version: '1' } });
      else if (method === 'tools/list') answer({ tools: [{ name: 'any', inputSchema: { type: 'object' } }] });
      else if (method === 'tools/call') {
        console.log(${JSON.stringify(LOGGED)});
        answer({ content: [] });
      } else if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'No' } }));
    });`,
  ],
};

test.each([
  ['on the stream of its session', startLoggingAside],
  ['as a program', async () => LOGGING_PROGRAM],
])('§18.3 numbers: what a server logs %s is as it was spelled', async (_where, startLogging) => {
  const gateway = await startForTest({
    file: { mcpServers: { one: await startLogging() } },
  });
  const token = await gateway.issuer.sign({ sub: 'ann' });
  const { session } = await openClient(gateway, { capabilities: ABLE, token });
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'one__any' } };
  const headers = { accept: 'application/json, text/event-stream' };
  const { text } = await gateway.rpc(call, { token, session, headers });
  expect(text).toContain(`"data":{"at":${NUMBERS}}`);
});

test('§18.3 numbers: what a server of 2026-07-28 asks, and what it is answered, is as it was spelled', async () => {
  const server = await startServer('stateless');
  server.answer('tools/call', (res, request) => {
    const isAnswered = 'inputResponses' in Object(request.message.params);
    const result = isAnswered
      ? '{"resultType":"complete","content":[]}'
      : `{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"n":{"type":"number","maximum":1e400}}}}}}}`;
    write(result)(res, request);
  });
  const gateway = await startGateway(server);
  const asked = await callStateless(gateway, 'one__any', '"arguments":{}');
  expect(asked.text).toContain('"maximum":1e400');
  const { requestState } = asked.json.result;
  await callStateless(
    gateway,
    'one__any',
    `"arguments":{},"requestState":${JSON.stringify(requestState)},"inputResponses":{"q":{"action":"accept","content":{"n": ${NUMBERS}}}}`,
  );
  expect(OF_CALL(server)[1]).toContain(`"q":{"action":"accept","content":{"n": ${NUMBERS}}}`);
});

test('§18.3 numbers: an error of a server has its data as it was spelled', async () => {
  const server = await startServer('session');
  const gateway = await startGateway(server);
  for (const status of [200, 400]) {
    server.answer('tools/call', (res, { message }) =>
      sendJson(
        res,
        `{"jsonrpc":"2.0","id":${message.id},"error":{"code":-32099,"message":"No","data":{"rows":${NUMBERS}}}}`,
        status,
      ),
    );
    const { text } = await callStateless(gateway, 'one__any', '"arguments":{}');
    expect(text).toContain(`"data":{"rows":${NUMBERS}}`);
  }
});

test('§29.5 numbers: what comes of a task of a server is as it was spelled', async () => {
  const server = await startServer('stateless');
  const task = (status: string) =>
    `"taskId":"t","status":"${status}","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":60000`;
  server.answer('tools/call', write(`{"resultType":"task",${task('working')}}`));
  server.answer(
    'tasks/get',
    write(
      `{"resultType":"complete",${task('completed')},"result":{"content":[],"structuredContent":{"rows":${NUMBERS}}}}`,
    ),
  );
  const gateway = await startGateway(server);
  const begun = await callStateless(gateway, 'one__any', '"arguments":{}');
  const { taskId } = begun.json.result;
  const { text } = await callStateless(gateway, taskId, `"taskId":${JSON.stringify(taskId)}`, {
    method: 'tasks/get',
    headers: { 'mcp-name': taskId },
  });
  expect(text).toContain(`"structuredContent":{"rows":${NUMBERS}}`);
});

test('§27 numbers: an approval is of the number as it is spelled, which is shown and sent', async () => {
  const gateway = await startForTest({
    file: {
      mcpServers: await startEchoingServers(),
      rules: [
        { who: 'everyone', may: ['*'] },
        { who: 'everyone', may: ['json__*'], ask: 'user' },
      ],
    },
  });
  const args = (id: string) => `"arguments":{"order":${id},"back":"1"}`;
  const call = (id: string, more = '') => callStateless(gateway, 'json__echo', args(id) + more);
  const agree = async () => {
    const { requestState, inputRequests } = (await call('7205759403792793601')).json.result;
    expect(inputRequests.approval.params.message).toContain('7205759403792793601');
    const inputResponses = { approval: { action: 'accept', content: { decision: 'once' } } };
    return `,${JSON.stringify({ requestState, inputResponses }).slice(1, -1)}`;
  };
  const other = await call('7205759403792793600', await agree());
  expect(other.text).not.toContain('\\"order\\":7205759403792793600');
  const same = await call('7205759403792793601', await agree());
  expect(same.json.result.content[0].text).toContain('"arguments":{"order":7205759403792793601,');
});

test.each([
  ['7205759403792793601', 'args.order < 8e18', 'refused'],
  ['1e400', 'args.order > 5', 'refused'],
  ['0.12345678901234567891', 'args.order < 1', 'refused'],
  ['1.0', 'args.order == 1', 'called'],
  ['-0', 'args.order == 0', 'called'],
  ['100e-2', 'args.order == 1', 'called'],
  ['9007199254740993', '!has(args.other)', 'called'],
])('§18.5 numbers: with %s, a call that needs %s is %s', async (number, when, expected) => {
  const gateway = await startForTest({
    file: {
      mcpServers: await startEchoingServers(),
      rules: [{ who: 'everyone', may: ['json__*'], when }],
    },
  });
  const { text } = await callStateless(
    gateway,
    'json__echo',
    `"arguments":{"order":${number},"back":"1"}`,
  );
  if (expected === 'called') expect(text).toContain(`\\"order\\":${number},`);
  else expect(text).toContain(`A rule looks at the number \\"${number}\\"`);
});

test('§18.5 numbers: a rule that asks does so where it cannot compare', async () => {
  const gateway = await startForTest({
    file: {
      mcpServers: await startEchoingServers(),
      rules: [
        { who: 'everyone', may: ['*'] },
        { who: 'everyone', may: ['json__*'], when: 'args.order > 9e18', ask: 'user' },
      ],
    },
  });
  const call = (number: string) =>
    callStateless(gateway, 'json__echo', `"arguments":{"order":${number},"back":"1"}`);
  expect((await call('7205759403792793601')).json.result.resultType).toBe('input_required');
  expect((await call('5')).json.result.resultType).toBe('complete');
});

test('§27 numbers: any JSON that somebody agrees to reaches the server as it was written', async () => {
  const gateway = await startForTest({
    file: {
      mcpServers: await startEchoingServers(),
      rules: [
        { who: 'everyone', may: ['*'] },
        { who: 'everyone', may: ['json__*'], ask: 'user' },
      ],
    },
  });
  const inputResponses = { approval: { action: 'accept', content: { decision: 'once' } } };
  await fc.assert(
    fc.asyncProperty(createAnyJsonText(true), async (given) => {
      const args = `"arguments":{"given": ${given},"back":"1"}`;
      const { requestState } = (await callStateless(gateway, 'json__echo', args)).json.result;
      const more = JSON.stringify({ requestState, inputResponses }).slice(1, -1);
      const { json } = await callStateless(gateway, 'json__echo', `${args},${more}`);
      expect(json.result.content[0].text).toContain(args);
    }),
    { numRuns: chooseCount(15, 300) },
  );
});

test.each(['http', 'mcp'] as const)(
  '§26.2 numbers: a guard over %s is told them, and changes a call to them, as they are spelled',
  async (kind) => {
    const change =
      '{"decision":"change","value":{"name":"json__echo","arguments":{"order":7205759403792793602,"back":"1"}}}';
    const web = closeAfterTest(await startGuardServer(() => change));
    const keeper = closeAfterTest(await startScriptedHttp('session'));
    keeper.answer(
      'interceptors/list',
      write(
        '{"interceptors":[{"name":"look","type":"mutation","hooks":[{"events":["tools/call"],"phase":"request"}]}]}',
      ),
    );
    keeper.answer('interceptor/invoke', write(change));
    const gateway = await startForTest({
      file: {
        mcpServers: { ...(await startEchoingServers()), keeper: { url: keeper.url } },
        guards: [
          {
            name: 'g',
            on: ['tools/call'],
            servers: ['json'],
            use: kind === 'http' ? { http: { url: web.url } } : { mcp: 'keeper' },
          },
        ],
      },
    });
    const args = '"arguments":{"order":1e400,"back":"1"}';
    const { text } = await callStateless(gateway, 'json__echo', args);
    expect(text).toContain('\\"order\\":7205759403792793602,');
    const [invoked = ''] = OF_CALL(keeper, 'interceptor/invoke');
    // As JavaScript reads 1e400; of a double in between null is told.
    const told = kind === 'http' ? web.asked[0]?.body : JSON.parse(invoked).params;
    expect(told.payload.arguments.order).toBe(Number.POSITIVE_INFINITY);
  },
);

test('§18.4 numbers: a header that repeats an argument has it as it was spelled', async () => {
  const server = await startServer('stateless');
  const schema =
    '{"type":"object","properties":{"order":{"type":"integer","x-mcp-header":"Order"}}}';
  server.answer(
    'tools/list',
    write(`{"resultType":"complete","tools":[{"name":"any","inputSchema":${schema}}]}`),
  );
  server.answer('tools/call', write('{"resultType":"complete","content":[]}'));
  const gateway = await startGateway(server);
  for (const number of ['7205759403792793601', '1.0', '1e400']) {
    const call = (told: string) =>
      callStateless(gateway, 'one__any', `"arguments":{"order":${number}}`, {
        headers: { 'mcp-param-order': told },
      });
    expect((await call('7205759403792793600')).json.error?.code).toBe(-32020);
    expect((await call(number)).json.error).toBeUndefined();
    const sent = server.received.findLast(({ message }) => message.method === 'tools/call');
    expect(sent?.headers['mcp-param-order']).toBe(number);
  }
});

test('§18.3 numbers: an answer that reaches another replica than the call has them as they were spelled', async () => {
  const redis = closeAfterTest(await startRedis());
  const server = await startServer('session');
  let finish: (() => void) | undefined;
  server.answer('tools/call', (res, { message }) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write(
      'data: {"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}\n\n',
    );
    finish = () =>
      res.end(
        `data: {"jsonrpc":"2.0","id":${message.id},"result":{"content":[],"structuredContent":{"rows":${NUMBERS}}}}\n\n`,
      );
  });
  server.answer('response', (res) => {
    res.writeHead(202).end();
    finish?.();
  });
  const start = async (env: Readonly<Record<string, string>>) =>
    startForTest({
      file: { mcpServers: { one: { url: server.url } } },
      env: { REDIS_URL: redis.url, ...env },
    });
  const first = await start({});
  const second = await start({ OIDC_ISSUER: first.issuer.url });
  const asked = await callStateless(first, 'one__any', '"arguments":{}');
  const { requestState, inputRequests } = asked.json.result;
  const [key = ''] = Object.keys(inputRequests);
  const answer = `{"action":"accept","content":{"n": ${NUMBERS}}}`;
  const more = `"requestState":${JSON.stringify(requestState)},"inputResponses":{${JSON.stringify(key)}:${answer}}`;
  const token = await first.issuer.sign({ sub: 'ann' });
  const { text } = await callStateless(second, 'one__any', `"arguments":{},${more}`, { token });
  const [sent] = server.received.filter(({ message }) => 'result' in message);
  expect(sent?.text).toContain(`"result":${answer}`);
  expect(text).toContain(`"structuredContent":{"rows":${NUMBERS}}`);
});

/** Whoever looks for arguments by their name alone finds others, of the same value. */
test.each([
  { where: 'beside params', before: '"x":{"arguments":{"n":1}},', named: '"arguments"' },
  { where: 'that are there twice', before: '', twice: '"arguments":{"n":1},' },
  { where: 'within _meta', before: '', twice: '"_meta":{"x/y":{"arguments":{"n":1}}},' },
  {
    where: 'whose name is written by codes',
    before: '"arguments":{"n":1},',
    named: '"argu\\u006dents"',
  },
])('§18.3 numbers of arguments are those that count, and not those $where', async (row) => {
  const { before, named = '"arguments"', twice = '' } = row;
  const server = await startServer('session');
  let sent = '';
  server.answer('tools/call', (res, request) => {
    sent = request.text;
    sendJson(res, toResult(request, { content: [] }));
  });
  const gateway = await startGateway(server);
  const session = await gateway.open();
  const params = `{"name":"one__any",${twice}${named}:{"n":1.0}}`;
  await gateway.rpc(`{"jsonrpc":"2.0",${before}"id":1,"method":"tools/call","params":${params}}`, {
    session,
  });
  expect(sent).toContain('"arguments":{"n":1.0}');
});
