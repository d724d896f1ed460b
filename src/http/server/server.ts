// The one file that creates a server of node:http: its limits and time-outs, the drain, and the way of each request.
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { GatewayError } from '../../errors/gateway-error.ts';
import { createTurnEnd } from '../../platform/clock.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { GatewayRequest, Reply } from '../endpoint/message.ts';
import { type Connection, type ConnectionTable, createConnectionTable } from './connections.ts';
import {
  createSecurityHeaders,
  type HeaderList,
  renderTransportError,
  serializeTransportError,
  toHeaderList,
} from './headers.ts';
import type { LogRequest } from './log-requests.ts';
import {
  type createFindRefusal,
  createOverload,
  type OverloadRefusal,
  type RunQueue,
} from './overload.ts';
import type { Pipeline, RoutedReply } from './pipeline.ts';
import { DISCARD_MS, discardBody, hasUnsupportedCoding } from './read-body.ts';
import {
  type CanonicalizePath,
  createFindClientIp,
  type ReceivedRequest,
  receiveRequest,
  runWhenClosed,
} from './receive-request.ts';
import type { Router } from './router.ts';
import {
  createSendStream,
  type OnStreamEnd,
  ReplyCounter,
  SLICE_BYTES,
  writeSlices,
} from './send-stream.ts';
import { createReplyMemory, type MemoryOwner } from './transfer-memory.ts';

/** An `import` would have Node (from 22) load its WebSocket and `fetch`, whose names this module has, too: 30 ms of a start. */
const { createServer } = process.getBuiltinModule('node:http');

/** Milliseconds until a head, a whole request, an idle connection is given up. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Longer than the idle time of common load balancers (60 s), so that they hang up first. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
/** Turns of the event loop until the port is closed whoever still connects. */
const MAX_TURNS = 100;
/** For so long a connection that brought no request yet may still bring one when the service closes. */
const FIRST_REQUEST_MS = 1000;

/** Bytes that a header section may have beside the token; more is 431. */
const OTHER_HEADERS_BYTES = 16_384;

export type HttpServer = ReturnType<typeof createHttpServer>;

export function createHttpServer(runtime: Runtime, service: RequestService) {
  const { config, clock } = runtime;
  const securityHeaders = createSecurityHeaders(config.server);
  const connections = createConnectionTable(runtime);
  const handler = createRequestHandler(runtime, service, connections);
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: 1000,
      // The Host check is ours (probes may come without), and needs to see a second Host.
      requireHostHeader: false,
      joinDuplicateHeaders: true,
      maxHeaderSize: config.http.maxTokenBytes + OTHER_HEADERS_BYTES,
    },
    handler,
  );
  // The size of all headers is limited; dropping some of them silently would be worse.
  server.maxHeadersCount = 0;
  server.on('checkExpectation', handler);
  server.on('clientError', answerMalformed);
  server.on('connection', connections.open);
  server.on('connection', service.runQueue.noteConnection);

  /**
   * Input that node:http could not parse, or did not get in time, and so never made a request of: replies, where no other reply
   * is owed, and closes the connection.
   */
  function answerMalformed({ code }: NodeJS.ErrnoException, socket: Socket) {
    const connection = connections.get(socket);
    if (connection.isClosing) return;
    const pending = connection.pendingResponses();
    // A reply that has begun, or is owed to an earlier request, must not be mixed with this one.
    const isOwed = pending.length > 1 || pending.some((res) => res.headersSent || res.req.complete);
    if (isOwed || !socket.writable || code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    connection.isClosing = true;
    // Whatever its request comes to is not written behind this reply.
    for (const res of pending) res.detachSocket(socket);
    socket.end(serializeTransportError(createError(code), securityHeaders));
    // Closing with bytes unread would reset the connection, and the reply might be lost with it.
    socket.resume();
    const cancel = clock.after(DISCARD_MS, () => socket.destroy());
    socket.once('end', () => socket.destroy());
    socket.once('close', cancel);
  }

  return {
    /** Serves one request; for tests that inject requests without a socket. */
    handler,
    /** @throws Error with code `EADDRINUSE` and the like. */
    async listen(port: number, host: string): Promise<AddressInfo> {
      await once(server.listen(port, host), 'listening');
      const address = server.address();
      // A text is the path of a socket file, and null is for a server that does not listen.
      if (typeof address === 'object' && address !== null) return address;
      throw new Error('The server does not listen on a port');
    },
    /** From now on every reply closes its connection. */
    startDraining: connections.startDraining,
    /** Stops accepting, closes idle connections, waits for the busy ones, at most `graceMs`. */
    async close(graceMs: number): Promise<void> {
      connections.startDraining();
      connections.startClosing();
      if (!server.listening) return;
      const cancels = [
        // node:http counts only those as idle that had a request before.
        clock.after(FIRST_REQUEST_MS, () => setImmediate(connections.closeIdle)),
        clock.after(graceMs, connections.closeAll),
      ];
      await acceptWaiting(server);
      await new Promise<void>((resolve) => server.close(() => resolve()));
      for (const cancel of cancels) cancel();
    },
  };
}

