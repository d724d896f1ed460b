// MCP "Streamable HTTP": one request, and the messages that answer it, as JSON or as a stream of events.
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { JsonObject } from '../../../core/json.ts';
import type { UpstreamError } from '../upstream.ts';
import {
  type AnswerBody,
  createEventBody,
  createJsonBody,
  createRefusalBody,
  NO_JSON,
} from './answer-body.ts';
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
}

export interface ExchangeListener {
  /** One value of JSON after the other; nothing more after the function that ends the exchange. */
  onMessage(value: unknown, headers: IncomingHttpHeaders): void;
  /** Once, unless the exchange was ended from here. */
  onEnd(end: ExchangeEnd): void;
  /** Headers of a success. */
  onStart?(headers: IncomingHttpHeaders): void;
  /** An event of another name than that of messages. */
  onNamedEvent?(name: string, data: string): void;
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
    }
  | { readonly kind: 'failed'; readonly error: UpstreamError };

/** Sends the request; the result ends it, whatever has come by then. */
export function startExchange(
  dispatcher: Dispatcher,
  { origin, path, method, headers: sent, body: content, maxBytes, isAnswered }: ExchangeRequest,
  listener: ExchangeListener,
): () => void {
  let controller: Dispatcher.DispatchController | undefined;
  let body: AnswerBody | undefined;
  let answerHeaders: IncomingHttpHeaders = {};
  let isOver = false;

  function end(outcome: ExchangeEnd): void {
    if (isOver) return;
    isOver = true;
    listener.onEnd(outcome);
  }

  function stop(): void {
    isOver = true;
    controller?.abort(STOPPED);
  }

  function fail(error: UpstreamError): void {
    end({ kind: 'failed', error });
    controller?.abort(STOPPED);
  }

  function readBody(read: (started: AnswerBody) => string | undefined): void {
    if (isOver || body === undefined) return;
    const problem = read(body);
    if (problem === undefined) return;
    fail(problem === NO_JSON ? createNoJsonError(answerHeaders) : createInvalidError(problem));
  }

  const request = { origin, path, method, headers: sent, body: content };
  dispatcher.dispatch(request, {
    onRequestStart(started) {
      controller = started;
      if (isOver) started.abort(STOPPED);
    },
    onResponseStart(_controller, status, headers) {
      if (status < 200 || isOver) return;
      answerHeaders = headers;
      const onValue = (value: unknown) => {
        if (!isOver) listener.onMessage(value, headers);
      };
      if (status >= 300) {
        body = createRefusalBody((value) => end({ kind: 'refused', status, headers, body: value }));
        return;
      }
      listener.onStart?.(headers);
      const complete = () => end({ kind: 'complete', status, headers });
      if (!isAnswered) {
        body = createRefusalBody(complete);
        return;
      }
      body = isEventStream(headers)
        ? createEventBody({ maxBytes, onValue, complete, onNamedEvent: listener.onNamedEvent })
        : createJsonBody({ maxBytes, onValue, complete });
    },
    onResponseData: (_controller, chunk) => readBody((started) => started.add(chunk)),
    onResponseEnd: () => readBody((started) => started.end()),
    onResponseError(_controller, cause) {
      end({ kind: 'failed', error: toConnectionError(cause, body !== undefined) });
    },
  });
  return stop;
}

/** What undici is told; nobody sees it, since the listener is told nothing more. */
const STOPPED = new Error('Nobody waits for the answer any more');

export const isEventStream = (headers: IncomingHttpHeaders): boolean =>
  headers['content-type']?.toLowerCase().startsWith('text/event-stream') ?? false;
