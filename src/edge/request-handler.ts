// Requests of node:http to the pipeline, and its replies back.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Reply, ReplyHeaders } from '../endpoint/message.ts';
import { GatewayError } from '../errors/gateway-error.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { type Connection, DISCARD_MS } from './connection.ts';
import type { ConnectionTable } from './connection-table.ts';
import type { LogRequest } from './observe-requests.ts';
import {
  findByPath,
  type Overload,
  type OverloadRefusal,
  type OverloadRefusals,
} from './overload.ts';
import type { Pipeline, RoutedReply } from './pipeline.ts';
import { createUnsupportedCodingError, hasBody, hasUnsupportedCoding } from './read-body.ts';
import {
  type FindClientIp,
  type ReceivedRequest,
  receiveRequest,
  runWhenClosed,
} from './receive-request.ts';
import { renderTransportError, toHeaderList } from './reply-headers.ts';
import type { Router } from './router.ts';
import { createSendReply, createSendTogether } from './send-reply.ts';

export interface RequestHandlerDeps {
  readonly connections: ConnectionTable;
  readonly runPipeline: Pipeline;
  readonly isServedWhenBusy: Router['isServedWhenBusy'];
  readonly overload: Overload;
  readonly overloadRefusals: OverloadRefusals;
  readonly findClientIp: FindClientIp;
  readonly logRequest: LogRequest;
  readonly securityHeaders: ReplyHeaders;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
}

export type RequestHandler = (req: IncomingMessage, res: ServerResponse) => void;

/** Requests of one connection that wait for their replies: each holds one in memory. */
const MAX_PIPELINED = 64;

export function createRequestHandler(deps: RequestHandlerDeps): RequestHandler {
  const {
    connections,
    runPipeline,
    isServedWhenBusy,
    overload,
    overloadRefusals,
    findClientIp,
    logRequest,
    securityHeaders,
    clock,
    metrics,
    log,
  } = deps;
  const sendReply = createSendReply({ connections, clock, log });
  const sendTogether = createSendTogether();

  return function handleRequest(req, res) {
    const connection = connections.get(req.socket);
    if (req.socket.destroyed || connection.isClosing) return;
    if (connection.startRequest(res) > MAX_PIPELINED) {
      req.socket.destroy();
      return;
    }
    const received = receiveRequest(req, res, {
      receivedAt: clock.monotonic(),
      address: connection.address,
      findClientIp,
    });
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
    const fail = (cause: unknown) => {
      received.body.release();
      breakOff(res, cause);
    };
    runPipeline(received).then(
      (answer) => sendTogether(connection, () => send(req, res, received, answer, fail)),
      fail,
    );
  }

  /** Never throws: replies of others may be sent right after it. */
  function send(
    req: IncomingMessage,
    res: ServerResponse,
    received: ReceivedRequest,
    { reply, headers, route, owner }: RoutedReply,
    fail: (cause: unknown) => void,
  ): void {
    const { body } = received;
    try {
      const sent = sendReply(req, res, reply, headers, owner);
      if (body.isRead) runWhenClosed(res, body.release);
      else discardBody(req, clock);
      if (sent === undefined) {
        record(received, reply, route);
        return;
      }
      sent
        .catch((cause: unknown) => breakOff(res, cause))
        .then(() => record(received, reply, route))
        .catch(fail);
    } catch (thrown) {
      fail(thrown);
    }
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

  function record({ request, receivedAt }: ReceivedRequest, reply: Reply, route: string): void {
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

function discardBody(req: IncomingMessage, clock: Clock): void {
  req.resume();
  if (req.complete || !hasBody(req)) return;
  const cancel = clock.after(DISCARD_MS, () => req.destroy());
  req.once('end', cancel);
}

const createBusyError = () =>
  new GatewayError('overloaded', {
    details: 'All connections of this service are busy (MAX_CONNECTIONS). Try again.',
    headers: { 'Retry-After': '1' },
  });
