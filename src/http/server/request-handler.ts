// Requests of node:http to the pipeline, and its replies back; each is counted and logged.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GatewayError } from '../../errors/gateway-error.ts';
import { truncateForLog } from '../../platform/log.ts';
import { createLogThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Reply, ReplyError } from '../endpoint/message.ts';
import type { Connection } from './connection.ts';
import type { ConnectionTable } from './connection-table.ts';
import {
  createBusyError,
  findByPath,
  type Overload,
  type OverloadRefusal,
  type OverloadRefusals,
  type RunQueue,
} from './overload.ts';
import type { Pipeline, RoutedReply } from './pipeline.ts';
import { createUnsupportedCodingError, discardBody, hasUnsupportedCoding } from './read-body.ts';
import {
  type CanonicalizePath,
  createFindClientIp,
  type ReceivedRequest,
  receiveRequest,
  runWhenClosed,
} from './receive-request.ts';
import { createSecurityHeaders, renderTransportError, toHeaderList } from './reply-headers.ts';
import type { Router } from './router.ts';
import { createSendReply, createSendTogether } from './send-reply.ts';
import type { OnStreamEnd } from './send-stream.ts';

/** How the requests of a server are served. */
export interface RequestService {
  readonly runPipeline: Pipeline;
  readonly logRequest: LogRequest;
  readonly isServedWhenBusy: Router['isServedWhenBusy'];
  readonly overloadRefusals: OverloadRefusals;
  readonly canonicalizePath: CanonicalizePath;
  readonly runQueue: RunQueue;
}

export type RequestHandler = (req: IncomingMessage, res: ServerResponse) => void;

/**
 * node:http hands over a head before the bytes that came with it. A moment later they are there: the request waits for
 * that once, and then nothing on its way to the call has to.
 */
const HEAD_READ = Promise.resolve();

/** Requests of one connection that wait for their replies: each holds one in memory. */
const MAX_PIPELINED = 64;

export function createRequestHandler(
  runtime: Runtime,
  service: RequestService,
  connections: ConnectionTable,
  overload: Overload,
): RequestHandler {
  const { config, clock, metrics, log } = runtime;
  const { runPipeline, isServedWhenBusy, overloadRefusals, logRequest } = service;
  const { canonicalizePath } = service;
  const ways = { findClientIp: createFindClientIp(config.http.trustProxy), canonicalizePath };
  const securityHeaders = createSecurityHeaders(config.server);
  const sendReply = createSendReply(runtime, connections);
  const sendTogether = createSendTogether();

  return function handleRequest(req, res) {
    const connection = connections.get(req.socket);
    if (req.socket.destroyed || connection.isClosing) return;
    if (connection.startRequest(res) > MAX_PIPELINED) {
      req.socket.destroy();
      return;
    }
    const { address } = connection;
    const received = receiveRequest(req, res, { receivedAt: clock.monotonic(), address }, ways);
    const error = findTransportError(req, connection, received.request.path);
    if (error !== undefined) {
      sendRefusal(req, res, received, error);
      return;
    }
    const refusal = findOverloadRefusal(received);
    connection.runWhenDrained(() =>
      refusal === undefined ? replyTo(req, res, received) : refuse(req, res, received, refusal),
    );
  };

  /** Undefined for a call that is let in. Preflights are: without them a page cannot read the refusal of its call. */
  function findOverloadRefusal({ request, receivedAt }: ReceivedRequest) {
    const refusal = findByPath(overloadRefusals, request.path);
    if (refusal === undefined || request.method === 'OPTIONS') return undefined;
    return overload.tryAdmit(receivedAt) ? undefined : refusal;
  }

  /** The connection stays: a new one would cost more than the call. */
  function refuse(
    req: IncomingMessage,
    res: ServerResponse,
    received: ReceivedRequest,
    { route, reply, headers }: OverloadRefusal,
  ): void {
    // At the end of this turn of the event loop: a caller who tries again at once would otherwise keep the
    // loop busy with reading, and calls that were let in would not be answered.
    sendTogether(connections.get(req.socket), () => {
      sendReply(req, res, reply, headers.slice());
    });
    discardBody(req, clock);
    metrics.recordOverloadRefusal(route);
    record(received, reply, route);
  }

  /** What is wrong with a request whatever it asks for. */
  function findTransportError(req: IncomingMessage, connection: Connection, path: string) {
    if (hasUnsupportedCoding(req)) return createUnsupportedCodingError();
    const isServed = isServedWhenBusy(path) || connections.tryClaimPlace(connection);
    return isServed ? undefined : createBusyError();
  }

  function replyTo(req: IncomingMessage, res: ServerResponse, received: ReceivedRequest): void {
    const connection = connections.get(req.socket);
    const answer = (routed: RoutedReply) =>
      sendTogether(connection, () => send(req, res, received, routed));

    HEAD_READ.then(() => {
      try {
        const routed = runPipeline(received);
        if (routed instanceof Promise) {
          routed.then(answer, (cause: unknown) => fail(res, received, cause));
        } else answer(routed);
      } catch (thrown) {
        fail(res, received, thrown);
      }
    });
  }

  function fail(res: ServerResponse, { body }: ReceivedRequest, cause: unknown): void {
    body.release();
    breakOff(res, cause);
  }

  /** Never throws: replies of others may be sent right after it. */
  function send(
    req: IncomingMessage,
    res: ServerResponse,
    received: ReceivedRequest,
    { reply, headers, route, owner }: RoutedReply,
  ): void {
    const { body } = received;
    try {
      if (reply.stream !== undefined) {
        const onStreamEnd = createStreamEnd(res, received, reply, route);
        sendReply(req, res, reply, headers, { owner, onStreamEnd });
      } else sendReply(req, res, reply, headers, { owner });
      if (body.isRead) runWhenClosed(res, body.release);
      else discardBody(req, clock);
      if (reply.stream === undefined) record(received, reply, route);
      else forgetHeaders(req, res);
    } catch (thrown) {
      fail(res, received, thrown);
    }
  }

  /** Of what was received and sent it keeps what the log and the metrics say at the end: a stream stands for minutes. */
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
        record({ request: { method, path, clientIp }, receivedAt }, reply, route);
      } catch (cause) {
        breakOff(res, cause);
      }
    };
  }

  function sendRefusal(
    req: IncomingMessage,
    res: ServerResponse,
    received: ReceivedRequest,
    error: GatewayError,
  ): void {
    connections.get(req.socket).isClosing = true;
    const reply = renderTransportError(error, securityHeaders);
    sendReply(req, res, reply, toHeaderList(reply.headers));
    discardBody(req, clock);
    record(received, reply, 'unmatched');
  }

  function record({ request, receivedAt }: RecordedRequest, reply: Reply, route: string): void {
    const { method, path, clientIp } = request;
    const seconds = (clock.monotonic() - receivedAt) / 1000;
    logRequest({ method, path, clientIp, route, reply, seconds });
  }

  /** The head may be out already: only the end of the connection can tell that this failed. */
  function breakOff(res: ServerResponse, cause: unknown): void {
    log.error('A reply could not be sent; its connection is closed.', { cause });
    res.destroy();
  }
}

