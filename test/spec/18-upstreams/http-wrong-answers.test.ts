import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { UpstreamRequest } from '../../../src/mcp/upstream/upstream.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import {
  callTool,
  sessionCaller,
  statelessCaller,
  toRequest,
} from '../../support/upstreams/requests.ts';
import {
  type Respond,
  type ScriptedRequest,
  sendJson,
  startEvents,
  startScriptedHttp,
  toEvent,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const MAX_BYTES = 100_000;
const RESULT = { content: [{ type: 'text', text: 'right' }] };

const toAnother = (request: ScriptedRequest, id: unknown) => ({
  ...toResult(request, { content: ['stolen'] }),
  id,
});

/** Far more than is allowed, for as long as anybody reads. */
const flood =
  (contentType: string, begin: string, piece = 'x'.repeat(65_536)): Respond =>
  (res) => {
    res.writeHead(200, { 'content-type': contentType }).write(begin);
    let left = 1600;
    const write = () => {
      while (left > 0 && !res.destroyed) {
        left -= 1;
        if (!res.write(piece)) return;
      }
    };
    res.on('drain', write);
    write();
  };

const WRONG: readonly (readonly [what: string, respond: Respond])[] = [
  ['what is no JSON', (res) => sendJson(res, '<html>')],
  ['no UTF-8', (res) => void res.writeHead(200).end(Buffer.from([0x22, 0xff, 0x22]))],
  ['nothing', (res) => sendJson(res, '')],
  ['202, as if it were a notification', (res) => void res.writeHead(202).end()],
  ['JSON that is no message', (res) => sendJson(res, '[]')],
  [
    'a result that is no object',
    (res, { message: { id } }) => sendJson(res, { jsonrpc: '2.0', id, result: 1 }),
  ],
  [
    'result and error',
    (res, { message: { id } }) =>
      sendJson(res, { jsonrpc: '2.0', id, result: {}, error: { code: 1, message: '' } }),
  ],
  ['another id', (res, request) => sendJson(res, { ...toResult(request, RESULT), id: 987_654 })],
  ...['0%', '%.0', ' %', '%e0', '+%'].map((form): (typeof WRONG)[number] => [
    `its id as text of another form (${form})`,
    (res, request) => {
      const id = form.replace('%', String(request.message.id));
      sendJson(res, { ...toResult(request, RESULT), id });
    },
  ]),
  ['no id', (res) => sendJson(res, { jsonrpc: '2.0', result: {} })],
  [
    'another id alone in a stream',
    (res, request) => void startEvents(res, { ...toResult(request, RESULT), id: 987_654 }).end(),
  ],
  [
    'more than 100 other ids in a stream',
    (res, request) => {
      const others = Array.from({ length: 101 }, (_, id) => toAnother(request, 900_000 + id));
      startEvents(res, ...others, toResult(request, RESULT));
    },
  ],
  ['an event that is no JSON', (res) => void startEvents(res, '{"jsonrpc":')],
  [
    'a stream that ends too early',
    (res) =>
      void startEvents(res, { jsonrpc: '2.0', method: 'notifications/message', params: {} }).end(),
  ],
  [
    'half a message',
    (res, request) => {
      const text = JSON.stringify(toResult(request, RESULT));
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
      res.write(text.slice(0, 20), () => res.destroy());
    },
  ],
  [
    'half an event',
    (res, request) => {
      startEvents(res).write(toEvent(toResult(request, RESULT)).slice(0, 30), () => res.destroy());
    },
  ],
  [
    'lines that end with LF alone',
    (res) => {
      const head = 'HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: 2\n\n{}';
      res.socket?.write(head);
    },
  ],
  [
    'the size of a chunk that ends with LF alone',
    (res) => {
      res.socket?.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n');
    },
  ],
  [
    'a trailer that ends with LF alone',
    (res) => {
      res.socket?.write(
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nA: b\n\n',
      );
    },
  ],
  ['what is no HTTP', (res) => void res.socket?.end('SSH-2.0-OpenSSH\r\n\r\n')],
  [
    'headers of 100 KB',
    (res, request) => {
      for (let at = 0; at < 100; at += 1) res.setHeader(`x-${at}`, 'x'.repeat(1000));
      sendJson(res, toResult(request, RESULT));
    },
  ],
  ['100 MB', flood('application/json', '{"jsonrpc":"2.0","result":{"text":"')],
  ['an event of 100 MB', flood('text/event-stream', 'data: ')],
  [
    'an event of 100 MB with comments between its lines',
    flood('text/event-stream', '', `data: ${'x'.repeat(65_536)}\n:\n`),
  ],
  ['JSON that nests too deep', (res) => sendJson(res, '['.repeat(40_000) + ']'.repeat(40_000))],
  [
    'compressed bytes that are not said to be so',
    (res, request) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      res.end(gzipSync(JSON.stringify(toResult(request, RESULT))));
    },
  ],
];

