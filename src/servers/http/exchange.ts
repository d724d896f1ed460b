// MCP "Streamable HTTP": one request, and the messages that answer it, as JSON or as a stream of events.
import type { IncomingHttpHeaders } from 'node:http';
import { type UpstreamCaller, UpstreamError } from '../../mcp/upstream/upstream.ts';
import type {
  HttpRequest,
  ResponseHandler,
  SentRequest,
} from '../../platform/http-client/connection.ts';
import {
  BodyDecoder,
  type DecodedReader,
  readCoding,
} from '../../platform/http-client/content-coding.ts';
import { type HttpPool, PoolClosed } from '../../platform/http-client/http-pool.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { parseServerBytes, parseServerJson } from '../messages/server-message.ts';
import { PacedMessages, type PacedStream, type StreamPace } from '../transport/message-pace.ts';
import type { CountedAnswer } from '../transport/process-share.ts';
import {
  type AnswerBody,
  type AnswerReader,
  EventBody,
  type EventCursor,
  JsonBody,
} from './answer-body.ts';
import {
  createCodingError,
  createInvalidError,
  createNoJsonError,
  type RefusedAnswer,
  toConnectionError,
} from './failures.ts';
import type { SessionCookies } from './session-cookies.ts';

/** Shared by all requests to a server. */
export interface ExchangeServer {
  readonly pool: HttpPool;
  /** As `createTurnEnd` returns it. */
  readonly runAtTurnEnd: (task: () => void) => void;
  /** Requests that have no answer yet; streams that the gateway listens to aside. */
  underWay: number;
  readonly url: string;
  /** Bytes of an answer; of a stream, of each of its events. */
  readonly maxBytes: number;
  /** Among the headers of its requests is a token of the configuration file, and none of a user. */
  readonly hasToken: boolean;
  /** Counts what of an answer is in memory; `onDrop` is called when it takes too much. */
  countAnswer(caller: UpstreamCaller, onDrop: (error: UpstreamError) => void): CountedAnswer;
  /** Pace of the messages in an answer. */
  openPace(caller: UpstreamCaller): StreamPace;
}

export interface ExchangeRequest extends HttpRequest {
  readonly server: ExchangeServer;
  readonly caller: UpstreamCaller;
  /** Cookies of its session; undefined if none are kept. */
  readonly cookies: SessionCookies | undefined;
  /** False for a message without an answer: it is accepted by its status, whatever the body. */
  readonly isAnswered: boolean;
}

export interface ExchangeListener {
  /**
   * One value of JSON after the other; nothing more after the function that ends the exchange. Returns how many
   * messages it counts as: none for the answer that was waited for.
   */
  onMessage(value: unknown, headers: IncomingHttpHeaders): number;
  /** An event of what is no JSON, as `onMessage`; without it that ends the exchange. */
  onNoJson?(): number;
  /** Once, unless the exchange was ended from here. */
  onEnd(end: ExchangeEnd): void;
  /** Headers of a success. */
  onStart?(headers: IncomingHttpHeaders, status: number): void;
  /** An event of another name than that of messages. */
  onNamedEvent?(name: string, data: string): void;
  /** Keeps the position in a stream; called once the server gives one. Undefined if none is read on. */
  openCursor?(): EventCursor | undefined;
}

export type ExchangeEnd =
  /** A success, read to its end. */
  | { readonly kind: 'complete'; readonly status: number; readonly headers: IncomingHttpHeaders }
  /** Any other status. */
  | (RefusedAnswer & { readonly kind: 'refused'; readonly body: JsonObject | undefined })
  | {
      readonly kind: 'failed';
      readonly error: UpstreamError;
      /** The connection broke in the middle of the answer, and was not closed by the gateway. */
      readonly isCut?: boolean;
    };

/** An event, or the pieces of a body. */
type Received = string | readonly Uint8Array[];

/** Sends the request. */
export function startExchange(
  request: ExchangeRequest,
  listener: ExchangeListener,
): Pick<Exchange, 'stop'> {
  const exchange = new Exchange(request, listener);
  exchange.start();
  return exchange;
}

/**
 * A class, since every call has one: the connection, the body and the pace call its methods, where closures of each exchange
 * took some 2 KB of it.
 */
