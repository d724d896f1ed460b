// Replies that are sent piece by piece, over real sockets.
import { EventEmitter, once } from 'node:events';
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { inject } from 'light-my-request';
import { afterEach, describe, expect, test } from 'vitest';
import type { Endpoint } from '../../../src/http/endpoint/endpoint.ts';
import type { GatewayRequest, Reply } from '../../../src/http/endpoint/message.ts';
import { JSONRPC } from '../../../src/http/endpoint/render-error.ts';
import { createHttpServer, type HttpServer } from '../../../src/http/server/server.ts';
import type { CancelSignal } from '../../../src/platform/cancellation.ts';
import type { Clock } from '../../../src/platform/clock.ts';
import { EVENT_STREAM_HEADERS, toSseEvent } from '../../../src/platform/text.ts';
import { type Metrics, noMetrics } from '../../../src/telemetry/metrics/metrics.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { createAdmittingLimiter } from '../../support/gateway/limit-check.ts';
import { collectLog, type LogLine } from '../../support/gateway/log.ts';
import { flushLoopback } from '../../support/gateway/manual-connection.ts';
import { sendRaw } from '../../support/gateway/raw-http.ts';
import { openTestRuntime } from '../../support/gateway/runtime.ts';

const KEEP_ALIVE = ': keep-alive\n\n';
const MEBIBYTE = 2 ** 20;

/** Something that streams, held by the test. Like a queue: `return` settles no pending `next`. */
interface Source extends AsyncIterable<string> {
  push(piece: string): void;
  end(): void;
  fail(cause: Error): void;
  /** How often the next piece was asked for. */
  readonly asked: number;
  readonly returns: number;
  /** Resolves when somebody waits for a piece. */
  waitedFor(): Promise<void>;
  /** Resolves when `return` was called. */
  readonly returned: Promise<unknown>;
}

interface Waiting {
  resolve(result: IteratorResult<string>): void;
  reject(cause: Error): void;
}

function createSource(onReturn: () => void = () => {}): Source {
  const events = new EventEmitter();
  const returned = once(events, 'return');
  let waiting: Waiting | undefined;
  let asked = 0;
  let returns = 0;
  const taken = (): Waiting => {
    const { resolve, reject } = waiting ?? {};
    if (!resolve || !reject) throw new Error('Nobody waits for a piece.');
    waiting = undefined;
    return { resolve, reject };
  };
  return {
    push: (value) => taken().resolve({ done: false, value }),
    end: () => taken().resolve({ done: true, value: undefined }),
    fail: (cause) => taken().reject(cause),
    get asked() {
      return asked;
    },
    get returns() {
      return returns;
    },
    async waitedFor() {
      if (!waiting) await once(events, 'asked');
    },
    returned,
    [Symbol.asyncIterator]: () => ({
      next() {
        asked += 1;
        return new Promise((resolve, reject) => {
          waiting = { resolve, reject };
          events.emit('asked');
        });
      },
      return() {
        returns += 1;
        events.emit('return');
        onReturn();
        return Promise.resolve({ done: true, value: undefined });
      },
    }),
  };
}

type Flood = AsyncIterable<string> & Pick<Source, 'asked' | 'returns'>;

/** The same piece over and over, at once. */
function createFlood(piece: string, count: number): Flood {
  let asked = 0;
  let returns = 0;
  return {
    get asked() {
      return asked;
    },
    get returns() {
      return returns;
    },
    [Symbol.asyncIterator]: () => ({
      async next() {
        asked += 1;
        return { done: asked > count, value: piece };
      },
      async return() {
        returns += 1;
        return { done: true, value: undefined };
      },
    }),
  };
}

type Handle = (request: GatewayRequest) => Reply | Promise<Reply>;

/** A request as the metrics record it. */
interface ServedRequest {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
}

interface Running {
  readonly server: HttpServer;
  readonly port: number;
  readonly clock: ReturnType<typeof manualClock>;
  readonly errors: () => readonly LogLine[];
  readonly served: readonly ServedRequest[];
  /** Resolves once so many requests were recorded. */
  recorded(count: number): Promise<void>;
  /** How many times of waiting for a stream have neither ended nor been cancelled. */
  readonly waiting: number;
}

const running: HttpServer[] = [];
const sockets: (Socket | ClientRequest)[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(running.splice(0).map((server) => server.close(0)));
});