describe.each(['session', 'stateless'] as const)('a server of the %s era', (era) => {
  const server = useFresh(() => startScriptedHttp(era));
  const opened = useFresh(() => openHttpUpstream({ url: server.url }, { maxBytes: MAX_BYTES }));
  const caller = era === 'session' ? sessionCaller() : statelessCaller();
  const call = (name: string, given: Partial<UpstreamRequest> = {}) =>
    callTool(opened.upstream, caller, name, {}, given);

  test.each(WRONG)(`§18.4 %s ends the call alone that it answers`, async (_what, respond) => {
    server.answer('tools/call', (res, request) => {
      const isRight = Object(request.message.params).name === 'right';
      if (isRight) sendJson(res, toResult(request, RESULT));
      else respond(res, request);
    });
    const [right, wrong] = await Promise.allSettled([call('right'), call('wrong')]);
    expect(right).toEqual({ status: 'fulfilled', value: RESULT });
    expect(wrong).toMatchObject({ status: 'rejected', reason: { failure: 'invalid' } });
    expect(await call('right')).toEqual(RESULT);
    expect(opened.upstream.isUp).toBe(true);
  });

  test('§18.4 a chunk that is none is what is said to be wrong, and no connection that was closed', async () => {
    server.answer('tools/call', (res) => {
      const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';
      res.socket?.write(`${head}Transfer-Encoding: chunked\r\n\r\n5\r\n{"jso\r\nxyz\r\n`);
    });
    await expect(call('any')).rejects.toMatchObject({
      failure: 'invalid',
      logReason: 'it answered no valid HTTP: a chunk of its answer is malformed',
    });
  });

  test('§18.4 a second answer to a request changes nothing, and is logged', async () => {
    server.answer('tools/call', (res, request) => {
      startEvents(res, toResult(request, RESULT), toResult(request, { content: [] })).end();
    });
    expect(await Promise.all([call('one'), call('other')])).toEqual([RESULT, RESULT]);
    const isTold = ({ msg, level }: { msg: string; level: string }) =>
      level === 'warn' && msg.includes('after its answer');
    await expect.poll(() => opened.lines.filter(isTold)).toHaveLength(1);
  });

  test('§18.4 the answer to another request that is under way ends the call that it came to', async () => {
    const ids: unknown[] = [];
    let answerFirst = () => {};
    server.answer('tools/call', (res, request) => {
      ids.push(request.message.id);
      if (Object(request.message.params).name === 'first') {
        answerFirst = () => sendJson(res, toResult(request, RESULT));
      } else {
        sendJson(res, { ...toResult(request, { content: ['stolen'] }), id: ids[0] });
        answerFirst();
      }
    });
    const first = call('first');
    await expect.poll(() => ids).toHaveLength(1);
    await expect(call('second')).rejects.toMatchObject({ failure: 'invalid' });
    expect(await first).toEqual(RESULT);
  });

  test('§18.4 events of other ids in a stream are skipped: they end neither its own call, nor the ones that they name', async () => {
    const ids: number[] = [];
    let answerFirst = () => {};
    server.answer('tools/call', (res, request) => {
      ids.push(Number(request.message.id));
      const { name } = Object(request.message.params);
      if (name === 'first') answerFirst = () => sendJson(res, toResult(request, RESULT));
      if (name === 'third') sendJson(res, toResult(request, RESULT));
      if (name !== 'second') return;
      const [first = 0, own = 0] = ids;
      const error = { jsonrpc: '2.0', id: first, error: { code: -1, message: 'stolen' } };
      // Under way, the next one, nobody's, and its own in another form.
      const others = [first, own + 1, 987_654, `0${own}`].map((id) => toAnother(request, id));
      startEvents(res, error, ...others, toResult(request, RESULT));
    });
    const first = call('first');
    await expect.poll(() => ids).toHaveLength(1);
    expect(await call('second')).toEqual(RESULT);
    answerFirst();
    expect(await first).toEqual(RESULT);
    expect(await call('third')).toEqual(RESULT);
    const isTold = ({ msg, level }: { msg: string; level: string }) =>
      level === 'warn' && msg.includes('another request than the one that was sent');
    expect(opened.lines.filter(isTold)).toHaveLength(1);
  });

  test('§18.4 an argument that no header can be named after ends that call', async () => {
    const wrong = call('wrong', { mirrored: { 'Mcp-Param-\r\nx': 'y' } });
    if (era === 'stateless') await expect(wrong).rejects.toMatchObject({ failure: 'unavailable' });
    else await wrong;
    expect(opened.upstream.isUp).toBe(true);
  });

  test('§18.4 a server that goes away in the middle of a call ends that call', async () => {
    server.answer('tools/call', (res) => void startEvents(res));
    await opened.upstream.describe(caller);
    const ended = expect(call('any')).rejects.toMatchObject({ failure: 'invalid' });
    await expect.poll(() => server.count('tools/call')).toBe(1);
    server.server.closeAllConnections();
    await ended;
  });

  test('§18.4 what the server writes after the client has left reaches nobody', async () => {
    const stop = new AbortController();
    let late = () => {};
    server.answer('tools/call', (res, request) => {
      startEvents(res);
      late = () => void res.end(toEvent(toResult(request, RESULT)));
    });
    const left = expect(call('left', { signal: stop.signal })).rejects.toMatchObject({
      failure: 'aborted',
    });
    await expect.poll(() => server.count('tools/call')).toBe(1);
    stop.abort();
    await left;
    late();
    server.answer('tools/call', (res, request) => sendJson(res, toResult(request, RESULT)));
    expect(await call('next')).toEqual(RESULT);
  });
});

