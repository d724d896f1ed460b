// MCP "Streamable HTTP": one request, and the messages that answer it, as JSON or as a stream of events.
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { decodePieces, type JsonObject } from '../../platform/json.ts';
import { parseServerJson } from '../messages/server-message.ts';
import type { AnswerMemory, AnswerOwner, CountedAnswer } from '../transport/answer-memory.ts';
import type { MessagePace, PacedSource, StreamPace } from '../transport/message-pace.ts';
import { PacedMessages, type PacedStream } from '../transport/paced-messages.ts';
import { UpstreamError } from '../upstream.ts';
import {
  type AnswerBody,
  type BodyReceiver,
  createEventBody,
  JsonBody,
  RefusalBody,
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
  /** Among its headers is a token of the configuration file, and none of a user. */
  readonly hasToken: boolean;
  /** Whose memory the answer takes while it comes in. */
  readonly owner: AnswerOwner;
  /** Whose messages are in the answer. */
  readonly source: PacedSource;
}

/** What all exchanges with a server share. */
export interface ExchangeDeps {
  readonly answerMemory: AnswerMemory;
  readonly messagePace: MessagePace;
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
  | { readonly kind: 'failed'; readonly error: UpstreamError };

/** An event, or the pieces of a body. */
type Received = string | readonly Buffer[];

function parseReceived(received: Received): { readonly value: unknown } | undefined {
  if (typeof received === 'string') return parseServerJson(received);
  const text = decodePieces(received);
  return text === undefined ? undefined : parseServerJson(text, received);
}

/** One request that was sent, until its answer has come or nobody waits for it any more. */
export class Exchange implements Dispatcher.DispatchHandler, PacedStream<Received>, BodyReceiver {
  private readonly request: ExchangeRequest;
  private readonly listener: ExchangeListener;
  private readonly counted: CountedAnswer;
  private readonly streamPace: StreamPace;
  private readonly messages: PacedMessages<Received>;
  private controller: Dispatcher.DispatchController | undefined;
  private body: AnswerBody | undefined;
  private status = 0;
  private headers: IncomingHttpHeaders = {};
  private isOver = false;

  constructor(
    dispatcher: Dispatcher,
    request: ExchangeRequest,
    listener: ExchangeListener,
    { answerMemory, messagePace }: ExchangeDeps,
  ) {
    this.request = request;
    this.listener = listener;
    this.counted = answerMemory.open(request.owner, (error) => this.fail(error));
    this.streamPace = messagePace.open(request.source);
    this.messages = new PacedMessages<Received>(this.streamPace, this);
    const { origin, path, method, headers, body } = request;
    dispatcher.dispatch({ origin, path, method, headers, body }, this);
  }

  /** Nothing more is told of it. */
  stop(): void {
    this.close();
    this.controller?.abort(STOPPED);
  }

  // What undici tells.

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.isOver) controller.abort(STOPPED);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200 || this.isOver) return;
    this.status = status;
    this.headers = headers;
    this.body = this.createBody();
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.isOver || this.body === undefined) return;
    const problem = this.body.add(chunk);
    if (this.isOver) return;
    if (problem !== undefined) {
      this.fail(createInvalidError(problem));
      return;
    }
    this.messages.check(chunk.length);
    if (this.isOver) return;
    this.counted.note(chunk.length, this.body.keptBytes() + this.messages.waitingBytes);
  }

  onResponseEnd(): void {
    // From now on the connection may be that of another request.
    this.controller = undefined;
    if (!this.isOver) this.body?.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, cause: Error): void {
    this.controller = undefined;
    const error = toConnectionError(cause, this.body !== undefined);
    this.messages.end(() => this.end({ kind: 'failed', error }));
  }

  // What the body turns out to be.

  private createBody(): AnswerBody {
    const { isAnswered, maxBytes } = this.request;
    if (this.status >= 300) return new RefusalBody(this);
    this.listener.onStart?.(this.headers);
    if (!isAnswered) return new RefusalBody(this);
    return isEventStream(this.headers)
      ? createEventBody(maxBytes, this)
      : new JsonBody(maxBytes, this);
  }

  onPieces(pieces: readonly Buffer[], bytes: number): void {
    if (bytes > 0) this.messages.push(pieces, bytes);
  }

  onEvent(data: string): void {
    this.messages.push(data, data.length);
  }

  onNamedEvent(name: string, data: string): void {
    this.streamPace.count(1, data.length);
    if (!this.isOver) this.listener.onNamedEvent?.(name, data);
  }

  onNoise(count: number): void {
    this.streamPace.count(count, 0);
  }

  onBodyEnd(): void {
    const { status, headers } = this;
    this.messages.end(() => this.end({ kind: 'complete', status, headers }));
  }

  onRefusal(body: JsonObject | undefined): void {
    const { status, headers } = this;
    const { hasToken } = this.request;
    if (status < 300) this.end({ kind: 'complete', status, headers });
    else this.end({ kind: 'refused', status, headers, body, hadToken: hasToken });
  }

  // At the pace of its messages.

  pass(received: Received): number {
    const parsed = parseReceived(received);
    if (parsed !== undefined) return this.listener.onMessage(parsed.value, this.headers);
    this.fail(createNoJsonError(this.headers));
    return 1;
  }

  copy(received: Received): Received {
    return received;
  }

  pause(): void {
    this.controller?.pause();
  }

  resume(): void {
    this.counted.note(0, this.body?.keptBytes() ?? 0);
    this.controller?.resume();
  }

  giveUp(): void {
    this.fail(new UpstreamError('overloaded', TOO_FAST));
  }

  private close(): void {
    this.isOver = true;
    this.messages.stop();
    this.counted.end();
  }

  private end(outcome: ExchangeEnd): void {
    if (this.isOver) return;
    this.close();
    this.listener.onEnd(outcome);
  }

  private fail(error: UpstreamError): void {
    this.end({ kind: 'failed', error });
    this.controller?.abort(STOPPED);
  }
}

const TOO_FAST = 'it sent more messages than the gateway takes, for a minute';

/** What undici is told; nobody sees it, since the listener is told nothing more. */
const STOPPED = new Error('Nobody waits for the answer any more');

export const isEventStream = (headers: IncomingHttpHeaders): boolean =>
  headers['content-type']?.toLowerCase().startsWith('text/event-stream') ?? false;