/** A server whose paths answer as said, the streams with the headers of an event stream. */
const start = (handles: Readonly<Record<string, Handle>>): Promise<Running> =>
  serve(
    Object.entries(handles).map(([path, handle]) => ({
      kind: 'open',
      method: 'GET',
      path,
      errors: JSONRPC,
      handle,
    })),
  );

async function serve(
  endpoints: readonly Endpoint[],
  env: Readonly<Record<string, string>> = {},
): Promise<Running> {
  const manual = manualClock();
  const events = new EventEmitter();
  const { log, lines } = collectLog();
  const served: ServedRequest[] = [];
  const waits = new Set<object>();
  const clock: Clock = {
    ...manual,
    after(delay, task) {
      const wait = {};
      // The server itself looks each second at the connections that are busy.
      if (delay > 1000) waits.add(wait);
      const cancel = manual.after(delay, () => {
        waits.delete(wait);
        task();
      });
      return () => {
        waits.delete(wait);
        cancel();
      };
    },
  };
  const metrics: Metrics = {
    ...noMetrics,
    recordHttpRequest(method, route, status, seconds) {
      served.push({ method, route, status, seconds });
      events.emit('served');
    },
  };
  const server = createHttpServer(openTestRuntime({ clock, log, metrics, env }), {
    endpoints,
    site: {
      findPage: () => undefined,
      getNotFoundPage: () => undefined,
      getFrontPage: () => undefined,
    },
    checks: {
      limiter: createAdmittingLimiter(7),
      authenticate: async () => undefined,
    },
    corsHeaders: { request: [], requestPrefix: undefined, response: [] },
  });
  const { port } = await server.listen(0, '127.0.0.1');
  running.push(server);
  return {
    server,
    port,
    clock: manual,
    errors: () => lines.filter(({ level }) => level === 'error'),
    served,
    async recorded(count) {
      while (served.length < count) await once(events, 'served');
    },
    get waiting() {
      return waits.size;
    },
  };
}

const streamed = (stream: AsyncIterable<string>): Reply => ({
  status: 200,
  headers: EVENT_STREAM_HEADERS,
  stream,
});
const plain = (): Reply => ({ status: 200, body: 'plain' });

interface Opened {
  readonly answer: IncomingMessage;
  readonly sent: ClientRequest;
  /** What has arrived so far. */
  readonly text: string;
  /** Resolves when `text` contains this. */
  arrived(part: string): Promise<void>;
  /** Resolves to the whole text. @throws Error when the connection closes before the end. */
  whole(): Promise<string>;
}

/** Resolves when the answer's head is there. */
async function open(port: number, path: string, agent?: Agent): Promise<Opened> {
  const sent = request({ host: '127.0.0.1', port, path, agent: agent ?? false });
  sockets.push(sent);
  sent.on('error', () => {});
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const events = new EventEmitter();
  let text = '';
  answer.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    events.emit('data');
  });
  const ended = once(answer, 'end');
  ended.catch(() => {});
  return {
    answer,
    sent,
    get text() {
      return text;
    },
    async arrived(part) {
      while (!text.includes(part)) await once(events, 'data');
    },
    async whole() {
      await ended;
      return text;
    },
  };
}

async function openRaw(port: number, head: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(head);
  return socket;
}

/** Moves the time on for as long as it takes until a request was recorded. */
async function untilRecorded({ served, clock }: Running, onTurn = () => {}): Promise<void> {
  for (let turn = 0; served.length === 0 && turn < 10_000; turn += 1) {
    await new Promise(setImmediate);
    onTurn();
    clock.advance(1000);
  }
  expect(served).toHaveLength(1);
}

const GET = (path: string, ...more: readonly string[]) =>
  [`GET ${path} HTTP/1.1`, 'Host: localhost', ...more, '', ''].join('\r\n');

