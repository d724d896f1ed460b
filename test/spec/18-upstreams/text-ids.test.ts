// Servers that echo the gateway's numbers as text, as ids and progress tokens; whatever else is text is another id.
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/platform/json.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { listenOnLoopback } from '../../support/upstreams/listen.ts';
import { startRawServer } from '../../support/upstreams/raw-server.ts';
import { callTool, sessionCaller, statelessCaller } from '../../support/upstreams/requests.ts';
import {
  type Respond,
  type ScriptedRequest,
  sendJson,
  startEvents,
  startScriptedHttp,
  toEvent,
} from '../../support/upstreams/scripted-http.ts';
import { callTool as callProgram, toCall, useStdio } from '../../support/upstreams/stdio.ts';

const toText = ({ message }: ScriptedRequest) => String(message.id);
const tokenOf = ({ message }: ScriptedRequest) =>
  String(Object(Object(message.params)._meta).progressToken);
const contentOf = (text: string) => ({ content: [{ type: 'text', text }] });
const ERROR = { code: -32000, message: 'mine' };

const MEDIA: Readonly<Record<string, (res: ServerResponse, message: object) => void>> = {
  JSON: (res, message) => sendJson(res, { jsonrpc: '2.0', ...message }),
  'an event stream': (res, message) => void startEvents(res, { jsonrpc: '2.0', ...message }).end(),
};

describe.each(['session', 'stateless'] as const)('a server of the %s era', (era) => {
  const server = useFresh(() => startScriptedHttp(era));
  const opened = useFresh(() => openHttpUpstream({ url: server.url }));
  const caller = era === 'session' ? sessionCaller() : statelessCaller();

  describe.each(Object.entries(MEDIA))('§18.4 ids as text, by %s:', (_medium, send) => {
    test.each([10, 1000, 5000, 50_000])('a result of %i characters is taken', async (length) => {
      const result = contentOf('x'.repeat(length));
      server.answer('tools/call', (res, request) => send(res, { id: toText(request), result }));
      expect(await callTool(opened.upstream, caller, 'any')).toEqual(result);
    });

    test('an error is taken', async () => {
      server.answer('tools/call', (res, request) =>
        send(res, { id: toText(request), error: ERROR }),
      );
      await expect(callTool(opened.upstream, caller, 'any')).rejects.toMatchObject({
        failure: 'error',
        jsonRpcError: ERROR,
      });
    });
  });

  test('§18.3 progress by the token as text reaches its call; by another text it does not', async () => {
    const heard: unknown[] = [];
    server.answer('tools/call', (res, request) => {
      const tokens = [tokenOf(request), `0${tokenOf(request)}`, `${tokenOf(request)}.0`];
      const events = tokens.map((progressToken, progress) => ({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken, progress },
      }));
      const answer = { jsonrpc: '2.0', id: toText(request), result: contentOf('done') };
      startEvents(res, ...events, answer).end();
    });
    const onProgress = ({ progress }: JsonObject) => void heard.push(progress);
    await callTool(opened.upstream, caller, 'any', {}, { onProgress });
    expect(heard).toEqual([0]);
  });
});

describe('a session', () => {
  const server = useFresh(() => startScriptedHttp('session'));
  const opened = useFresh(() => openHttpUpstream({ url: server.url }));

  test('§18.3 progress by the token as text on its own stream reaches its call', async () => {
    const caller = sessionCaller();
    let stream: ServerResponse | undefined;
    server.answer('GET', (res) => {
      stream = startEvents(res);
    });
    opened.upstream.listen(caller, { listChanged() {}, resourceUpdated() {} });
    await expect.poll(() => stream).toBeDefined();
    const heard: unknown[] = [];
    let answer = () => {};
    server.answer('tools/call', (res, request) => {
      const params = { progressToken: tokenOf(request), progress: 1 };
      stream?.write(toEvent({ jsonrpc: '2.0', method: 'notifications/progress', params }));
      answer = () => MEDIA.JSON?.(res, { id: request.message.id, result: contentOf('done') });
    });
    const onProgress = ({ progress }: JsonObject) => void heard.push(progress);
    const calling = callTool(opened.upstream, caller, 'any', {}, { onProgress });
    await expect.poll(() => heard).toEqual([1]);
    answer();
    await calling;
  });

  test('§18.3 400 with the id of the call as text is about the call, whatever it says: it is not sent again', async () => {
    const error = { code: -32000, message: 'no session of yours' };
    const refuse: Respond = (res, request) =>
      sendJson(res, { jsonrpc: '2.0', id: toText(request), error }, 400);
    server.answer('tools/call', refuse);
    await expect(callTool(opened.upstream, sessionCaller(), 'any')).rejects.toMatchObject({
      jsonRpcError: error,
    });
    expect(server.count('tools/call')).toBe(1);
    expect(server.count('initialize')).toBe(1);
  });

  test('§18.3 a question is cancelled by its id as text, too', async () => {
    let cancelled = 0;
    server.answer('tools/call', (res, request) => {
      const stream = startEvents(res, {
        jsonrpc: '2.0',
        id: 7,
        method: 'elicitation/create',
        params: { message: 'Sure?', requestedSchema: { type: 'object', properties: {} } },
      });
      const cancel = (requestId: string) =>
        stream.write(
          toEvent({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }),
        );
      cancel('7');
      stream.end(toEvent({ jsonrpc: '2.0', id: request.message.id, result: contentOf('done') }));
    });
    const onRequest = (_question: unknown, signal: { addEventListener: AbortListener }) =>
      new Promise<JsonObject>((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          cancelled += 1;
          reject(new Error('cancelled'));
        });
      });
    await callTool(opened.upstream, sessionCaller(), 'any', {}, { onRequest });
    expect(cancelled).toBe(1);
    expect(server.count('response')).toBe(0);
  });
});

