// MCP "Streamable HTTP": one request, and the messages that answer it, as JSON or as a stream of events.
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { getErrorCode } from '../../platform/error-code.ts';
import type { JsonObject } from '../../platform/json.ts';
import { parseServerBytes, parseServerJson } from '../messages/server-message.ts';
import type { CountedAnswer } from '../transport/answer-memory.ts';
import type { StreamPace } from '../transport/message-pace.ts';
import { PacedMessages } from '../transport/paced-messages.ts';
import { UpstreamError } from '../upstream.ts';
import {
  type AnswerBody,
  createEventBody,
  createJsonBody,
  createRefusalBody,
} from './answer-body.ts';
import type { EventCursor } from './event-cursor.ts';
import { createInvalidError, createNoJsonError, toConnectionError } from './failures.ts';

export interface ExchangeRequest {
  readonly origin: string;
  readonly path: string;
  readonly method: 'POST' | 'GET' | 'DELETE';
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body: string | null;
  /** Bytes of the answer; of a stream, of each of its events. */
  readonly maxBytes: number;
  /** What has no answer is accepted by its status, whatever the body. */
  readonly isAnswered: boolean;
  /** Among its headers is a token of the configuration file, and none of a user. */
  readonly hasToken: boolean;
  /** Counts what of the answer is in memory; `onDrop` is called when it takes too much. */
  countAnswer(onDrop: (error: UpstreamError) => void): CountedAnswer;
  /** Of the messages in the answer. */
  openPace(): StreamPace;
}

export interface ExchangeListener {
  /**
   * One value of JSON after the other; nothing more after the function that ends the exchange. Returns how many
   * messages it counts as: none for the answer that was waited for.
   */
  onMessage(value: unknown, headers: IncomingHttpHeaders): number;
  /** Once, unless the exchange was ended from here. */
  onEnd(end: ExchangeEnd): void;
  /** Headers of a success. */
  onStart?(headers: IncomingHttpHeaders): void;
  /** An event of another name than that of messages. */
  onNamedEvent?(name: string, data: string): void;
  /** Where the position in a stream is kept, so that it can be read on; called once the server gives one. */
  readonly openCursor?: (() => EventCursor) | undefined;
}

export type ExchangeEnd =
  /** A success, read to its end. */
  | { readonly kind: 'complete'; readonly status: number; readonly headers: IncomingHttpHeaders }
  /** Any other status. */
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly body: JsonObject | undefined;
      /** `hasToken` of the request. */
      readonly hadToken: boolean;
    }
  | {
      readonly kind: 'failed';
      readonly error: UpstreamError;
      /** The connection broke in the middle of the answer, and was not closed by the gateway. */
      readonly isCut?: boolean;
    };

/** An event, or the pieces of a body. */
type Received = string | readonly Buffer[];

const parseReceived = (received: Received) =>
  typeof received === 'string' ? parseServerJson(received) : parseServerBytes(received);

/** How requests get to a server. */
export interface Route {
  readonly dispatcher: Dispatcher;
  /** As `createTurnEnd` returns it. */
  readonly runAtTurnEnd: (task: () => void) => void;
  /** Requests that have no answer yet; streams that the gateway listens to aside. */
  underWay: number;
}