/**
 * Those that were received and those that were sent: Node keeps both until the reply has ended, the token among them. That
 * is two kilobytes of each open stream.
 */
function forgetHeaders(req: IncomingMessage, res: ServerResponse): void {
  req.rawHeaders.length = 0;
  // Who still needs them has the object that was there before.
  req.headers = NO_HEADERS;
  // By this member, which has no other name, Node tells that they are sent; that needs no more than some text.
  if (res.headersSent) Reflect.set(res, '_header', HEADERS_SENT);
}

const NO_HEADERS = {};
const HEADERS_SENT = 'sent';

// §4.11: one log line and one count per request, after its reply.

interface RecordedRequest extends Pick<ReceivedRequest, 'receivedAt'> {
  readonly request: Pick<ReceivedRequest['request'], 'method' | 'path' | 'clientIp'>;
}

export interface LoggedRequest {
  readonly method: string;
  readonly path: string;
  readonly clientIp: string;
  readonly route: string;
  readonly reply: Reply;
  /** Seconds from the request's head to the end of its reply. */
  readonly seconds: number;
}

export type LogRequest = (request: LoggedRequest) => void;

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Callers may send any word: those that nobody uses are one series. */
export const toKnownMethod = (method: string): string => (METHODS.has(method) ? method : 'other');

/** Never logs a query, a header or a body: they carry codes, states and tokens. */
export function createAccessLog({ log, metrics, clock }: Runtime): LogRequest {
  const throttle = createLogThrottle(clock, (error, leftOut) =>
    log.info(
      'Further requests were refused for the same reason in the last minute; LOG_LEVEL=debug shows all of them.',
      { error, leftOut },
    ),
  );

  /** Most levels do not write this line: then its facts need not be gathered. */
  const isEachLogged = log.isWritten?.('debug') ?? true;

  return function logRequest(request) {
    const { method, route, reply, seconds } = request;
    const { status } = reply;
    const outcome = reply.outcome?.();
    const error = reply.error ?? outcome?.error;
    metrics.recordHttpRequest(toKnownMethod(method), route, status, seconds);
    if (error === undefined) {
      if (isEachLogged) log.debug('Answered.', describeRequest(request, outcome));
      return;
    }
    const usualLevel = chooseLevel(status, error);
    const isLogged = usualLevel === 'debug' || throttle.countLine(error.key);
    const level = isLogged ? usualLevel : 'debug';
    if (log.isWritten?.(level) === false) return;
    log[level](usualLevel === 'error' ? 'Failed.' : 'Refused.', {
      ...describeRequest(request, outcome),
      error: error.key,
      details: error.message,
      cause: error.cause,
    });
  };
}

const describeRequest = (
  { method, path, clientIp, reply, seconds }: LoggedRequest,
  outcome: Pick<Reply, 'facts'> | undefined,
) => ({
  method,
  path: truncateForLog(path),
  status: reply.status,
  ms: Math.round(seconds * 1e6) / 1000,
  clientIp,
  ...reply.describe?.(),
  ...reply.facts,
  ...outcome?.facts,
});

/** What has a cause inside the service, or at the provider, is for an operator to look at. */
function chooseLevel(status: number, { logLevel, cause }: ReplyError) {
  if (logLevel !== undefined) return logLevel;
  if (status >= 500 || (status === 200 && cause !== undefined)) return 'error';
  return status === 429 ? 'debug' : 'info';
}
