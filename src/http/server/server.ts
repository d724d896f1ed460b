// HTTP server: creates the server of node:http with its limits and timeouts, and drains it.
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { GatewayError } from '../../errors/gateway-error.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createConnectionTable } from './connections.ts';
import { createRequestHandler, type Service } from './handle-request.ts';
import { createSecurityHeaders, serializeTransportError } from './headers.ts';
import { DISCARD_MS } from './read-body.ts';

/** An `import` would make Node.js (from 22) load its WebSocket and `fetch`, which this module exports too: 30 ms of a start. */
const { createServer } = process.getBuiltinModule('node:http');

/** Timeouts of a head and of a whole request. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Longer than the keep-alive timeout of common load balancers (60 s), so that they close the connection first. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
/** Turns of the event loop after which the port is closed even if clients still connect. */
const MAX_TURNS = 100;
/** When the service closes, a connection without a request yet may send one for this long. */
const FIRST_REQUEST_MS = 1000;

/** Bytes of a header section beside the token; more is 431. */
const OTHER_HEADERS_BYTES = 16_384;

export type HttpServer = ReturnType<typeof createHttpServer>;

export function createHttpServer(runtime: Runtime, service: Service) {
  const { config, clock } = runtime;
  const securityHeaders = createSecurityHeaders(config.server);
  const connections = createConnectionTable(runtime);
  const { handle, noteConnection } = createRequestHandler(runtime, service, connections);
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: 1000,
      // The gateway checks Host itself: probes may have none, and a second Host must be seen.
      requireHostHeader: false,
      joinDuplicateHeaders: true,
      maxHeaderSize: config.http.maxTokenBytes + OTHER_HEADERS_BYTES,
    },
    handle,
  );
  // The size of all headers is limited; dropping some of them silently would be worse.
  server.maxHeadersCount = 0;
  server.on('checkExpectation', handle);
  server.on('clientError', answerMalformed);
  server.on('connection', connections.open);
  server.on('connection', noteConnection);

  /**
   * Closes a connection whose input node:http could not parse, or did not get in time; with an error reply if no other
   * reply is owed.
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
    // Keeps replies to pending requests from being written after this one.
    for (const res of pending) res.detachSocket(socket);
    socket.end(serializeTransportError(createError(code), securityHeaders));
    // Closing with unread bytes would reset the connection, and might lose the reply.
    socket.resume();
    const cancel = clock.after(DISCARD_MS, () => socket.destroy());
    socket.once('end', () => socket.destroy());
    socket.once('close', cancel);
  }

  return {
    /** Serves one request; for tests that inject requests without a socket. */
    handler: handle,
    /** @throws Error with code `EADDRINUSE` and the like. */
    async listen(port: number, host: string): Promise<AddressInfo> {
      await once(server.listen(port, host), 'listening');
      const address = server.address();
      // A string is the path of a socket file; null means that the server does not listen.
      if (typeof address === 'object' && address !== null) return address;
      throw new Error('The server does not listen on a port');
    },
    /** From now on every reply closes its connection. */
    startDraining: connections.startDraining,
    /** Stops accepting, closes idle connections, and waits for the busy ones for at most `graceMs`. */
    async close(graceMs: number): Promise<void> {
      connections.startDraining();
      connections.startClosing();
      if (!server.listening) return;
      const cancels = [
        // node:http counts a connection as idle only after its first request.
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
 * Waits for a turn of the event loop that accepts no connection. When the port is closed, the system resets connections that
 * were not accepted, and those whose requests were not read: a process that is short of CPU has some of both.
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