/** Sends the request; the result ends it, whatever has come by then. */
export function startExchange(
  route: Route,
  exchange: ExchangeRequest,
  listener: ExchangeListener,
): () => void {
  const { origin, path, method, headers: sent, body: content, maxBytes, isAnswered } = exchange;
  const counted = exchange.countAnswer(fail);
  const pace = exchange.openPace();
  let controller: Dispatcher.DispatchController | undefined;
  let body: AnswerBody | undefined;
  let answerHeaders: IncomingHttpHeaders = {};
  let isOver = false;
  const isCounted = method === 'POST';

  const messages = new PacedMessages<Received>(pace, {
    pass: passMessage,
    copy: (received) => received,
    pause: () => controller?.pause(),
    resume() {
      counted.note(0, body?.keptBytes() ?? 0);
      controller?.resume();
    },
    giveUp: () => fail(new UpstreamError('overloaded', TOO_FAST)),
  });

  function close(): void {
    if (!isOver && isCounted) route.underWay -= 1;
    isOver = true;
    messages.stop();
    counted.end();
  }

  function end(outcome: ExchangeEnd): void {
    if (isOver) return;
    close();
    listener.onEnd(outcome);
  }

  function stop(): void {
    close();
    controller?.abort(STOPPED);
  }

  function fail(error: UpstreamError): void {
    end({ kind: 'failed', error });
    controller?.abort(STOPPED);
  }

  function passMessage(received: Received): number {
    const parsed = parseReceived(received);
    if (parsed !== undefined) return listener.onMessage(parsed.value, answerHeaders);
    fail(createNoJsonError(answerHeaders));
    return 1;
  }

  function readChunk(chunk: Buffer): void {
    if (isOver || body === undefined) return;
    const problem = body.add(chunk);
    if (isOver) return;
    if (problem !== undefined) {
      fail(createInvalidError(problem));
      return;
    }
    messages.check(chunk.length);
    if (isOver) return;
    counted.note(chunk.length, body.keptBytes() + messages.waitingBytes);
  }

  function createBody(status: number, headers: IncomingHttpHeaders): AnswerBody {
    if (status >= 300) {
      const refusal = { kind: 'refused', status, headers, hadToken: exchange.hasToken } as const;
      return createRefusalBody((value) => end({ ...refusal, body: value }));
    }
    listener.onStart?.(headers);
    const complete = () => end({ kind: 'complete', status, headers });
    if (!isAnswered) return createRefusalBody(complete);
    if (!isEventStream(headers)) {
      return createJsonBody(maxBytes, (pieces, bytes) => {
        if (bytes > 0) messages.push(pieces, bytes);
        messages.end(complete);
      });
    }
    return createEventBody({
      maxBytes,
      onMessage: (data) => messages.push(typeof data === 'string' ? data : [data], data.length),
      onNamedEvent(name, data) {
        pace.count(1, data.length);
        if (!isOver) listener.onNamedEvent?.(name, data);
      },
      onNoise: (count) => pace.count(count, 0),
      onEnd: () => messages.end(complete),
      openCursor: listener.openCursor,
    });
  }

  const request = { origin, path, method, headers: sent, body: content };
  /** What undici throws at once, as for a header that a proxy may not be sent, concerns this request alone. */
  function send(): void {
    if (isOver) return;
    try {
      route.dispatcher.dispatch(request, handler);
    } catch (cause) {
      end({ kind: 'failed', error: toConnectionError(cause, false) });
    }
  }

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(started) {
      controller = started;
      if (isOver) started.abort(STOPPED);
    },
    onResponseStart(_controller, status, headers) {
      if (status < 200 || isOver) return;
      answerHeaders = headers;
      body = createBody(status, headers);
    },
    onResponseData: (_controller, chunk) => readChunk(chunk),
    onResponseEnd() {
      // From now on the connection may be that of another request.
      controller = undefined;
      if (!isOver) body?.end();
    },
    onResponseError(_controller, cause) {
      controller = undefined;
      const hasAnswered = body !== undefined;
      const error = toConnectionError(cause, hasAnswered);
      const isCut = hasAnswered && getErrorCode(cause) !== CLOSED_FROM_HERE;
      messages.end(() => end({ kind: 'failed', error, isCut }));
    },
  };
  if (isCounted) route.underWay += 1;
  // Alone it would only wait.
  if (isCounted && route.underWay > 1) route.runAtTurnEnd(send);
  else send();
  return stop;
}

const TOO_FAST = 'it sent more messages than the gateway takes, for a minute';

/** The gateway no longer uses the server, and has closed all connections to it. */
const CLOSED_FROM_HERE = 'UND_ERR_DESTROYED';

/** What undici is told; nobody sees it, since the listener is told nothing more. */
const STOPPED = new Error('Nobody waits for the answer any more');

export const isEventStream = (headers: IncomingHttpHeaders): boolean =>
  headers['content-type']?.toLowerCase().startsWith('text/event-stream') ?? false;