test.each([
  ['an answer', 'application/json', '', ''],
  ['an event', 'text/event-stream', 'data: ', '\n\n'],
])(
  '§18.4 %s that comes byte by byte takes no more memory than its size',
  async (_what, type, begin, end) => {
    const server = closeAfterTest(await startScriptedHttp('session'));
    const { upstream } = closeAfterTest(
      await openHttpUpstream({ url: server.url }, { maxBytes: 8_000_000 }),
    );
    server.answer('tools/call', (res, request) => {
      res.writeHead(200, { 'content-type': type }).flushHeaders();
      writeByteByByte(res, 6_000_000, begin, JSON.stringify(toResult(request, RESULT)) + end);
    });
    const caller = sessionCaller();
    await upstream.describe(caller);
    const before = process.memoryUsage.rss();
    let most = before;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss());
    }, 10);
    try {
      expect(await callTool(upstream, caller, 'any')).toEqual(RESULT);
    } finally {
      clearInterval(watch);
    }
    expect((most - before) / 1_000_000).toBeLessThan(300);
  },
  120_000,
);

/** Each space is a chunk of its own (RFC 9112 §7.1). */
function writeByteByByte(res: ServerResponse, count: number, begin: string, end: string): void {
  const { socket } = res;
  const many = '1\r\n \r\n'.repeat(10_000);
  let left = count / 10_000;
  const toChunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
  function write(): void {
    while (left > 0) {
      left -= 1;
      if (socket?.write(many) === false) return void socket.once('drain', write);
    }
    socket?.write(`${toChunk(end)}0\r\n\r\n`);
  }
  if (begin !== '') socket?.write(toChunk(begin));
  write();
}

test.each(['the answer to a call', 'the stream of a session'])(
  '§18.4 thousands of requests on %s are no thousands of connections',
  async (where) => {
    const server = closeAfterTest(await startScriptedHttp('session'));
    const { upstream } = closeAfterTest(await openHttpUpstream({ url: server.url }));
    const pings = Array.from({ length: 2000 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' }));
    const isCall = where === 'the answer to a call';
    // Whoever answers waits.
    server.answer('response', () => {});
    server.answer(isCall ? 'tools/call' : 'GET', (res) => void startEvents(res, ...pings));
    const caller = sessionCaller();
    const stop = new AbortController();
    const stopListening = upstream.listen(caller, { listChanged() {}, resourceUpdated() {} });
    const called = isCall && callTool(upstream, caller, 'any', {}, { signal: stop.signal });
    await expect.poll(() => server.count('response'), { timeout: 20_000 }).toBeGreaterThan(30);
    // Others are served, and by then all that is sent has come.
    for (let time = 0; time < 20; time += 1) {
      expect(await upstream.request(sessionCaller(), toRequest('tools/list', {}))).toEqual({
        content: [],
      });
    }
    expect(server.count('response')).toBeLessThan(100);
    stopListening();
    stop.abort();
    await Promise.allSettled([called]);
  },
);