/**
 * When the port is closed, the system resets connections that nobody has accepted, and those whose requests
 * nobody has read. A process that is short of CPU has some of both: it closes the port in a turn of the event
 * loop that brought none.
 */
async function acceptWaiting(server: Server) {
  let accepted = 0;
  const count = () => {
    accepted += 1;
  };
  server.on('connection', count);
  for (let turn = 0, before = -1; turn < MAX_TURNS && accepted !== before; turn += 1) {
    before = accepted;
    await new Promise((next) => setImmediate(next));
  }
  server.off('connection', count);
}

function createError(code: string | undefined) {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new GatewayError('request_timeout');
  if (code === 'HPE_HEADER_OVERFLOW') return new GatewayError('header_too_large');
  return new GatewayError('bad_request');
}

// Requests of node:http to the pipeline, and its replies back to the socket; each is counted and logged.

/** All that serves the requests of a server. */
interface RequestService {
  readonly runPipeline: Pipeline;
  readonly logRequest: LogRequest;
  readonly isServedWhenBusy: Router['isServedWhenBusy'];
  readonly findRefusal: ReturnType<typeof createFindRefusal>;
  readonly canonicalizePath: CanonicalizePath;
  readonly runQueue: RunQueue;
}

/**
 * node:http hands over a head before the bytes that came with it. A moment later they are there: the request waits for
 * that once, and then nothing on its way to the call has to.
 */
const HEAD_READ = Promise.resolve();

/** Requests of one connection that wait for their replies: each holds one in memory. */
const MAX_PIPELINED = 64;

