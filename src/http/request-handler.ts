// Requests of node:http to the pipeline, and its replies back.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../core/clock.ts';
import { GatewayError } from '../core/errors/gateway-error.ts';
import type { Log } from '../core/log.ts';
import type { Reply, ReplyHeaders } from '../core/message.ts';
import type { LogRequest } from './access-log.ts';
import type { FindClientIp } from './client-ip.ts';
import { type Connection, DISCARD_MS } from './connection.ts';
import type { ConnectionTable } from './connection-table.ts';
import type { Pipeline } from './pipeline.ts';
import { type ReceivedRequest, receiveRequest, runWhenClosed } from './receive-request.ts';
import type { Router } from './router.ts';
import { createSendReply } from './send-reply.ts';
import { createUnsupportedCodingError, hasBody, hasUnsupportedCoding } from './transfer-coding.ts';
import { renderTransportError } from './transport-error.ts';

export interface RequestHandlerDeps {
  readonly connections: ConnectionTable;
  readonly runPipeline: Pipeline;
  readonly isServedWhenBusy: Router['isServedWhenBusy'];
  readonly findClientIp: FindClientIp;
  readonly logRequest: LogRequest;
  readonly securityHeaders: ReplyHeaders;
  readonly clock: Clock;
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
    findClientIp,
    logRequest,
    securityHeaders,
    clock,
    log,
  } = deps;
  const sendReply = createSendReply({ connections, clock, log });

  return function handleRequest(req, res) {
    const connection = connections.get(req.socket);
    if (req.socket.destroyed || connection.isClosing) return;
    if (connection.startRequest(res) > MAX_PIPELINED) {
      req.socket.destroy();
      return;
    }
    const received = receiveRequest(req, res, { receivedAt: clock.monotonic(), findClientIp });
    const error = findTransportError(req, connection, received.request.path);
    if (error === undefined) connection.runWhenDrained(() => replyTo(req, res, received));
    else sendRefusal(req, res, received, error);
  };

  /** What is wrong with a request whatever it asks for. */
  function findTransportError(req: IncomingMessage, connection: Connection, path: string) {
    if (hasUnsupportedCoding(req)) return createUnsupportedCodingError();
    const isServed = isServedWhenBusy(path) || connections.tryClaimPlace(connection);
    return isServed ? undefined : createBusyError();
  }

  function replyTo(req: IncomingMessage, res: ServerResponse, received: ReceivedRequest): void {
    const { body } = received;
    runPipeline(received)
      .then(async ({ reply, route }) => {
        const sent = sendReply(req, res, reply);
        if (body.isRead) runWhenClosed(res, body.release);
        else discardBody(req, clock);
        if (sent) await sent.catch((cause: unknown) => breakOff(res, cause));
        record(received, reply, route);
      })
      .catch((cause: unknown) => {
        body.release();
        breakOff(res, cause);
      });
  }

  function sendRefusal(
    req: IncomingMessage,
    res: ServerResponse,
    received: ReceivedRequest,
    error: GatewayError,
  ): void {
    connections.get(req.socket).isClosing = true;
    const reply = renderTransportError(error, securityHeaders);
    sendReply(req, res, reply);
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
