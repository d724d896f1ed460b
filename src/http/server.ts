// The one file that knows sockets: node:http, its limits and time-outs, and the drain.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../core/clock.ts';
import { GatewayError } from '../core/errors/gateway-error.ts';
import type { Log } from '../core/log.ts';
import type { Reply } from '../core/message.ts';
import type { Served } from './access-log.ts';
import { createBodyReader } from './body.ts';
import { createBodyBudgets } from './body-budgets.ts';
import type { CallerClues } from './client-ip.ts';
import type { Connection } from './connection.ts';
import { createConnections } from './connections.ts';
import { foreignCoding, hasBody, hasForeignCoding } from './framing.ts';
import type { Incoming } from './incoming.ts';
import { lastReply } from './last-reply.ts';
import { createMalformedHandler } from './malformed.ts';
import type { Pipeline } from './pipeline.ts';
import { createReceiver } from './receive.ts';
import { sendBody } from './send-body.ts';
import { createStreamSender } from './send-stream.ts';

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
  /** `MAX_CONNECTIONS`; 0 = no limit. */
  readonly maxConnections: number;
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

/** Answered also while all connections are busy. */
const LIVENESS = '/health';

export function createHttpServer(deps: HttpServerDeps): HttpServer {
  const { answer, record, securityHeaders, maxBodyBytes, clock, log } = deps;
  const connections = createConnections({ max: deps.maxConnections, clock, log });
  const budgets = createBodyBudgets({ maxBodyBytes, clock });
  const readBody = createBodyReader({ budgets, maxValues: deps.maxBodyValues });
  const receive = createReceiver({ clientIp: deps.clientIp, readBody, maxBodyBytes, clock });
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
  server.on('clientError', createMalformedHandler({ connections, securityHeaders, clock }));
  server.on('connection', connections.open);

  function handler(req: IncomingMessage, res: ServerResponse): void {
    const connection = connections.of(req.socket);
    if (req.socket.destroyed || connection.isClosing) return;
    if (connection.begin(res) > MAX_PIPELINED) {
      req.socket.destroy();
      return;
    }
    const incoming = receive(req, res, clock.monotonic());
    const refusal = refusalOf(req, connection, incoming.request.path);
    if (refusal === undefined) connection.whenTaken(() => serve(req, res, incoming));
    else refuse(req, res, incoming, refusal);
  }

  /** What is wrong with a request whatever it asks for. */
  function refusalOf(req: IncomingMessage, connection: Connection, path: string) {
    if (hasForeignCoding(req)) return foreignCoding();
    return path === LIVENESS || connections.hasPlace(connection) ? undefined : allBusy();
  }

  function serve(req: IncomingMessage, res: ServerResponse, incoming: Incoming): void {
    answer(incoming)
      .then(async ({ reply, route }) => {
        const sent = send(req, res, reply);
        if (!incoming.isRead()) discardBody(req);
        if (sent) await sent.catch(brokenOff(res));
        recordReply(incoming, reply, route);
      })
      .catch(brokenOff(res));
  }

  function refuse(
    req: IncomingMessage,
    res: ServerResponse,
    incoming: Incoming,
    why: GatewayError,
  ) {
    connections.of(req.socket).isClosing = true;
    const reply = lastReply(why, securityHeaders);
    send(req, res, reply);
    discardBody(req);
    recordReply(incoming, reply, 'unmatched');
  }

  function recordReply({ request, age }: Incoming, reply: Reply, route: string): void {
    const { method, path, clientIp } = request;
    record({ method, path, clientIp, route, reply, seconds: age() / 1000 });
  }

  /** The head may be out already: only the end of the connection can tell that this failed. */
  function brokenOff(res: ServerResponse) {
    return (cause: unknown): void => {
      log.error('A reply could not be sent; its connection is closed.', { cause });
      res.destroy();
    };
  }

  /** Of a stream, a promise that says when it has ended; rejected when it broke off. */
  function send(req: IncomingMessage, res: ServerResponse, reply: Reply) {
    const connection = connections.of(req.socket);
    const { status, body, stream } = reply;
    const isLast = draining || !connections.hasPlace(connection);
    const headers = isLast ? { ...reply.headers, Connection: 'close' } : reply.headers;
    const sent = stream && sendStream(req, res, { status, headers, stream });
    if (!stream) {
      connection.countAnswer(res, Number(headers?.['Content-Length'] ?? 0));
      sendBody(req, res, { status, headers, body });
    }
    return sent;
  }

  function discardBody(req: IncomingMessage): void {
    req.resume();
    if (req.complete || !hasBody(req)) return;
    const cancel = clock.after(DISCARD_MS, () => req.destroy());
    req.once('end', cancel);
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
      connections.startClosing();
      if (!server.listening) return Promise.resolve();
      return new Promise((resolve) => {
        const cancels = [
          // node:http takes only those for idle that had a request before.
          clock.after(SILENT_MS, connections.closeIdle),
          clock.after(graceMs, connections.closeAll),
        ];
        server.close(() => {
          for (const cancel of cancels) cancel();
          resolve();
        });
      });
    },
  };
}

const allBusy = () =>
  new GatewayError('overloaded', {
    details: 'All connections of this service are busy (MAX_CONNECTIONS). Try again.',
    headers: { 'Retry-After': '1' },
  });
