// The one file that knows sockets: node:http, its limits and time-outs, and the drain.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Clock } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { type GatewayRequest, header, type Reply } from '../core/message.ts';
import type { Served } from './access-log.ts';
import { createBodyReader } from './body.ts';
import { createBodyBudgets } from './body-budgets.ts';
import type { CallerClues } from './client-ip.ts';
import { foreignCoding, hasForeignCoding, malformed } from './framing.ts';
import type { Incoming } from './incoming.ts';
import { lastBytes, lastReply } from './last-reply.ts';
import type { Pipeline } from './pipeline.ts';
import { createStreamSender } from './send-stream.ts';
import { targetOf } from './target.ts';

export interface HttpServerDeps {
  readonly answer: Pipeline;
  readonly clientIp: (clues: CallerClues) => string;
  readonly record: (served: Served) => void;
  readonly securityHeaders: Readonly<Record<string, string>>;
  readonly maxBodyBytes: number;
  /** `MAX_BODY_VALUES`. */
  readonly maxBodyValues: number;
  /** Bytes of a request's header section; more is 431. */
  readonly maxHeaderBytes: number;
  readonly clock: Clock;
  readonly log: Log;
}

export interface HttpServer {
  /** Serves one request; for tests that inject requests without a socket. */
  readonly handler: (req: IncomingMessage, res: ServerResponse) => void;
  /** @throws Error with code `EADDRINUSE` and the like. */
  listen(port: number, host: string): Promise<AddressInfo>;
  /** From now on every reply closes its connection. */
  startDraining(): void;
  /** Stops accepting, closes idle connections, waits for the busy ones, at most `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** Milliseconds until a head, a whole request, an idle connection is given up (threats). */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Longer than the idle time of common load balancers (60 s), so that they hang up first. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
/** How long a connection that brought no request yet may still bring one when the service closes. */
const SILENT_MS = 1000;
/** Requests of one connection that wait for their answers: each holds one in memory. */
const MAX_PIPELINED = 64;
/** How long a refused body is still read and dropped, so that its sender sees the answer. */
const DISCARD_MS = 2000;

export function createHttpServer(deps: HttpServerDeps): HttpServer {
  const { answer, clientIp, record, securityHeaders, maxBodyBytes, clock, log } = deps;
  /** Their last answer is on its way: nothing more of them is looked at. */
  const closing = new WeakSet<Socket>();
  const pending = new WeakMap<object, Set<ServerResponse>>();
  const connections = new Set<Socket>();
  const readBody = createBodyReader({
    budgets: createBodyBudgets({ maxBodyBytes, clock }),
    maxValues: deps.maxBodyValues,
  });
  const sendStream = createStreamSender({ clock, log });
  let draining = false;

  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: 1000,
      // The Host check is ours (probes may come without), and needs to see a second Host.
      requireHostHeader: false,
      joinDuplicateHeaders: true,
      maxHeaderSize: deps.maxHeaderBytes,
    },
    handler,
  );
  // The size of all headers is limited; dropping some of them silently would be worse.
  server.maxHeadersCount = 0;
  server.on('checkExpectation', handler);
  server.on('clientError', refuseMalformed);
  server.on('connection', (socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });

  function handler(req: IncomingMessage, res: ServerResponse): void {
    if (req.socket.destroyed || closing.has(req.socket)) return;
    if (track(req.socket, res) > MAX_PIPELINED) {
      req.socket.destroy();
      return;
    }
    const started = clock.monotonic();
    const incoming = receive(req, res, started);
    if (hasForeignCoding(req)) {
      closing.add(req.socket);
      const reply = lastReply(foreignCoding(), securityHeaders);
      send(req, res, reply);
      const { method, path, clientIp } = incoming.request;
      record({ method, path, clientIp, route: 'unmatched', reply, seconds: 0 });
      return;
    }
    answer(incoming)
      .then(async ({ reply, route }) => {
        const sent = send(req, res, reply);
        if (sent) await sent.catch(brokenOff(res));
        const { method, path, clientIp } = incoming.request;
        const seconds = (clock.monotonic() - started) / 1000;
        record({ method, path, clientIp, route, reply, seconds });
      })
      .catch(brokenOff(res));
  }

  /** Notes a request under way; returns how many its connection has. */
  function track(socket: Socket, res: ServerResponse): number {
    const busy = pending.get(socket) ?? busyOf(socket);
    busy.add(res);
    res.once('close', () => {
      busy.delete(res);
      if (busy.size === 0) closeIfDrained(socket);
    });
    return busy.size;
  }

  function busyOf(socket: Socket): Set<ServerResponse> {
    const busy = new Set<ServerResponse>();
    pending.set(socket, busy);
    // node:http tells only the answer under way that its caller is gone, not those behind it.
    socket.once('close', () => {
      for (const res of busy) if (res.socket === null) res.destroy().emit('close');
    });
    return busy;
  }

  /** A stream that began before the drain promised to keep its connection. */
  function closeIfDrained(socket: Socket): void {
    if (!server.listening && connections.has(socket)) socket.destroySoon();
  }

  /** The head may be out already: only the end of the connection can tell that this failed. */
  function brokenOff(res: ServerResponse) {
    return (cause: unknown): void => {
      log.error('A reply could not be sent; its connection is closed.', { cause });
      res.destroy();
    };
  }

  function receive(req: IncomingMessage, res: ServerResponse, started: number): Incoming {
    const { authority, path, query } = targetOf(req.url ?? '/');
    const socket = req.socket.remoteAddress;
    let signal: AbortSignal | undefined;
    const request: GatewayRequest = {
      method: req.method ?? 'GET',
      path,
      query,
      headers: req.headers,
      clientIp: clientIp({
        forwardedFor: header(req, 'x-forwarded-for'),
        realIp: header(req, 'x-real-ip'),
        socket,
      }),
      signal: () => {
        signal ??= hangUpSignal(res);
        return signal;
      },
    };
    return {
      request,
      authority,
      readBody: (accepts, owner, maxBytes = maxBodyBytes) =>
        readBody(req, { accepts, owner, maxBytes: Math.min(maxBytes, maxBodyBytes) }, (task) =>
          whenClosed(res, task),
        ),
      age: () => clock.monotonic() - started,
    };
  }

  /** Of a stream, a promise that says when it has ended; rejected when it broke off. */
  function send(req: IncomingMessage, res: ServerResponse, reply: Reply) {
    const { status, body, stream } = reply;
    const headers = draining ? { ...reply.headers, Connection: 'close' } : reply.headers;
    const sent = stream && sendStream(req, res, { status, headers, stream });
    if (!stream) res.writeHead(status, headers).end(body);
    if (!req.readableEnded) discardRest(req);
    return sent;
  }

  function discardRest(req: IncomingMessage): void {
    req.resume();
    const cancel = clock.after(DISCARD_MS, () => req.destroy());
    req.once('end', cancel);
  }

  /** node:http takes only those for idle that had a request before. */
  function closeSilent(): void {
    for (const socket of connections) if (!pending.get(socket)?.size) socket.destroy();
  }

  /** What node:http could not parse never got a request: answered here, or the socket closed. */
  function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
    if (closing.has(socket)) return;
    const busy = [...(pending.get(socket) ?? [])];
    // An answer that is under way, or owed to an earlier request, must not be mixed with this one.
    const owed = busy.some((res) => res.headersSent || res.req.complete) || busy.length > 1;
    if (owed || !socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    closing.add(socket);
    // Whatever its request comes to is not written behind this answer.
    for (const res of busy) res.detachSocket(socket);
    socket.end(lastBytes(malformed(error.code), securityHeaders));
    // Closing with bytes unread would reset the connection, and the answer might be lost with it.
    socket.resume();
    const cancel = clock.after(DISCARD_MS, () => socket.destroy());
    socket.once('end', () => socket.destroy());
    socket.once('close', cancel);
  }

  return {
    handler,
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => {
          server.off('error', reject);
          resolve(server.address() as AddressInfo);
        });
      }),
    startDraining() {
      draining = true;
    },
    close(graceMs) {
      draining = true;
      if (!server.listening) return Promise.resolve();
      return new Promise((resolve) => {
        const cancels = [
          clock.after(SILENT_MS, closeSilent),
          clock.after(graceMs, () => server.closeAllConnections()),
        ];
        server.close(() => {
          for (const cancel of cancels) cancel();
          resolve();
        });
      });
    },
  };
}

/** Calls the task when the reply has been sent or the connection has closed. */
function whenClosed(res: ServerResponse, task: () => void): void {
  if (res.destroyed) task();
  else res.once('close', task);
}

/** Aborted when the connection closes before the reply was sent. */
function hangUpSignal(res: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const abort = () => {
    if (!res.writableFinished) controller.abort();
  };
  if (res.destroyed) abort();
  else res.once('close', abort);
  return controller.signal;
}