class Exchange implements ResponseHandler, DecodedReader, PacedStream<Received>, AnswerReader {
  private readonly request: ExchangeRequest;
  private readonly listener: ExchangeListener;
  private readonly counted: CountedAnswer;
  private readonly pace: StreamPace;
  private readonly messages: PacedMessages<Received>;
  private sent: SentRequest | undefined;
  private body: AnswerBody | undefined;
  /** Decodes a body that arrives compressed, although nobody asked for that. */
  private decoder: BodyDecoder | undefined;
  private status = 0;
  private answerHeaders: IncomingHttpHeaders = NO_HEADERS;
  /** The end, once all that came has been passed on. */
  private outcome: ExchangeEnd | undefined;
  private isOver = false;

  constructor(request: ExchangeRequest, listener: ExchangeListener) {
    const { server, caller } = request;
    this.request = request;
    this.listener = listener;
    this.counted = server.countAnswer(caller, (error) => this.fail(error));
    this.pace = server.openPace(caller);
    this.messages = new PacedMessages<Received>(this.pace, this);
  }

  start(): void {
    const { server } = this.request;
    if (this.isCounted()) server.underWay += 1;
    // Alone it would only wait.
    if (this.isCounted() && server.underWay > 1) server.runAtTurnEnd(() => this.send());
    else this.send();
  }

  /** Ends it, whatever has come by then; the listener is told nothing more. */
  stop(): void {
    this.close();
    this.sent?.abort(this);
  }

  private isCounted(): boolean {
    return this.request.method === 'POST';
  }

  /** A request that cannot be sent at all, as for a header that is the connection's, fails alone. */
  private send(): void {
    if (this.isOver) return;
    try {
      this.sent = this.request.server.pool.send(this.request, this);
    } catch (cause) {
      this.end({ kind: 'failed', error: toConnectionError(cause, false) });
    }
  }

  private close(): void {
    if (!this.isOver && this.isCounted()) this.request.server.underWay -= 1;
    this.isOver = true;
    this.messages.stop();
    this.counted.end();
    this.decoder?.stop();
  }

  private end(outcome: ExchangeEnd): void {
    if (this.isOver) return;
    this.close();
    this.listener.onEnd(outcome);
  }

  private fail(error: UpstreamError): void {
    this.end({ kind: 'failed', error });
    this.sent?.abort(this);
  }

  // Told by the connection.

  onStart(status: number, headers: IncomingHttpHeaders): void {
    if (this.isOver) return;
    this.status = status;
    this.answerHeaders = headers;
    const { cookies, path } = this.request;
    const set = cookies && headers['set-cookie'];
    if (set !== undefined) cookies?.take(set, path);
    const coding = headers['content-encoding'];
    if (coding !== undefined) {
      const { kind, name } = readCoding(coding);
      if (kind === 'known')
        this.decoder = new BodyDecoder(name, this.request.server.maxBytes, this);
      else if (kind === 'unknown' && this.needsBody()) this.fail(createCodingError(name));
    }
    if (!this.isOver) this.body = this.createBody();
  }

  /** For a refusal, and for a message without an answer, the status says enough. */
  private needsBody(): boolean {
    return this.status < 300 && this.request.isAnswered;
  }

  onData(chunk: Buffer): void {
    if (this.decoder === undefined) this.onDecoded(chunk);
    else if (!this.isOver) this.decoder.add(chunk);
  }

  private countKept(received: number): void {
    const { body, messages, decoder } = this;
    const kept = (body?.keptBytes() ?? 0) + messages.waitingBytes;
    this.counted.note(received, kept + (decoder?.keptBytes ?? 0));
  }

  onDecoded(chunk: Buffer): void {
    const { body, messages } = this;
    if (this.isOver || body === undefined) return;
    const problem = body.add(chunk);
    // It may be over by what has come; what more would come nobody reads.
    if (problem !== undefined) this.failBody(problem);
    if (this.isOver) return;
    messages.check(chunk.length);
    if (!this.isOver) this.countKept(chunk.length);
  }

  onUndecodable(problem: string): void {
    this.failBody(`its answer cannot be decoded: ${problem}`);
  }

  private failBody(problem: string): void {
    if (this.needsBody()) {
      this.fail(createInvalidError(problem));
      return;
    }
    this.endBySaid(undefined);
    this.sent?.abort(this);
  }