describe('what a stream sends', () => {
  test('§4.1 the head of a stream arrives before its first piece', async () => {
    const source = createSource();
    const { port } = await start({ '/stream': () => streamed(source) });
    const { answer, text } = await open(port, '/stream');
    expect(answer.statusCode).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'transfer-encoding': 'chunked',
    });
    expect(answer.headers['content-length']).toBeUndefined();
    expect(text).toBe('');
    expect(source.asked).toBeLessThanOrEqual(1);
  });

  test('§4.1 the pieces of a stream arrive one by one, and are asked for one by one', async () => {
    const source = createSource();
    const { port } = await start({ '/stream': () => streamed(source) });
    const opened = await open(port, '/stream');
    for (const [at, piece] of ['first', 'second', 'third'].entries()) {
      await source.waitedFor();
      source.push(piece);
      await opened.arrived(piece);
      expect(source.asked).toBeLessThanOrEqual(at + 2);
    }
    await source.waitedFor();
    source.end();
    expect(await opened.whole()).toBe('firstsecondthird');
    expect(source.returns).toBe(0);
  });

  test('§4.1 a message is one event, whatever ends of line its texts have', async () => {
    const message = { jsonrpc: '2.0', id: 1, result: { text: 'a\nb\r\nc\u2028ü😀' } };
    async function* stream() {
      yield toSseEvent(JSON.stringify(message));
    }
    const { port } = await start({ '/stream': () => streamed(stream()) });
    const text = await (await open(port, '/stream')).whole();
    const lines = text.split(/\r\n|\n|\r/);
    expect(lines).toEqual(['event: message', expect.stringMatching(/^data: /), '', '']);
    expect(JSON.parse(lines[1]?.slice('data: '.length) ?? '')).toEqual(message);
  });

  test('§4.1 a piece of many bytes arrives whole, and so does one of none', async () => {
    const large = 'ä'.repeat(MEBIBYTE);
    async function* stream() {
      yield '';
      yield large;
      yield 'end';
    }
    const { port } = await start({ '/stream': () => streamed(stream()) });
    expect((await (await open(port, '/stream')).whole()) === `${large}end`).toBe(true);
  });

  test('§4.1 a caller of HTTP/1.0 gets a stream that ends with its connection', async () => {
    async function* stream() {
      yield 'one';
      yield 'two';
    }
    const { port } = await start({ '/stream': () => streamed(stream()) });
    const received = await sendRaw(port, 'GET /stream HTTP/1.0\r\nHost: localhost\r\n\r\n');
    expect(received).toMatch(/\r\n\r\nonetwo$/);
    expect(received).not.toMatch(/chunked/i);
  });

  test('§4.1 a connection serves other requests after a stream has ended', async () => {
    const source = createSource();
    const { port } = await start({ '/stream': () => streamed(source), '/plain': plain });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    try {
      for (let round = 0; round < 2; round += 1) {
        const opened = await open(port, '/stream', agent);
        await source.waitedFor();
        source.end();
        expect(await opened.whole()).toBe('');
        const next = await open(port, '/plain', agent);
        expect(await next.whole()).toBe('plain');
        expect(next.sent.reusedSocket).toBe(true);
      }
    } finally {
      agent.destroy();
    }
  });

  test('§4.1 what is pipelined behind a stream is answered after it', async () => {
    const [first, second] = [createSource(), createSource()];
    const { port, recorded } = await start({
      '/first': () => streamed(first),
      '/second': () => streamed(second),
      '/plain': plain,
    });
    const socket = await openRaw(
      port,
      GET('/first') + GET('/second') + GET('/plain', 'Connection: close'),
    );
    let received = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      received += chunk;
    });
    await second.waitedFor();
    second.push('of the second');
    await second.waitedFor();
    second.end();
    await recorded(1);
    await first.waitedFor();
    first.push('of the first');
    await first.waitedFor();
    first.end();
    await once(socket, 'close');
    expect(received.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3);
    expect(received).toMatch(/of the first[\s\S]*of the second[\s\S]*plain$/);
  });

  test('§4.1 HEAD of a stream is its head, and the stream ends at once', async () => {
    const source = createSource();
    const { port, recorded, served } = await start({
      '/stream': () => streamed(source),
      '/plain': plain,
    });
    const head = 'HEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const received = await sendRaw(port, head + GET('/plain', 'Connection: close'));
    expect(received).toMatch(
      /^HTTP\/1\.1 200 OK\r\n[\s\S]*text\/event-stream[\s\S]*?\r\n\r\nHTTP\/1\.1 200 OK/,
    );
    expect(received).toMatch(/\r\n\r\nplain$/);
    expect(source).toMatchObject({ asked: 0, returns: 1 });
    await recorded(2);
    expect(served.map(({ method, route }) => `${method} ${route}`).sort()).toEqual([
      'GET /plain',
      'HEAD /stream',
    ]);
  });

  test('§4.1 an injected request gets the whole stream', async () => {
    async function* stream() {
      yield toSseEvent('1');
      yield toSseEvent('2');
    }
    const { server } = await start({ '/stream': () => streamed(stream()) });
    const answer = await inject(server.handler, { url: '/stream' });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['content-type']).toBe('text/event-stream');
    expect(answer.payload).toBe(toSseEvent('1') + toSseEvent('2'));
  });

  test('§4.12 a stream has the headers of every reply, and no Content-Length', async () => {
    const source = createSource();
    const { port } = await serve(
      [
        {
          kind: 'protected',
          method: 'GET',
          path: '/stream',
          errors: JSONRPC,
          limit: 'mcp',
          judge: () => ({ access: undefined, run: () => streamed(source) }),
        },
      ],
      { ALLOWED_ORIGINS: 'https://a.example' },
    );
    const socket = await openRaw(port, GET('/stream', 'Origin: https://a.example'));
    const [head] = await once(socket.setEncoding('latin1'), 'data');
    for (const line of [
      'X-Frame-Options: DENY',
      'X-RateLimit-Limit: 7',
      'Access-Control-Allow-Origin: https://a.example',
      'Vary: Origin',
      'Content-Type: text/event-stream',
    ]) {
      expect(head).toContain(`\r\n${line}\r\n`);
    }
    expect(head).not.toMatch(/content-length/i);
  });
});

