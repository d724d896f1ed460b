// Sends replies, and records each request in the log, the metrics and its trace (§4.11, §21.2) after its reply.
import type { ServerResponse } from 'node:http';
import { createTurnEnd } from '../../platform/clock.ts';
import { truncateForLog } from '../../platform/log.ts';
import { createLogThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Reply } from '../endpoint/message.ts';
import type { Connection, ConnectionTable } from './client-connections.ts';
import { type IncomingExchange, runWhenClosed } from './incoming-exchange.ts';
import { discardBody } from './read-body.ts';
import {
  createSendStream,
  type OnStreamEnd,
  ReplyCounter,
  UNCOUNTED_REPLY_BYTES,
  writePieces,
  writeSlices,
} from './send-stream.ts';
import { createReplyMemory } from './transfer-memory.ts';

/** The part of an exchange that is recorded. Never a query, a header or a body: they carry codes, states and tokens. */
interface RecordedExchange extends Pick<IncomingExchange, 'receivedAt' | 'reply' | 'route'> {
  readonly request: Pick<IncomingExchange['request'], 'method' | 'path' | 'clientIp'>;
}

export function createReplySender(runtime: Runtime, connections: ConnectionTable) {
  const { clock, log, metrics } = runtime;
  const memory = createReplyMemory(clock);
  const sendStream = createSendStream(runtime, memory);
  /** The connection of the latest reply. */
  let latest: Connection | undefined;
  const sendAtTurnEnd = createTurnEnd(send);

  /**
   * Sends all replies that are ready in the same turn of the event loop at its end, each by a write of its own: writes between the
   * work on two requests were a third of a call's CPU at 32 connections. A single client would only wait: if the latest reply
   * went to the same connection, this one goes at once.
   */
  function sendSoon(exchange: IncomingExchange) {
    const isAlone = exchange.connection === latest;
    latest = exchange.connection;
    if (isAlone) send(exchange);
    else sendAtTurnEnd(exchange);
  }

  /** Never throws: other replies may be sent right after it. */
  function send(exchange: IncomingExchange) {
    const { res, reply } = exchange;
    const { stream, status } = reply;
    try {
      if (stream === undefined) sendWhole(exchange);
      else
        sendStream(exchange, stream, createStreamEnd(exchange)).start(
          status,
          completeHeaders(exchange),
        );
      if (exchange.isRead) runWhenClosed(res, exchange.release);
      else discardBody(res.req, clock);
      if (stream === undefined) record(exchange);
      else forgetHeaders(res);
    } catch (thrown) {
      breakOff(exchange, thrown);
    }
  }

  /** Adds the headers that only the transport knows. Without a number of bytes, the reply has no `Content-Length`. */
  function completeHeaders({ connection, headers }: IncomingExchange, bytes?: number) {
    if (bytes !== undefined) headers.push('Content-Length', String(bytes));
    if (connections.isLastReply(connection) && !headers.includes('Connection'))
      headers.push('Connection', 'close');
    return headers;
  }

  function sendWhole(exchange: IncomingExchange) {
    const { res, connection, owed, reply, owner } = exchange;
    const { status, body = '', pieces } = reply;
    let bytes = 0;
    for (const piece of pieces ?? [body]) bytes += Buffer.byteLength(piece);
    // RFC 9110 §8.6: none on a reply whose status allows no content.
    const headers = completeHeaders(exchange, status === 204 || status === 304 ? undefined : bytes);
    connection.countReply(owed, bytes);
    res.writeHead(status, headers);
    if (res.req.method === 'HEAD' || res.destroyed) {
      res.end();
      return;
    }
    if (bytes > WHOLE_BYTES) {
      const counter = new ReplyCounter(memory, owner, res);
      void writeSlices(res, pieces ?? [toBytes(body)], counter).then(() => res.end());
      return;
    }
    // Writes head and body with one system call. `end` with a body would add an empty write: 3 us of a call.
    const { socket } = res;
    socket?.cork();
    if (pieces === undefined) res.write(body);
    else writePieces(res, pieces);
    socket?.uncork();
    res.end();
    if (bytes <= UNCOUNTED_REPLY_BYTES) return;
    // The system has nearly always accepted all of it by now.
    if (res.writableLength > 0 && !res.destroyed) {
      const counted = new ReplyCounter(memory, owner, res).count(bytes);
      res.once('finish', () => counted.end());
    }
  }

  /** Keeps only what is recorded at the end: a stream stays open for minutes. */
  function createStreamEnd({
    res,
    receivedAt,
    request,
    route,
    reply: sent,
  }: IncomingExchange): OnStreamEnd {
    const { method, path, clientIp } = request;
    const { headers: _headers, stream: _stream, ...reply } = sent;
    return (failure) => {
      if (failure !== undefined) logBroken(res, failure.cause);
      try {
        record({ receivedAt, reply, route, request: { method, path, clientIp } });
      } catch (cause) {
        logBroken(res, cause);
      }
    };
  }

  /** Ends an exchange whose reply failed. */
  function breakOff({ res, release }: IncomingExchange, cause: unknown) {
    release();
    logBroken(res, cause);
  }

  /** The head may be out already: only the end of the connection can tell the client that the reply failed. */
  function logBroken(res: ServerResponse, cause: unknown) {
    log.error('A reply could not be sent; its connection is closed.', { cause });
    res.destroy();
  }

  const throttle = createLogThrottle(clock, (error, leftOut) =>
    log.info(
      'Further requests were refused for the same reason in the last minute; LOG_LEVEL=debug shows all of them.',
      { error, leftOut },
    ),
  );

  /** At most log levels this line is not written, so its facts do not have to be gathered. */
  const isEachLogged = log.isWritten?.('debug') ?? true;

  function record(exchange: RecordedExchange) {
    const { receivedAt, reply, route } = exchange;
    const { status } = reply;
    const seconds = (clock.monotonic() - receivedAt) / 1000;
    const outcome = reply.outcome?.();
    const error = reply.error ?? outcome?.error;
    const method = METHODS.has(exchange.request.method) ? exchange.request.method : 'other';
    metrics.recordHttpRequest(method, route, status, seconds);
    if (error !== undefined) {
      const usualLevel = chooseLevel(status, error);
      const isLogged = usualLevel === 'debug' || throttle.countLine(error.key);
      const level = isLogged ? usualLevel : 'debug';
      if (log.isWritten?.(level) !== false)
        log[level](usualLevel === 'error' ? 'Failed.' : 'Refused.', {
          ...describeRequest(exchange, seconds, outcome?.facts),
          error: error.key,
          details: error.message,
          cause: error.cause,
        });
    } else if (isEachLogged) {
      log.debug('Answered.', describeRequest(exchange, seconds, outcome?.facts));
    }
    if (reply.trace !== undefined) endTrace(exchange, method);
  }

  return { send, sendSoon, breakOff };
}

