// Handles each request (§11), from its head to its reply. Checks have no effect; refusals win in this order: limits, token, body.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { fail, GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { isMissingGrant } from '../../store/store.ts';
import { readTraceContext } from '../../telemetry/tracing/tracing.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import { getHeader, type Reply } from '../endpoint/message.ts';
import { JSONRPC, renderError, renderErrorPage } from '../endpoint/render-error.ts';
import { type CallerChecks, createRequestChecks, UNAUTHENTICATED_CALL } from './check-request.ts';
import type { ConnectionTable } from './connections.ts';
import { createReceive, type IncomingExchange, inTrace } from './exchange.ts';
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
  toHeaderList,
} from './headers.ts';
import { createFindRefusal, createOverload, createRunQueue } from './overload.ts';
import { hasUnsupportedCoding } from './read-body.ts';
import {
  createCanonicalizePath,
  createRouter,
  findEndpoint,
  prefersHtml,
  type Site,
} from './router.ts';
import { createReplySender } from './send-reply.ts';

/** Everything that a server serves. */
export interface Service {
  readonly endpoints: readonly Endpoint[];
  readonly site: Site;
  readonly checks: CallerChecks;
  readonly corsHeaders: CorsHeaderNames;
}

/**
 * node:http hands over a head before the bytes that came with it. A microtask later they are there: the request waits for
 * that once, and then for nothing on its way to the call.
 */
const HEAD_READ = Promise.resolve();

export function createRequestHandler(
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
  const findOverloadRefusal = createFindRefusal(endpoints, securityHeaders);
  const checkHost = createHostCheck(config);
  const readOrigin = createReadOrigin(config);
  const { checkProtected, checkPublic, runAgain, challenge } = createRequestChecks(runtime, checks);
  const listHeaders = createListHeaders(config.server, corsHeaders);
  const sender = createReplySender(runtime, connections);

  /** Receives a request, answers it, and sends the reply. Never rejects. */
  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
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
    const refusal = request.method === 'OPTIONS' ? undefined : findOverloadRefusal(request.path);
    const isRefused = refusal !== undefined && !overload.tryAdmit(exchange.receivedAt);
    const draining = connection.waitForDrain();
    if (draining !== undefined) await draining;
    if (isRefused) {
      metrics.recordOverloadRefusal(refusal.route);
      exchange.reply = refusal.reply;
      exchange.headers = refusal.headers.slice();
      exchange.route = refusal.route;
      // The connection stays open: a new one would cost more than the call. The reply goes out at the end of this turn of the
      // event loop: clients that retry at once would otherwise keep the loop reading, and admitted calls would not be answered.
      sender.sendTogether(exchange);
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
      sender.sendTogether(exchange);
    } catch (cause) {
      sender.breakOff(exchange, cause);
    }
  }

  /** Checks, counts and runs a request. Each step goes on, returns the reply, or throws the refusal. */
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
    if (route?.isNavigation) checkNavigation(request, ownOrigin);
    if (route?.isForOwnPages) checkOwnOrigin(origin, ownOrigin);
    if (request.method === 'OPTIONS') {
      const headers = route?.isForAllOrigins
        ? CORS_FOR_ALL
        : renderPreflightHeaders(request, corsHeaders);
      return { status: 204, headers };
    }
    if (route === undefined) return router.servePage(request, destination);
    const endpoint = findEndpoint(route, request.method);
    exchange.endpoint = endpoint;
    if (endpoint.kind === 'open') return inTrace(exchange, () => endpoint.handle(request));

    const checked = await (endpoint.kind === 'public'
      ? checkPublic(exchange, endpoint)
      : checkProtected(exchange, endpoint));
    const { limits, caller, granted } = checked;
    if (caller.kind === 'admitted')
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
      if ('failure' in grant) fail('internal_error', { cause: grant.failure });
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
      connections.hasPlace(connection) ||
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
    const isClosed = route?.isNavigation === true || route?.isForOwnPages === true;
    const isGranted = origin.isAllowed && !isClosed && !route?.isForAllOrigins;
    // A refusal by a limit has the headers of that limit.
    const limitHeaders = reply.status === 429 ? undefined : limits?.headers();
    const grantedOrigin = isGranted ? origin.value : undefined;
    exchange.headers = listHeaders(reply, endpoint, grantedOrigin, limitHeaders);
    // A copy, since some replies are the same object for many requests.
    const { trace } = request;
    if (trace !== undefined) exchange.reply = { ...reply, trace };
  }

  return { handle, noteConnection: runQueue.noteConnection };
}
