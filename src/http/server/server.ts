// HTTP server (§11): creates the server of node:http with its limits and timeouts, handles each request, and drains it.

import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { fail, GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { isMissingGrant } from '../../store/store.ts';
import { readTraceContext } from '../../telemetry/tracing/tracing.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import { createLimitHeaders, getHeader, type Reply } from '../endpoint/message.ts';
import { JSONRPC, renderError, renderErrorPage } from '../endpoint/render-error.ts';
import { type CallerChecks, createRequestChecks, UNAUTHENTICATED_CALL } from './check-request.ts';
import { type ConnectionTable, createConnectionTable } from './client-connections.ts';
import {
  CORS_FOR_ALL,
  type CorsHeaderNames,
  checkNavigation,
  checkOrigin,
  checkOwnOrigin,
  createHostCheck,
  createListHeaders,
  createReadOrigin,
  createSecurityHeaders,
  renderPreflightHeaders,
  renderTransportError,
  serializeTransportError,
  toHeaderList,
} from './headers.ts';
import { createReceive, type IncomingExchange, inTrace } from './incoming-exchange.ts';
import { createFindOverloadRefusal, createOverload, createRunQueue } from './overload.ts';
import { DISCARD_MS, hasUnsupportedCoding } from './read-body.ts';
import { createCanonicalizePath, createRouter, prefersHtml, type Site } from './router.ts';
import { createReplySender } from './send-reply.ts';

/**
 * An `import` would make Node.js (from 22) load its WebSocket and `fetch`, which this module exports too: 30 ms of startup time.
 */
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

/** Maximum size of the header section without the token, in bytes; more than that returns 431. */
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

// Handles each request (§11), from its head to its reply. Checks change nothing that a caller can see; refusals win in this order:
// limits, token, body.

/** Everything that a server serves. */
interface Service {
  readonly endpoints: readonly Endpoint[];
  readonly site: Site;
  readonly checks: CallerChecks;
  readonly corsHeaders: CorsHeaderNames;
}

/**
 * node:http hands over a head before the bytes that arrived with it. They are available one microtask later, so the request waits
 * for that once.
 */
const HEAD_READ = Promise.resolve();

function createRequestHandler(
  runtime: Runtime,
  { endpoints, site, checks, corsHeaders }: Service,
  connections: ConnectionTable,
) {
  const { config, clock, metrics, tracing } = runtime;
  const { origin: ownOrigin } = new URL(config.server.baseUrl);
  const securityHeaders = createSecurityHeaders(config.server);
  const router = createRouter(endpoints, site);
  const canonicalizePath = createCanonicalizePath(config.server.baseUrl, router.hasEndpoint);
  const receive = createReceive(clock, config.http.trustProxy, canonicalizePath);
  const runQueue = createRunQueue(clock);
  const overload = createOverload(runtime, runQueue);
  const findOverloadRefusal = createFindOverloadRefusal(endpoints, securityHeaders);
  const checkHost = createHostCheck(config);
  const readOrigin = createReadOrigin(config);
  const { checkProtected, checkPublic, runAgain, challenge } = createRequestChecks(runtime, checks);
  const listHeaders = createListHeaders(securityHeaders, corsHeaders);
  const sender = createReplySender(runtime, connections);

  /** Receives a request, answers it, and sends the reply. Never rejects. */
  async function handle(req: IncomingMessage, res: ServerResponse) {
    const connection = connections.get(req.socket);
    if (req.socket.destroyed || connection.isClosing) return;
    const owed = connection.startRequest(res);
    if (owed === undefined) {
      req.socket.destroy();
      return;
    }
    const exchange = receive(res, connection, owed);
    const { request } = exchange;
    const error = findTransportError(exchange);
    if (error !== undefined) {
      connection.isClosing = true;
      exchange.reply = renderTransportError(error, securityHeaders);
      exchange.headers = toHeaderList(exchange.reply.headers);
      sender.send(exchange);
      return;
    }
    // Preflights are admitted: without them a page cannot read the refusal of its call.
    const ifOverloaded =
      request.method === 'OPTIONS' ? undefined : findOverloadRefusal(request.path);
    const refusal =
      ifOverloaded && !overload.tryAdmit(exchange.receivedAt) ? ifOverloaded : undefined;
    const waiting = connection.waitForUnsentReplies();
    if (waiting !== undefined) await waiting;
    if (refusal !== undefined) {
      metrics.recordOverloadRefusal(refusal.route);
      exchange.reply = refusal.reply;
      exchange.headers = refusal.headers.slice();
      exchange.route = refusal.route;
      // The connection stays open: a new one would cost more than the call. The reply goes out at the end of this turn of the
      // event loop: clients that retry at once would otherwise keep the loop reading, and admitted calls would not be answered.
      sender.sendSoon(exchange);
      return;
    }
    await HEAD_READ;
    try {
      try {
        exchange.reply = await answer(exchange);
      } catch (thrown) {
        exchange.reply = renderThrown(exchange, thrown);
      }
      completeHeaders(exchange);
      sender.sendSoon(exchange);
    } catch (cause) {
      sender.breakOff(exchange, cause);
    }
  }

  /** Checks, counts and runs a request. Each step continues, returns the reply, or throws the refusal. */
  async function answer(exchange: IncomingExchange): Promise<Reply> {
    const { request, authority } = exchange;
    // §21.2. Probes have no trace: they come every few seconds, and would fill the traces of a quiet gateway.
    if (tracing !== undefined && !router.isProbe(request.path))
      request.trace = tracing.startRequest(readTraceContext(request.headers));

    const destination = router.findDestination(request);
    const origin = readOrigin(request);
    const { route } = destination;
    exchange.destination = destination;
    exchange.route = destination.label;
    exchange.origin = origin;

    checkHost(getHeader(request, 'host'), authority, route?.isProbe === true);
    if (origin.value !== undefined && !route?.isForAllOrigins) checkOrigin(origin);
    if (route?.refusesScripts) checkNavigation(request, ownOrigin);
    if (route?.isForOwnPages) checkOwnOrigin(origin, ownOrigin);
    if (request.method === 'OPTIONS') {
      const headers = route?.isForAllOrigins
        ? CORS_FOR_ALL
        : renderPreflightHeaders(request, corsHeaders);
      return { status: 204, headers };
    }
    if (route === undefined) return router.servePage(request, destination);
    // HEAD is GET without a body.
    const endpoint =
      route.endpoints.get(request.method === 'HEAD' ? 'GET' : request.method) ??
      fail('method_not_allowed', { headers: { Allow: route.allow } });
    exchange.endpoint = endpoint;
    if (endpoint.kind === 'open') return inTrace(exchange, () => endpoint.handle(request));

    const checked = await (endpoint.kind === 'public'
      ? checkPublic(exchange, endpoint)
      : checkProtected(exchange, endpoint));
    const { limits, caller, granted } = checked;
    if (caller.kind === 'accepted')
      exchange.owner = caller.user === undefined ? 'authDisabled' : { user: caller.user };
    const { trace } = request;
    const admitting = trace ? trace.run(() => limits.admit(checked)) : limits.admit(checked);
    const { session, grant } = await admitting;
    if (granted !== undefined && isMissingGrant(grant)) {
      // The login was ended: the request is counted and refused as one without a valid token.
      exchange.owner = 'unauthenticated';
      await inTrace(exchange, () => limits.admit(UNAUTHENTICATED_CALL));
      throw challenge(new GatewayError('token_revoked'), request.path);
    }
    let run = () => checked.run(session);
    if (granted !== undefined) {
      // A store that failed has not said that the login was ended.
      if ('failure' in grant) {
        const error = toGatewayError(grant.failure);
        if (checked.renderFailure === undefined) throw error;
        return checked.renderFailure(error);
      }
      if (grant.version !== granted.version) run = () => runAgain(granted, session);
    }
    // Returned and not awaited: while a function waits, V8 keeps all of its variables, here the message and the token.
    return trace ? trace.run(() => runQueue.run(tracing?.bind(run) ?? run)) : runQueue.run(run);
  }

  /** Finds an error that ends the connection, whatever the request asks for. */
  function findTransportError({ req, connection, request }: IncomingExchange) {
    if (hasUnsupportedCoding(req)) {
      const details = 'The only Transfer-Encoding allowed is chunked.';
      return new GatewayError('bad_request', { details });
    }
    if (
      !connections.beyondLimit.has(connection) ||
      router.isServedWhenBusy(request.path) ||
      connections.tryClaimPlace(connection)
    )
      return undefined;
    return new GatewayError('overloaded', {
      details: 'All connections of this service are busy (MAX_CONNECTIONS). Try again.',
      headers: { 'Retry-After': '1' },
    });
  }

  /** Renders an error as the endpoint does. */
  function renderThrown({ request, endpoint }: IncomingExchange, thrown: unknown): Reply {
    const error = toGatewayError(thrown);
    const frontPage = endpoint?.hasFrontPage && router.findFrontPage(request, error);
    if (frontPage) return frontPage;
    const format = endpoint?.errors ?? JSONRPC;
    const isPage = endpoint?.hasErrorPages && prefersHtml(getHeader(request, 'accept'));
    return isPage
      ? renderErrorPage(error, format, endpoint?.isPageOfUser !== true)
      : renderError(error, format);
  }

  function completeHeaders(exchange: IncomingExchange) {
    const { reply, request, destination, origin, endpoint, limits } = exchange;
    const { route } = destination;
    const isClosed = route?.refusesScripts === true || route?.isForOwnPages === true;
    const isGranted = origin.isAllowed && !isClosed && !route?.isForAllOrigins;
    // A refusal by a limit has the headers of that limit.
    const verdict = reply.status === 429 ? undefined : limits?.addressVerdict;
    const limitHeaders = verdict && createLimitHeaders(verdict);
    const grantedOrigin = isGranted ? origin.value : undefined;
    exchange.headers = listHeaders(reply, endpoint, grantedOrigin, limitHeaders);
    // A copy, since some replies are the same object for many requests.
    const { trace } = request;
    if (trace !== undefined) exchange.reply = { ...reply, trace };
  }

  return { handle, noteConnection: runQueue.noteConnection };
}