describe('keep-alive comments on quiet streams', () => {
  test('§4.1 a comment every 15 s keeps a quiet stream alive', async () => {
    const source = createSource();
    const { port, clock } = await start({ '/stream': () => streamed(source) });
    const opened = await open(port, '/stream');
    await source.waitedFor();
    for (const count of [1, 2, 3]) {
      clock.advance(15_000);
      await opened.arrived(KEEP_ALIVE.repeat(count));
    }
    clock.advance(14_999);
    source.push('piece');
    await source.waitedFor();
    clock.advance(14_999);
    source.push('another');
    await source.waitedFor();
    source.end();
    expect(await opened.whole()).toBe(`${KEEP_ALIVE.repeat(3)}pieceanother`);
  });

  test('§4.1 a stream that has ended sends no comment into what follows', async () => {
    const source = createSource();
    const service = await start({ '/stream': () => streamed(source), '/plain': plain });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const opened = await open(service.port, '/stream', agent);
    await source.waitedFor();
    source.end();
    await opened.whole();
    await service.recorded(1);
    expect(service.waiting).toBe(0);
    service.clock.advance(100_000);
    const next = await open(service.port, '/plain', agent);
    expect(await next.whole()).toBe('plain');
    expect(next.sent.reusedSocket).toBe(true);
    agent.destroy();
  });
});

describe('streams whose caller is gone', () => {
  test('§4.1 a caller who hangs up ends the stream while its next piece is pending', async () => {
    const source = createSource();
    const service = await start({ '/stream': () => streamed(source) });
    const { served, recorded, errors } = service;
    const { sent } = await open(service.port, '/stream');
    await source.waitedFor();
    sent.destroy();
    await source.returned;
    await recorded(1);
    expect(service.waiting).toBe(0);
    expect(served[0]).toMatchObject({ route: '/stream', status: 200 });
    // Whatever the pending one comes to, nobody is there to see it.
    source.fail(new Error('late'));
    await new Promise(setImmediate);
    expect(source).toMatchObject({ asked: 1, returns: 1 });
    expect(served).toHaveLength(1);
    expect(errors()).toEqual([]);
  });

  test('§4.1 a caller who closes its half of the connection has hung up', async () => {
    const source = createSource();
    const { port } = await start({ '/stream': () => streamed(source) });
    const socket = await openRaw(port, GET('/stream'));
    await source.waitedFor();
    socket.end();
    await source.returned;
  });

  test('§4.1 a caller who hung up before there was an answer ends the stream unasked', async () => {
    const source = createSource();
    const { port, recorded } = await start({
      async '/stream'(received) {
        hungUp();
        const signal = received.signal();
        if (!signal.aborted) {
          await new Promise<void>((resolve) => signal.addEventListener('abort', resolve));
        }
        return streamed(source);
      },
    });
    const socket = await openRaw(port, GET('/stream'));
    const hungUp = () => socket.destroy();
    await source.returned;
    await recorded(1);
    expect(source).toMatchObject({ asked: 0, returns: 1 });
  });

  test('§4.1 a caller who hangs up ends the streams that wait behind another, too', async () => {
    const sources = [createSource(), createSource(), createSource()] as const;
    const signals: CancelSignal[] = [];
    const opening = (source: Source) => (received: GatewayRequest) => {
      signals.push(received.signal());
      return streamed(source);
    };
    const { port, recorded } = await start({
      '/0': opening(sources[0]),
      '/1': opening(sources[1]),
      '/2': opening(sources[2]),
    });
    const socket = await openRaw(port, GET('/0') + GET('/1') + GET('/2'));
    await sources[2].waitedFor();
    socket.destroy();
    await Promise.all(sources.map(({ returned }) => returned));
    await recorded(3);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
  });

  test('§4.1 a source that cannot be ended is told in the log, and that is all', async () => {
    const source = createSource(() => {
      throw new Error('stuck');
    });
    const { port, recorded, errors } = await start({ '/stream': () => streamed(source) });
    const { sent } = await open(port, '/stream');
    await source.waitedFor();
    sent.destroy();
    await recorded(1);
    expect(errors()).toEqual([expect.objectContaining({ cause: 'stuck' })]);
  });
});