type AbortListener = (type: 'abort', listener: () => void) => void;

test('§18.3 a long result with its id as text reaches its client to the letter', async () => {
  const result = `{"content":[],"structuredContent":{"sum":12345678901234567890.125,"text":"${'x'.repeat(20_000)}"}}`;
  const orders = [
    (id: string) => `{"jsonrpc":"2.0","id":"${id}","result":${result}}`,
    (id: string) => `{"result":${result},"jsonrpc":"2.0","id":"${id}"}`,
    (id: string) => `{"jsonrpc":"2.0","result":${result},"id":"${id}"}`,
  ];
  let write = (_id: string) => '';
  const server = closeAfterTest(
    await startRawServer((res, id) => {
      res.writeHead(200, { 'content-type': 'application/json' }).end(write(String(id)));
    }),
  );
  const gateway = await startForTest({ file: { mcpServers: { one: { url: server.url } } } });
  const session = await gateway.open();
  for (const order of orders) {
    write = order;
    const { text } = await gateway.call(session, 'tools/call', { name: 'one__any', arguments: {} });
    expect(text).toBe(`{"jsonrpc":"2.0","result":${result},"id":1}`);
  }
});

test('§18.3 HTTP+SSE: ids as text are taken, those of another form are not', async () => {
  let stream: ServerResponse | undefined;
  const say = (message: object) => stream?.write(toEvent({ jsonrpc: '2.0', ...message }));
  const server = closeAfterTest(
    await listenOnLoopback(async (req, res) => {
      if (req.method === 'GET') {
        stream = res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.write('event: endpoint\ndata: /messages\n\n');
        return;
      }
      let text = '';
      for await (const piece of req.setEncoding('utf8')) text += piece;
      const { id, method } = JSON.parse(text);
      res.writeHead(202).end();
      if (id === undefined) return;
      const result = method === 'initialize' ? INITIALIZED : contentOf('right');
      if (method === 'tools/call') say({ id: `0${id}`, result: contentOf('wrong') });
      say({ id: String(id), result });
    }),
  );
  const { upstream } = closeAfterTest(
    await openHttpUpstream({ url: server.url, transport: 'sse' }),
  );
  expect(await callTool(upstream, sessionCaller(), 'any')).toEqual(contentOf('right'));
});

const INITIALIZED = {
  protocolVersion: '2024-11-05',
  capabilities: { tools: {} },
  serverInfo: { name: 'sse', version: '1' },
};

describe('stdio', () => {
  test('§18.4 stdio: a result with its id as text is taken', async () => {
    expect(await callProgram(useStdio(), 'textId')).toBe('mine');
  });

  test('§18.4 stdio: an error with its id as text is taken', async () => {
    await expect(callProgram(useStdio(), 'textIdOfError')).rejects.toMatchObject({
      failure: 'error',
      jsonRpcError: ERROR,
    });
  });

  test('§18.3 stdio: progress by the token as text reaches its call', async () => {
    const { upstream } = useStdio();
    const heard: unknown[] = [];
    const onProgress = ({ progress }: JsonObject) => void heard.push(progress);
    await upstream.request(sessionCaller(), toCall('textProgressToken', {}, { onProgress }));
    expect(heard).toEqual([1]);
  });
});