  onWaiting(): void {
    this.countKept(0);
  }

  holdSource(): void {
    this.sent?.pause(this);
  }

  letSourceGoOn(): void {
    this.sent?.resume(this);
  }

  onEnd(): void {
    if (this.decoder === undefined) this.endBody();
    else this.decoder.finish(() => this.endBody());
  }

  private endBody(): void {
    if (!this.isOver) this.body?.end();
  }

  onError(cause: Error): void {
    if (this.decoder === undefined) this.endBroken(cause);
    else this.decoder.finish(() => this.endBroken(cause));
  }

  private endBroken(cause: Error): void {
    const hasAnswered = this.body !== undefined;
    const error = toConnectionError(cause, hasAnswered);
    const isCut = hasAnswered && !(cause instanceof PoolClosed);
    this.endAfterMessages({ kind: 'failed', error, isCut });
  }

  // Told by its body.

  private createBody(): AnswerBody {
    const { status, answerHeaders: headers } = this;
    if (status < 300) this.listener.onStart?.(headers, status);
    if (!this.needsBody()) return new JsonBody(MAX_REFUSAL_BYTES, this);
    const { maxBytes } = this.request.server;
    return isEventStream(headers) ? new EventBody(maxBytes, this) : new JsonBody(maxBytes, this);
  }

  onBody(pieces: readonly Uint8Array[], bytes: number): void {
    if (!this.needsBody()) {
      const value = parseServerBytes(pieces)?.value;
      this.endBySaid(isObject(value) ? value : undefined);
      return;
    }
    if (bytes > 0) this.messages.push(pieces, bytes);
    this.onEventsEnd();
  }

  onMessage(data: string | Buffer): void {
    this.messages.push(typeof data === 'string' ? data : [data], data.length);
  }

  onNamedEvent(name: string, data: string): void {
    this.pace.count(1, data.length);
    if (!this.isOver) this.listener.onNamedEvent?.(name, data);
  }

  onNoise(count: number): void {
    this.pace.count(count, 0);
  }

  onEventsEnd(): void {
    const { status, answerHeaders: headers } = this;
    this.endAfterMessages({ kind: 'complete', status, headers });
  }

  /** The end of a refusal, or of the answer to a message that has none. */
  private endBySaid(body: JsonObject | undefined): void {
    const { status, answerHeaders: headers } = this;
    const { server, caller } = this.request;
    const { url, hasToken: hadToken } = server;
    const hadLogin = caller.connectionId !== undefined;
    if (status < 300) this.end({ kind: 'complete', status, headers });
    else this.end({ kind: 'refused', status, headers, body, url, hadToken, hadLogin });
  }

  openCursor(): EventCursor | undefined {
    return this.listener.openCursor?.();
  }

  private endAfterMessages(outcome: ExchangeEnd): void {
    this.outcome = outcome;
    this.messages.end();
  }

  // Told by the pace of its messages.

  pass(received: Received): number {
    const parsed =
      typeof received === 'string' ? parseServerJson(received) : parseServerBytes(received);
    const { listener, answerHeaders: headers } = this;
    if (parsed !== undefined) return listener.onMessage(parsed.value, headers);
    if (listener.onNoJson !== undefined && isEventStream(headers)) return listener.onNoJson();
    this.fail(createNoJsonError(headers));
    return 1;
  }

  copy(received: Received): Received {
    return received;
  }

  pause(): void {
    (this.decoder ?? this.sent)?.pause(this);
  }

  resume(): void {
    this.countKept(0);
    (this.decoder ?? this.sent)?.resume(this);
  }

  giveUp(): void {
    this.fail(new UpstreamError('overloaded', TOO_FAST));
  }

  finish(): void {
    if (this.outcome !== undefined) this.end(this.outcome);
  }
}

const NO_HEADERS: IncomingHttpHeaders = {};

/** No more than an error of JSON-RPC is read of a refusal. */
const MAX_REFUSAL_BYTES = 65_536;

const TOO_FAST = 'it sent more messages than the gateway takes, for a minute';

export const isEventStream = (headers: IncomingHttpHeaders): boolean =>
  headers['content-type']?.toLowerCase().startsWith('text/event-stream') ?? false;