describe('streams whose caller does not read', () => {
  test('§4.1 a caller who does not read is not sent more, and is cut off after 30 s', async () => {
    const flood = createFlood('x'.repeat(65_536), 2000);
    const service = await start({ '/stream': () => streamed(flood) });
    const socket = await openRaw(service.port, GET('/stream'));
    socket.pause();
    const { clock } = service;
    let asked = 0;
    let askedAt = clock.now();
    await untilRecorded(service, () => {
      // What the system's own buffers take is progress; after that there is none.
      if (flood.asked > asked) askedAt = clock.now();
      asked = flood.asked;
    });
    expect(clock.now() - askedAt).toBeGreaterThanOrEqual(30_000);
    expect(clock.now() - askedAt).toBeLessThan(40_000);
    expect(flood.asked).toBeLessThan(500);
    expect(flood.returns).toBe(1);
    expect(service.errors()).toEqual([]);
  });

  test('§4.1 a caller who takes no more of one large piece is cut off, too', async () => {
    const flood = createFlood('x'.repeat(32 * MEBIBYTE), 1);
    const service = await start({ '/stream': () => streamed(flood) });
    const socket = await openRaw(service.port, GET('/stream'));
    socket.pause();
    await untilRecorded(service);
    expect(flood.asked).toBe(1);
  });

  test('§4.1 a stream that waits behind another is not cut off for it', async () => {
    const first = createSource();
    const flood = createFlood('x'.repeat(65_536), 3);
    const { port, clock } = await start({
      '/first': () => streamed(first),
      '/flood': () => streamed(flood),
    });
    const socket = await openRaw(port, GET('/first') + GET('/flood', 'Connection: close'));
    let received = 0;
    socket.on('data', (chunk) => {
      received += chunk.length;
    });
    await first.waitedFor();
    for (let turn = 0; turn < 100; turn += 1) {
      await new Promise(setImmediate);
      clock.advance(1000);
    }
    expect(flood.asked).toBe(1);
    first.end();
    await once(socket, 'close');
    expect(received).toBeGreaterThan(3 * 65_536);
  });

  test('§4.1 comments that nobody takes are not piled up', async () => {
    const [first, second] = [createSource(), createSource()];
    const { port, clock } = await start({
      '/first': () => streamed(first),
      '/second': () => streamed(second),
    });
    const socket = await openRaw(port, GET('/first') + GET('/second', 'Connection: close'));
    let received = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      received += chunk;
    });
    await second.waitedFor();
    // That both requests are read to their ends.
    await new Promise(setImmediate);
    for (let comment = 0; comment < 5000; comment += 1) {
      clock.advance(15_000);
      await new Promise(setImmediate);
    }
    first.end();
    second.end();
    await once(socket, 'close');
    const [, ofFirst = '', ofSecond = ''] = received.split('HTTP/1.1 200 OK');
    expect(ofFirst.split(KEEP_ALIVE).length).toBeGreaterThan(10);
    expect(ofSecond.split(KEEP_ALIVE).length).toBeGreaterThan(10);
    expect(ofSecond.split(KEEP_ALIVE).length).toBeLessThan(4000);
  });

  test('§4.1 a caller who reads slowly gets everything', async () => {
    const size = 32 * MEBIBYTE;
    const flood = createFlood('x'.repeat(size), 1);
    const service = await start({ '/stream': () => streamed(flood) });
    const sent = request({ host: '127.0.0.1', port: service.port, path: '/stream', agent: false });
    sockets.push(sent);
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    let received = 0;
    let pauseAt = 0;
    answer.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (received >= pauseAt) answer.pause();
    });
    const ended = once(answer, 'end');
    const before = service.clock.now();
    for (pauseAt = 4 * MEBIBYTE; pauseAt < size - 16 * MEBIBYTE; pauseAt += 4 * MEBIBYTE) {
      answer.resume();
      await once(answer, 'pause');
      await flushLoopback();
      service.clock.advance(29_000);
    }
    expect(service.clock.now() - before).toBeGreaterThan(60_000);
    pauseAt = Number.POSITIVE_INFINITY;
    answer.resume();
    await ended;
    expect(received).toBe(size);
  });
});

