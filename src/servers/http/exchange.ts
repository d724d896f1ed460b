// One HTTP request to a server (MCP "Streamable HTTP"), and its answer: messages, as JSON or as an event stream.
import type { IncomingHttpHeaders } from 'node:http';
import { GATEWAY_CALLER, type UpstreamCaller, UpstreamError } from '../../mcp/upstream/upstream.ts';
import {
  BodyDecoder,
  type DecodedReader,
  readCoding,
} from '../../platform/http-client/content-coding.ts';
import {
  type HttpPool,
  type HttpRequest,
  PoolClosed,
  type ResponseHandler,
  type SentRequest,
} from '../../platform/http-client/http-pool.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { countBytes, dropByteOrderMark, PieceList, releaseChunks } from '../../platform/pieces.ts';
import { nameOwner } from '../../store/keys.ts';
import { parseEventData, parseServerBytes } from '../messages/server-message.ts';
import { PacedStream } from '../transport/message-pace.ts';
import {
  type CountedAnswer,
  type ProcessShare,
  UNCOUNTED_BYTES,
} from '../transport/process-share.ts';
import { describeExcess, type EventCursor, EventSplitter } from './event-stream.ts';
import {
  createCodingError,
  createInvalidError,
  createNoJsonError,
  type RefusedAnswer,
  toConnectionError,
} from './failures.ts';
import type { SessionCookies } from './session-cookies.ts';

/** Shared by all requests to a server. */
interface ExchangeServer {
  readonly name: string;
  readonly url: string;
  readonly pool: HttpPool;
  readonly share: Pick<ProcessShare, 'answerMemory' | 'messagePace'>;
  /** The function that `createTurnEnd` returns. */
  readonly sendAtTurnEnd: (exchange: Exchange) => void;
  /** Requests that have no answer yet, not counting the streams that the gateway listens to. */
  inFlight: number;
  /** Maximum size of an answer in bytes; for a stream, of each of its events. */
  readonly maxBytes: number;
  /** True if requests carry a token from the configuration file instead of a user's token. */
  readonly hasToken: boolean;
}

/** Receives a server's answer. */
export interface ExchangeListener {
  readonly caller: UpstreamCaller;
  /** Cookies of the session; undefined if none are kept. */
  readonly cookies?: SessionCookies | undefined;
  /**
   * Receives JSON values one after another, but none after the exchange was ended. Returns how many messages the value counts as:
   * none for the expected answer. Undefined for a message that has no answer: only the response's status is read.
   */
  onMessage?(value: unknown, headers: IncomingHttpHeaders): number;
  /** Like `onMessage`, for an event that is not JSON; if absent, such an event ends the exchange. */
  onNoJson?(): number;
  /** Called once, unless the gateway ended the exchange. */
  onEnd(end: ExchangeEnd): void;
  /** Called with the headers of a success. */
  onStart?(headers: IncomingHttpHeaders, status: number): void;
  /** Called for an event with a name other than that of messages. */
  onNamedEvent?(name: string, data: string): void;
  /** Keeps the position in a stream. Called when the server gives an event id; undefined if the stream is not resumed. */
  openCursor?(): EventCursor | undefined;
}

export type ExchangeEnd =
  /** A success that was read to its end. */
  | { readonly kind: 'complete'; readonly status: number; readonly headers: IncomingHttpHeaders }
  /** Any other status. */
  | (RefusedAnswer & { readonly kind: 'refused'; readonly body: JsonObject | undefined })
  | {
      readonly kind: 'failed';
      readonly error: UpstreamError;
      /** True if the connection broke in the middle of the answer, and the gateway did not close it. */
      readonly isCut?: boolean;
    };

/** Pieces of a body, or of the data of an event. */
type Received = readonly Uint8Array[];

/**
 * A class that holds everything for one answer, since every call has one: the request, the handler of its connection, the reader of
 * its body, and the pace of its messages.
 */