function createRequestHandler(
  runtime: Runtime,
  service: RequestService,
  connections: ConnectionTable,
) {
  const { config, clock, metrics, log } = runtime;
  const { runPipeline, isServedWhenBusy, findRefusal, logRequest, canonicalizePath } = service;
  const overload = createOverload(runtime, service.runQueue);
  const ways = { findClientIp: createFindClientIp(config.http.trustProxy), canonicalizePath };
  const securityHeaders = createSecurityHeaders(config.server);
  const memory = createReplyMemory(clock);
  const sendStream = createSendStream(runtime, memory);
  const runAtTurnEnd = createTurnEnd();
  /** The connection that the latest reply went to. */
  let latest: Connection | undefined;

  return function handleRequest(req: IncomingMessage, res: ServerResponse): void {
    const connection = connections.get(req.socket);
    if (req.socket.destroyed || connection.isClosing) return;
    if (connection.startRequest(res) > MAX_PIPELINED) {
      req.socket.destroy();
      return;
    }
    const received = receiveRequest(res, clock.monotonic(), connection.address, ways);
    const { method, path } = received.request;
    const error = findTransportError(req, connection, path);
    if (error !== undefined) {
      // The connection ends with it.
      connection.isClosing = true;
      const reply = renderTransportError(error, securityHeaders);
      sendReply(res, reply, toHeaderList(reply.headers));
      discardBody(req, clock);
      record(received.request, received.receivedAt, reply, 'unmatched');
      return;
    }
    // Preflights are let in: without them a page cannot read the refusal of its call.
    const refusal = method === 'OPTIONS' ? undefined : findRefusal(path);
    const isServed = refusal === undefined || overload.tryAdmit(received.receivedAt);
    connection.runWhenDrained(() => {
      if (isServed) void serve(res, received);
      else refuse(res, received, refusal);
    });
  };

  /** Finds an error of the request whatever it asks for. */
  function findTransportError(req: IncomingMessage, connection: Connection, path: string) {
    if (hasUnsupportedCoding(req)) {
      const details = 'The only Transfer-Encoding allowed is chunked.';
      return new GatewayError('bad_request', { details });
    }
    if (isServedWhenBusy(path) || connections.tryClaimPlace(connection)) return undefined;
    return new GatewayError('overloaded', {
      details: 'All connections of this service are busy (MAX_CONNECTIONS). Try again.',
      headers: { 'Retry-After': '1' },
    });
  }

  /** The connection stays: a new one would cost more than the call. */
  function refuse(
    res: ServerResponse,
    received: ReceivedRequest,
    { route, reply, headers }: OverloadRefusal,
  ) {
    // At the end of this turn of the event loop: a caller who tries again at once would otherwise keep the
    // loop busy with reading, and calls that were let in would not be answered.
    sendTogether(res, () => sendReply(res, reply, headers.slice()));
    discardBody(res.req, clock);
    metrics.recordOverloadRefusal(route);
    record(received.request, received.receivedAt, reply, route);
  }

  async function serve(res: ServerResponse, received: ReceivedRequest) {
    await HEAD_READ;
    try {
      const routed = await runPipeline(received);
      sendTogether(res, () => send(res, received, routed));
    } catch (cause) {
      fail(res, received, cause);
    }
  }

  function fail(res: ServerResponse, { body }: ReceivedRequest, cause: unknown) {
    body.release();
    breakOff(res, cause);
  }

  /**
   * Sends at its end whatever is ready in the same turn of the event loop: it was a third of a call's CPU at 32 connections. A
   * caller who is alone would only wait: where the latest reply went to the same connection, this one goes at once.
   */
  function sendTogether(res: ServerResponse, task: () => void) {
    const connection = connections.get(res.req.socket);
    const isAlone = connection === latest;
    latest = connection;
    if (isAlone) task();
    else runAtTurnEnd(task);
  }

  /** Never throws: replies of others may be sent right after it. */
  function send(
    res: ServerResponse,
    received: ReceivedRequest,
    { reply, headers, route, owner }: RoutedReply,
  ) {
    const { body } = received;
    try {
      if (reply.stream !== undefined) {
        const onStreamEnd = createStreamEnd(res, received, reply, route);
        sendReply(res, reply, headers, owner, onStreamEnd);
      } else sendReply(res, reply, headers, owner);
      if (body.isRead) runWhenClosed(res, body.release);
      else discardBody(res.req, clock);
      if (reply.stream === undefined) record(received.request, received.receivedAt, reply, route);
      else forgetHeaders(res);
    } catch (thrown) {
      fail(res, received, thrown);
    }
  }

  /** Keeps of the request and its reply only what the log and the metrics say at the end: a stream stands for minutes. */
  function createStreamEnd(
    res: ServerResponse,
    received: ReceivedRequest,
    sent: Reply,
    route: string,
  ): OnStreamEnd {
    const { receivedAt } = received;
    const { method, path, clientIp } = received.request;
    const { headers: _headers, stream: _stream, ...reply } = sent;
    return (failure) => {
      if (failure !== undefined) breakOff(res, failure.cause);
      try {
        record({ method, path, clientIp }, receivedAt, reply, route);
      } catch (cause) {
        breakOff(res, cause);
      }
    };
  }

  function record(
    { method, path, clientIp }: Pick<GatewayRequest, 'method' | 'path' | 'clientIp'>,
    receivedAt: number,
    reply: Reply,
    route: string,
  ) {
    const seconds = (clock.monotonic() - receivedAt) / 1000;
    logRequest({ method, path, clientIp, route, reply, seconds });
  }

  /** The head may be out already: only the end of the connection can tell that this failed. */
  function breakOff(res: ServerResponse, cause: unknown) {
    log.error('A reply could not be sent; its connection is closed.', { cause });
    res.destroy();
  }

  /**
   * Sends a reply with these headers, to which it adds those that only the transport knows: whole, or piece by piece for as long
   * as its stream lasts, at whose end `onStreamEnd` is called.
   */
  function sendReply(
    res: ServerResponse,
    { status, body = '', pieces, stream }: Reply,
    headers: HeaderList,
    owner: MemoryOwner = 'unauthenticated',
    onStreamEnd: OnStreamEnd = NOTHING_MORE,
  ) {
    const connection = connections.get(res.req.socket);
    const isLast = connections.isDraining() || !connections.tryClaimPlace(connection);
    const bytes =
      pieces?.reduce((sum, { byteLength }) => sum + byteLength, 0) ?? Buffer.byteLength(body);
    // RFC 9110 §8.6: not on a reply that has no content by its status. A stream's is not known.
    if (stream === undefined && status !== 204 && status !== 304)
      headers.push('Content-Length', String(bytes));
    if (isLast && !headers.includes('Connection')) headers.push('Connection', 'close');
    if (stream) {
      sendStream(res, stream, owner, onStreamEnd).start(status, headers);
      return;
    }
    connection.countReply(res, bytes);
    res.writeHead(status, headers);
    if (res.req.method === 'HEAD' || res.destroyed) {
      res.end();
      return;
    }
    if (bytes > WHOLE_BYTES) {
      const counter = new ReplyCounter(memory, owner, res);
      void writeSlices(res, toBytes(body, pieces), counter).then(() => res.end());
      return;
    }
    // Head and body go to the system by one call. `end` with a body would add an empty write to them: 3 us of a call.
    const { socket } = res;
    socket?.cork();
    for (const piece of pieces ?? [body]) res.write(piece);
    socket?.uncork();
    res.end();
    if (bytes <= SLICE_BYTES) return;
    // Nearly always the system has taken all of it by now.
    if (res.writableLength > 0 && !res.destroyed) {
      const counted = new ReplyCounter(memory, owner, res).count(bytes);
      res.once('finish', () => counted.end());
    }
  }
}

const NOTHING_MORE = () => {};

/**
 * Those that were received and those that were sent: Node keeps both until the reply has ended, the token among them. That
 * is two kilobytes of each open stream.
 */
function forgetHeaders(res: ServerResponse) {
  const { req } = res;
  req.rawHeaders.length = 0;
  // Code that still needs them has the object that was there before.
  req.headers = NO_HEADERS;
  // This member, which has no other name, tells Node that they are sent; that needs no more than some text.
  if (res.headersSent) Reflect.set(res, '_header', HEADERS_SENT);
}

const NO_HEADERS = {};
const HEADERS_SENT = 'sent';

/** The most that is handed over in one piece: a system call for each slice costs more than all else of a reply of 100 KB. */
const WHOLE_BYTES = 262_144;

/** A page is the same bytes for everybody: not copied. */
function toBytes(body: string | Uint8Array, pieces: Reply['pieces']): Uint8Array {
  if (pieces !== undefined) return Buffer.concat(pieces);
  return typeof body === 'string' ? Buffer.from(body) : body;
}
