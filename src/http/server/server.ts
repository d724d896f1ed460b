// The one file that creates a server of node:http: its limits and time-outs, and the drain.
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { GatewayError } from '../../errors/gateway-error.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createConnectionTable } from './connections.ts';
import { createSecurityHeaders, serializeTransportError } from './headers.ts';
import { createOverload } from './overload.ts';
import { DISCARD_MS } from './read-body.ts';
import { createRequestHandler, type RequestService } from './request-handler.ts';

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
  const { runQueue } = service;
  const securityHeaders = createSecurityHeaders(config.server);
  const connections = createConnectionTable(runtime);
  const overload = createOverload(runtime, runQueue);
  const handler = createRequestHandler(runtime, service, connections, overload);
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
  server.on('connection', runQueue.noteConnection);

  /**
   * Input that node:http could not parse, or did not get in time, and so never made a request of: replies, where no other reply
   * is owed, and closes the connection.
   */
  function answerMalformed({ code }: NodeJS.ErrnoException, socket: Socket): void {
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
async function acceptWaiting(server: Server): Promise<void> {
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

function createError(code: string | undefined): GatewayError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new GatewayError('request_timeout');
  if (code === 'HPE_HEADER_OVERFLOW') return new GatewayError('header_too_large');
  return new GatewayError('bad_request');
}