export class Exchange
  extends PacedStream<Received>
  implements HttpRequest, ResponseHandler, DecodedReader
{
  readonly path: string;
  method: HttpRequest['method'] = 'POST';
  headers: HttpRequest['headers'] = [];
  body: string | null = null;
  private readonly server: ExchangeServer;
  private readonly listener: ExchangeListener;
  private sent: SentRequest | undefined = undefined;
  private status = 0;
  /** False for a refusal, and for a message that has no answer: the status is enough for these. */
  private needsBody = true;
  private answerHeaders: IncomingHttpHeaders = NO_HEADERS;
  private decoder: BodyDecoder | undefined = undefined;
  private counted: CountedAnswer | undefined = undefined;
  /** The pieces of a body that is a single JSON value; undefined for an event stream. */
  private pieces: PieceList | undefined = undefined;
  /** Undefined unless the answer is an event stream. */
  private events: EventSplitter | undefined = undefined;
  private outcome: ExchangeEnd | undefined = undefined;

  constructor(server: ExchangeServer, listener: ExchangeListener, path: string) {
    super(server.share.messagePace);
    this.server = server;
    this.listener = listener;
    this.path = path;
  }

  /** Sends the request. */
  start(method: HttpRequest['method'], headers: HttpRequest['headers'], body: string | null): void {
    const { server } = this;
    this.method = method;
    this.headers = headers;
    this.body = body;
    if (method === 'POST') server.inFlight += 1;
    // A single request would only be delayed by this.
    if (method === 'POST' && server.inFlight > 1) server.sendAtTurnEnd(this);
    else this.send();
  }

  /** Ends the exchange, whatever has been received; the listener is not called again. */
  stop(): void {
    this.close();
    this.sent?.abort(this);
  }

  /** If a request cannot be sent at all, for example because of a connection header, only that request fails. */
  send(): void {
    if (this.isOver) return;
    try {
      this.sent = this.server.pool.send(this, this);
    } catch (cause) {
      this.end({ kind: 'failed', error: toConnectionError(cause, 'unsent') });
    }
    // Not kept while the server works: the headers contain a token, and the body may be long.
    this.headers = [];
    this.body = null;
  }

  private close(): void {
    if (!this.isOver && this.method === 'POST') this.server.inFlight -= 1;
    this.stopMessages();
    this.counted?.end();
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

  // Called by the connection.

  onStart(status: number, headers: IncomingHttpHeaders): void {
    if (this.isOver) return;
    this.status = status;
    this.answerHeaders = headers;
    this.needsBody = status < 300 && this.listener.onMessage !== undefined;
    const set = headers['set-cookie'];
    if (set !== undefined) this.listener.cookies?.take(set, this.path);
    const coding = headers['content-encoding'];
    if (coding !== undefined) {
      const { kind, name } = readCoding(coding);
      if (kind === 'known') this.decoder = new BodyDecoder(name, this.server.maxBytes, this);
      else if (kind === 'unknown' && this.needsBody) this.fail(createCodingError(name));
    }
    if (this.isOver) return;
    if (status < 300) this.listener.onStart?.(headers, status);
    if (!this.needsBody || !isEventStream(headers)) this.pieces = new PieceList();
    else this.events = new EventSplitter(this.server.maxBytes, this);
  }

  onData(chunk: Buffer): void {
    if (this.decoder === undefined) this.onDecoded(chunk);
    else if (!this.isOver) this.decoder.add(chunk);
  }

  onEnd(): void {
    if (this.decoder === undefined) this.endBody();
    else this.decoder.finish(() => this.endBody());
  }

  onError(cause: Error, wasSent: boolean): void {
    if (this.decoder === undefined) this.endBroken(cause, wasSent);
    else this.decoder.finish(() => this.endBroken(cause, wasSent));
  }

  private endBroken(cause: Error, wasSent: boolean): void {
    const hasAnswered = this.status > 0;
    const progress = hasAnswered ? 'answered' : wasSent ? 'sent' : 'unsent';
    const error = toConnectionError(cause, progress);
    const isCut = hasAnswered && !(cause instanceof PoolClosed);
    this.outcome = { kind: 'failed', error, isCut };
    this.endMessages();
  }

  // Called by the decoder.

  onDecoded(chunk: Buffer): void {
    if (this.isOver || this.status === 0) return;
    const problem = this.events === undefined ? this.addPiece(chunk) : this.events.add(chunk);
    // The received data may have ended the exchange.
    if (problem !== undefined) this.failBody(problem);
    if (this.isOver) return;
    this.checkPace(chunk.length);
    if (!this.isOver) this.countKept(chunk.length);
  }

  onUndecodable(problem: string): void {
    this.failBody(`its answer cannot be decoded: ${problem}`);
  }

  onWaiting(): void {
    // A decoder that was stopped may still report its last write, and nothing would ever subtract that count.
    if (!this.isOver) this.countKept(0);
  }

  holdSource(): void {
    this.sent?.pause(this);
  }

  letSourceGoOn(): void {
    this.sent?.resume(this);
  }

  // The body: a JSON value, or events.

  private addPiece(chunk: Buffer): string | undefined {
    const { pieces } = this;
    const maxBytes = this.needsBody ? this.server.maxBytes : MAX_REFUSAL_BYTES;
    if (pieces === undefined || pieces.byteLength + chunk.length > maxBytes)
      return describeExcess(maxBytes);
    pieces.add(chunk);
    return undefined;
  }

  private endBody(): void {
    if (this.isOver || this.status === 0) return;
    const { status, answerHeaders: headers, pieces } = this;
    if (pieces !== undefined) {
      const content = dropByteOrderMark(pieces.take());
      if (!this.needsBody) {
        const value = parseServerBytes(content)?.value;
        this.endByStatus(isObject(value) ? value : undefined);
        return;
      }
      // The body may be empty (202).
      const length = countBytes(content);
      if (length > 0) this.push(content, length);
    }
    this.outcome = { kind: 'complete', status, headers };
    this.endMessages();
  }

  private failBody(problem: string): void {
    if (this.needsBody) {
      this.fail(createInvalidError(problem));
      return;
    }
    this.endByStatus(undefined);
    this.sent?.abort(this);
  }

  /** Ends with a refusal, or with the answer to a message that has none. */
  private endByStatus(body: JsonObject | undefined): void {
    const { status, answerHeaders: headers } = this;
    const { url, hasToken: hadToken } = this.server;
    const hadLogin = this.listener.caller.connectionId !== undefined;
    if (status < 300) this.end({ kind: 'complete', status, headers });
    else this.end({ kind: 'refused', status, headers, body, url, hadToken, hadLogin });
  }

  private countKept(received: number): void {
    const { pieces, events, decoder, server, listener } = this;
    const ofBody = pieces?.byteLength ?? events?.keptBytes() ?? 0;
    const kept = ofBody + this.waitingBytes + (decoder?.keptBytes ?? 0);
    if (this.counted === undefined && kept < UNCOUNTED_BYTES) return;
    const { caller } = listener;
    const owner = caller === GATEWAY_CALLER ? { server: server.name } : { user: nameUser(caller) };
    this.counted ??= server.share.answerMemory.open(owner, (error) => this.fail(error));
    this.counted.note(received, kept);
  }

  // Called by the event splitter.

  onEventData(data: readonly Uint8Array[], length: number): void {
    this.push(data, length);
  }

  onNamedEvent(name: string, data: string): void {
    this.count(1, data.length);
    if (!this.isOver) this.listener.onNamedEvent?.(name, data);
  }

  onNoise(count: number): void {
    this.count(count, 0);
  }

  openCursor(): EventCursor | undefined {
    return this.isOver ? undefined : this.listener.openCursor?.();
  }

  // Called by the pacing of messages.

  protected findSource() {
    const { server, listener } = this;
    return { server: server.name, user: nameUser(listener.caller), isShared: false };
  }

  protected take(received: Received): number {
    const parsed =
      this.events === undefined ? parseServerBytes(received) : parseEventData(received);
    const { listener, answerHeaders: headers } = this;
    if (parsed !== undefined) return listener.onMessage?.(parsed.value, headers) ?? 1;
    if (listener.onNoJson !== undefined && this.events !== undefined) return listener.onNoJson();
    this.fail(createNoJsonError(headers));
    return 1;
  }

  /** Copies only the message, not the whole chunks that contain it. */
  protected override copy(received: Received): Received {
    return releaseChunks(received);
  }

  protected pauseSource(): void {
    (this.decoder ?? this.sent)?.pause(this);
  }

  protected resumeSource(): void {
    this.countKept(0);
    (this.decoder ?? this.sent)?.resume(this);
  }

  protected giveUp(): void {
    this.fail(new UpstreamError('overloaded', TOO_FAST));
  }

  protected finish(): void {
    if (this.outcome !== undefined) this.end(this.outcome);
  }
}

const NO_HEADERS: IncomingHttpHeaders = {};

/** A refusal's body is read only for a JSON-RPC error. */
const MAX_REFUSAL_BYTES = 65_536;

const TOO_FAST = 'it sent more messages than the gateway takes, for a minute';

const nameUser = ({ user }: UpstreamCaller) => user && nameOwner(user);

export const isEventStream = (headers: IncomingHttpHeaders): boolean =>
  headers['content-type']?.toLowerCase().startsWith('text/event-stream') ?? false;