/** Clients may send any word: unknown methods share one series. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

const describeRequest = (
  { request: { method, path, clientIp }, reply }: RecordedExchange,
  seconds: number,
  outcomeFacts: Reply['facts'],
) => ({
  method,
  path: truncateForLog(path),
  status: reply.status,
  ms: Math.round(seconds * 1e6) / 1000,
  clientIp,
  ...reply.describe?.(),
  ...reply.facts,
  ...outcomeFacts,
});

/** A cause inside the service, or at the provider, requires an operator's attention. */
function chooseLevel(status: number, { logLevel, cause }: NonNullable<Reply['error']>) {
  if (logLevel !== undefined) return logLevel;
  if (status >= 500 || (status === 200 && cause !== undefined)) return 'error';
  return status === 429 ? 'debug' : 'info';
}

/** §21.2: ends the span of a request, by OpenTelemetry's conventions for HTTP. */
function endTrace({ request, reply, route }: RecordedExchange, method: string) {
  const { status, trace } = reply;
  const span = trace?.getSpan();
  if (trace === undefined || span === undefined) return;
  span.setAttributes({
    'http.request.method': method === 'other' ? '_OTHER' : method,
    'http.response.status_code': status,
    'http.route': route,
    'url.path': truncateForLog(request.path),
    'client.address': request.clientIp,
  });
  if (status >= 500) span.fail(String(status));
  trace.end(`${method} ${route}`);
}

/**
 * Drops the received and sent headers, which Node.js keeps until the reply has ended, including the token: two kilobytes per open
 * stream.
 */
function forgetHeaders(res: ServerResponse) {
  const { req } = res;
  req.rawHeaders.length = 0;
  // Code that still needs them holds the previous object.
  req.headers = NO_HEADERS;
  // This member, which has no other name, tells Node.js that they are sent; any text will do.
  if (res.headersSent) Reflect.set(res, '_header', HEADERS_SENT);
}

const NO_HEADERS = {};
const HEADERS_SENT = 'sent';

/** Maximum size of one write: a system call for each slice costs more than the rest of a 100 KB reply. */
const WHOLE_BYTES = 262_144;

/** Pages are the same bytes for every client, and are not copied. */
const toBytes = (body: string | Uint8Array): Uint8Array =>
  typeof body === 'string' ? Buffer.from(body) : body;
