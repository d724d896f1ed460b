// §18.4, RFC 9110 §8.4: servers, or proxies in front of them, that compress what they were asked to send as it is.
import type { ServerResponse } from 'node:http';
import {
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createDeflate,
  createDeflateRaw,
  createGzip,
  deflateRawSync,
  deflateSync,
  gzipSync,
} from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { GATEWAY_CALLER, type UpstreamRequest } from '../../../src/mcp/upstream/upstream.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { callTool, sessionCaller, statelessCaller } from '../../support/upstreams/requests.ts';
import {
  type ScriptedRequest,
  sendJson,
  startScriptedHttp,
  toError,
  toEvent,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const MAX_BYTES = 100_000;
const RESULT = { content: [{ type: 'text', text: 'right' }] };

const FLUSH = { flush: constants.Z_SYNC_FLUSH };
const CODINGS = [
  { coding: 'gzip', compress: gzipSync, open: () => createGzip(FLUSH) },
  { coding: 'X-GZIP', compress: gzipSync, open: () => createGzip(FLUSH) },
  { coding: 'deflate', compress: deflateSync, open: () => createDeflate(FLUSH) },
  { coding: 'deflate', compress: deflateRawSync, open: () => createDeflateRaw(FLUSH) },
  {
    coding: 'br',
    compress: brotliCompressSync,
    open: () => createBrotliCompress({ flush: constants.BROTLI_OPERATION_FLUSH }),
  },
] as const;

const begin = (res: ServerResponse, coding: string, type = 'application/json') =>
  res.writeHead(200, { 'content-type': type, 'content-encoding': coding });

const answerOf = (request: ScriptedRequest, result: object = RESULT) =>
  JSON.stringify(toResult(request, { ...result }));

describe.each(['session', 'stateless'] as const)('a server of the %s era', (era) => {
  const server = useFresh(() => startScriptedHttp(era));
  const opened = useFresh(() => openHttpUpstream({ url: server.url }, { maxBytes: MAX_BYTES }));
  const caller = era === 'session' ? sessionCaller() : statelessCaller();
  const call = (name = 'any', given: Partial<UpstreamRequest> = {}) =>
    callTool(opened.upstream, caller, name, {}, given);

  test('§18.4 each request asks for what is not compressed', async () => {
    const capabilities = { tools: { listChanged: true } };
    const serverInfo = { name: 'raw', version: '1' };
    server.answer('initialize', (res, request) => {
      res.setHeader('mcp-session-id', 'one');
      sendJson(res, toResult(request, { protocolVersion: '2025-11-25', capabilities, serverInfo }));
    });
    await call();
    const stop = opened.upstream.listen(caller, { listChanged() {}, resourceUpdated() {} });
    if (era === 'session') await expect.poll(() => server.count('GET')).toBeGreaterThan(0);
    stop();
    await opened.upstream.endSession(caller);
    await opened.upstream.describe(GATEWAY_CALLER);
    expect(new Set(server.received.map(({ headers }) => headers['accept-encoding']))).toEqual(
      new Set(['identity']),
    );
  });

  test.each(CODINGS)('§18.4 an answer in $coding is read', async ({ coding, compress }) => {
    server.answer('tools/call', (res, request) => {
      begin(res, coding).end(compress(answerOf(request)));
    });
    expect(await call()).toEqual(RESULT);
  });

  test.each(CODINGS)('§18.4 so it is one byte at a time: $coding', async ({ coding, compress }) => {
    server.answer('tools/call', (res, request) => {
      begin(res, coding);
      for (const byte of compress(answerOf(request))) res.write(Buffer.from([byte]));
      res.end();
    });
    expect(await call()).toEqual(RESULT);
  });

  test.each(CODINGS)(
    '§18.4 each event of a stream in $coding is passed on once its bytes have come',
    async ({ coding, open }) => {
      let sendNext = () => {};
      server.answer('tools/call', (res, request) => {
        const encoder = open();
        encoder.pipe(begin(res, coding, 'text/event-stream'));
        const events = [1, 2, 3].map((progress) => ({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken: request.message.id, progress },
        }));
        sendNext = () => {
          const next = events.shift() ?? toResult(request, RESULT);
          encoder.write(toEvent(next));
        };
        sendNext();
      });
      const seen: unknown[] = [];
      const called = call('any', {
        onProgress({ progress }) {
          seen.push(progress);
          // The server says the next thing only after this one has arrived.
          sendNext();
        },
      });
      expect(await called).toEqual(RESULT);
      expect(seen).toEqual([1, 2, 3]);
    },
  );

  test('§18.4 the error of a refusal is read, too', async () => {
    server.answer('tools/call', (res, request) => {
      res.writeHead(400, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
      res.end(gzipSync(JSON.stringify(toError(request, -32602, 'wrong'))));
    });
    await expect(call()).rejects.toMatchObject({
      failure: 'error',
      jsonRpcError: { code: -32602, message: 'wrong' },
    });
  });

  test.each(['gzip', 'zstd'])(
    '§18.4 a refusal is what its status says, though its body is no %s that could be read',
    async (coding) => {
      server.answer('tools/call', (res) => {
        res.writeHead(429, { 'content-encoding': coding }).end('slower');
      });
      await expect(call()).rejects.toMatchObject({ status: 429 });
    },
  );

  test.each(CODINGS)('§18.4 the bound is that of what is decoded: $coding', async (one) => {
    const bomb = one.compress(Buffer.alloc(10_000_000));
    let written = 0;
    server.answer('tools/call', (res, request) => {
      const isRight = Object(request.message.params).name === 'right';
      if (isRight) begin(res, one.coding).end(one.compress(answerOf(request)));
      else begin(res, one.coding).end(bomb, () => (written += 1));
    });
    const [right, wrong] = await Promise.allSettled([call('right'), call('bomb')]);
    expect(right).toEqual({ status: 'fulfilled', value: RESULT });
    expect(wrong).toMatchObject({
      status: 'rejected',
      reason: { message: `it answered more than ${MAX_BYTES} bytes (MAX_UPSTREAM_BYTES)` },
    });
    expect(written).toBe(1);
    expect(opened.upstream.isUp).toBe(true);
  });

  test.each(['application/json', 'text/event-stream'])(
    '§18.4 %s of which nothing can be decoded, without end, is given up',
    async (type) => {
      // A block of nothing (RFC 1951 §3.2.4), again and again.
      const nothing = Buffer.concat(
        Array.from({ length: 2000 }, () => Buffer.from([0, 0, 0, 0xff, 0xff])),
      );
      server.answer('tools/call', (res) => {
        begin(res, 'deflate', type);
        const write = () => {
          while (!res.destroyed && res.write(nothing));
        };
        res.on('drain', write);
        write();
      });
      await expect(call()).rejects.toMatchObject({
        failure: 'invalid',
        message: `its answer cannot be decoded: more than ${MAX_BYTES} bytes of it come to nothing`,
      });
    },
  );

  test('§18.4 what brotli may keep while it waits counts as memory of its answer', async () => {
    // It says that it may refer to what came 16 MiB before.
    const params = { [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_QUALITY]: 2 };
    const head = brotliCompressSync('any', { params }).subarray(0, 1);
    const open: ServerResponse[] = [];
    server.answer('tools/call', (res, request) => {
      const isRight = Object(request.message.params).name === 'right';
      begin(res, 'br');
      if (isRight) res.end(brotliCompressSync(answerOf(request), { params }));
      else if (res.write(head)) open.push(res);
    });
    const calls = Array.from({ length: 5 }, () => call('bomb'));
    await expect(Promise.race(calls)).rejects.toMatchObject({ failure: 'overloaded' });
    await expect.poll(() => open.length).toBe(calls.length);
    for (const res of open) res.destroy();
    await Promise.allSettled(calls);
    // Those that come whole have no need to be counted.
    const right = await Promise.all(Array.from({ length: 20 }, () => call('right')));
    expect(right).toEqual(Array.from({ length: 20 }, () => RESULT));
  });

  test('§18.4 many events in few bytes come at the pace of a stream, and are all passed on', async () => {
    const count = 1200;
    server.answer('tools/call', (res, request) => {
      const progress = (at: number) =>
        toEvent({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken: request.message.id, progress: at },
        });
      const events = Array.from({ length: count }, (_, at) => progress(at));
      const text = [...events, toEvent(toResult(request, RESULT))].join('');
      begin(res, 'gzip', 'text/event-stream').end(gzipSync(text));
    });
    const seen: unknown[] = [];
    const onProgress = ({ progress }: { readonly progress?: unknown }) => void seen.push(progress);
    expect(await call('any', { onProgress })).toEqual(RESULT);
    expect(seen).toEqual(Array.from({ length: count }, (_, at) => at));
  });

  test.each([
    ['zstd', 'zstd'],
    ['gzip, br', 'gzip, br'],
    ['rot13', 'rot13'],
    ['<b>', '(invalid name)'],
  ])('§18.4 the coding %j, which nobody reads, is named', async (coding, name) => {
    server.answer('tools/call', (res, request) => {
      begin(res, coding, 'text/event-stream').write(toEvent(toResult(request, RESULT)));
    });
    await expect(call()).rejects.toMatchObject({
      failure: 'invalid',
      message: `it answered with Content-Encoding ${name}, which the gateway did not ask for and cannot decode: turn compression off in it, or in the proxy in front of it`,
    });
    server.answer('tools/call', (res, request) => {
      begin(res, 'identity').end(answerOf(request));
    });
    expect(await call()).toEqual(RESULT);
  });

  test.each(['', 'identity', 'none', 'utf-8', 'UTF8', 'charset=utf-8', 'application/json'])(
    '§18.4 %j is no coding',
    async (coding) => {
      server.answer('tools/call', (res, request) => {
        begin(res, coding).end(answerOf(request));
      });
      expect(await call()).toEqual(RESULT);
    },
  );

  test.each([
    ['what is no gzip', Buffer.from('{"jsonrpc":"2.0"}')],
    ['gzip that breaks off', gzipSync(JSON.stringify(RESULT)).subarray(0, 20)],
    ['nothing', Buffer.alloc(0)],
  ])('§18.4 %s ends the call alone that it answers', async (_what, bytes) => {
    server.answer('tools/call', (res) => void begin(res, 'gzip').end(bytes));
    await expect(call()).rejects.toMatchObject({ failure: 'invalid' });
    expect(opened.upstream.isUp).toBe(true);
  });

  test('§18.4 zeros behind the end of what is compressed mean nothing', async () => {
    server.answer('tools/call', (res, request) => {
      begin(res, 'gzip').write(Buffer.concat([gzipSync(answerOf(request)), Buffer.alloc(70_000)]));
      res.end(Buffer.alloc(70_000));
    });
    expect(await call()).toEqual(RESULT);
  });

  test('§18.4 a stream in gzip that is cut brings what came before', async () => {
    server.answer('tools/call', (res, request) => {
      const encoder = createGzip(FLUSH);
      encoder.pipe(begin(res, 'gzip', 'text/event-stream'));
      encoder.write(toEvent(toResult(request, RESULT)), () => setImmediate(() => res.destroy()));
    });
    expect(await call()).toEqual(RESULT);
  });
});

test('§18.4 where the answer to initialize cannot be read, the log says why', async () => {
  const server = closeAfterTest(await startScriptedHttp('session'));
  server.answer('initialize', (res, request) => {
    begin(res, 'zstd').end(answerOf(request));
  });
  const { upstream, lines } = closeAfterTest(await openHttpUpstream({ url: server.url }));
  await expect(callTool(upstream, sessionCaller(), 'any')).rejects.toMatchObject({
    // Only the handshake was sent, not the call.
    failure: 'unavailable',
  });
  expect(lines.filter(({ msg }) => msg.includes('Content-Encoding zstd'))).toHaveLength(1);
});