describe('streams that break', () => {
  test('§4.1 a stream that throws closes its connection, with one error in the log', async () => {
    const [broken, good] = [createSource(), createSource()];
    const { port, served, recorded, errors } = await start({
      '/broken': () => streamed(broken),
      '/good': () => streamed(good),
    });
    const other = await open(port, '/good');
    const opened = await open(port, '/broken');
    await broken.waitedFor();
    broken.push('first');
    await opened.arrived('first');
    const failed = once(opened.answer, 'error');
    await broken.waitedFor();
    broken.fail(new Error('out of pieces'));
    expect(await failed).toMatchObject([{ code: 'ECONNRESET' }]);
    await recorded(1);
    expect(served[0]?.route).toBe('/broken');
    expect(errors()).toEqual([expect.objectContaining({ cause: 'out of pieces' })]);
    await good.waitedFor();
    good.push('still here');
    await good.waitedFor();
    good.end();
    expect(await other.whole()).toBe('still here');
  });

  test('§4.1 a stream that throws before it begins does the same', async () => {
    const stream = {
      [Symbol.asyncIterator](): AsyncIterator<string> {
        throw new Error('no source');
      },
    };
    const { port, errors } = await start({ '/stream': () => streamed(stream), '/plain': plain });
    expect(await sendRaw(port, GET('/stream'))).toBe('');
    expect(errors()).toEqual([expect.objectContaining({ cause: 'no source' })]);
    expect(await (await open(port, '/plain')).whole()).toBe('plain');
  });

  test('§4.1 an injected request fails with a stream that throws', async () => {
    const source = createSource();
    const { server } = await start({ '/stream': () => streamed(source) });
    const answered = inject(server.handler, { url: '/stream' });
    await source.waitedFor();
    source.fail(new Error('out of pieces'));
    await expect(answered).rejects.toThrow();
  });
});

describe('streams are recorded', () => {
  test('§4.11 a stream is recorded once, after its end, with its whole time', async () => {
    const source = createSource();
    const { port, clock, served, recorded } = await start({ '/stream': () => streamed(source) });
    const opened = await open(port, '/stream');
    await source.waitedFor();
    clock.advance(5000);
    source.push('piece');
    await opened.arrived('piece');
    expect(served).toEqual([]);
    await source.waitedFor();
    clock.advance(2000);
    source.end();
    await opened.whole();
    await recorded(1);
    expect(served).toEqual([{ method: 'GET', route: '/stream', status: 200, seconds: 7 }]);
  });
});

describe('streams while the service closes', () => {
  test('§4.3 an open stream is waited for, and its connection closes with it', async () => {
    const source = createSource();
    const { port, server, clock } = await start({ '/stream': () => streamed(source) });
    const agent = new Agent({ keepAlive: true });
    const opened = await open(port, '/stream', agent);
    await source.waitedFor();
    server.startDraining();
    const closed = server.close(10_000);
    clock.advance(9999);
    source.push('the last');
    await source.waitedFor();
    source.end();
    expect(await opened.whole()).toBe('the last');
    // The clock stands still, and the caller would keep the connection.
    await closed;
    expect(source.returns).toBe(0);
    agent.destroy();
  });

  test('§4.3 an open stream is cut off after the grace period, and its source ended', async () => {
    const source = createSource();
    const { port, server, clock, recorded, errors } = await start({
      '/stream': () => streamed(source),
    });
    const opened = await open(port, '/stream');
    await source.waitedFor();
    const closed = server.close(10_000);
    clock.advance(9999);
    source.push('the last');
    await opened.arrived('the last');
    expect(source.returns).toBe(0);
    clock.advance(1);
    await Promise.all([closed, source.returned, recorded(1)]);
    await expect(opened.whole()).rejects.toThrow();
    expect(errors()).toEqual([]);
  });

  test('§4.3 a stream that begins while the service drains closes its connection', async () => {
    async function* stream() {
      yield 'piece';
    }
    const { port, server } = await start({ '/stream': () => streamed(stream()) });
    server.startDraining();
    const received = await sendRaw(port, GET('/stream'));
    expect(received).toMatch(/^Connection: close\r$/m);
    expect(received).toMatch(/piece\r\n0\r\n\r\n$/);
  });
});
