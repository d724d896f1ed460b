// One JSON-RPC request to a server: sends it, reads the answer and any messages before it, and resolves to the outcome.
import type { IncomingHttpHeaders } from 'node:http';
import type { JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import type { RequestHeaders } from '../../mcp/upstream/envelope.ts';
import {
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
} from '../../mcp/upstream/upstream.ts';
import { Cancellation } from '../../platform/cancellation.ts';
import { type Clock, createAttempts, Deadline } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import {
  readEchoedNumber,
  readServerMessage,
  type ServerMessage,
  type ServerNotification,
  type ServerRequest,
} from '../messages/server-message.ts';
import { BACK_OFF, pauseAfter } from '../transport/process-share.ts';
import { createEventCursor, type EventCursor } from './event-stream.ts';
import {
  type Exchange,
  type ExchangeEnd,
  type ExchangeListener,
  isEventStream,
} from './exchange.ts';
import { createInvalidError, createNoMessageError, toRefusal } from './failures.ts';
import type { SessionCookies } from './session-cookies.ts';
import type { ServerSession } from './sessions.ts';

/** Maximum number of unanswered requests from the server: each answer takes a separate connection. */
export const MAX_OPEN_REQUESTS = 32;

/** Maximum number of responses to other requests in the stream of one request. */
const MAX_FOREIGN = 100;
const FOREIGN = 'it answered another request than the one that was sent';

/** A stream that continues for longer after its answer is closed. */
const LINGER_MS = 1000;

/** The call's connection to the server. */
interface CallConnection {
  readonly clock: Clock;
  /** Warns about a message that no call is waiting for. */
  readonly onStray: (words: string) => void;
  /** Opens a GET stream; undefined once the server may no longer be queried. */
  reopen(listener: ExchangeListener, headers: RequestHeaders): Promise<() => void> | undefined;
}

/**
 * A call, in this form one of the gateway's own; each era adds its parts. A class, since every relayed call has one. The call may
 * be sent again once an attempt has ended.
 */
export class ServerCall implements ExchangeListener {
  readonly caller: UpstreamCaller;
  request: UpstreamRequest;
  readonly headers: RequestHeaders;
  /** Maximum time without progress, in milliseconds (`deadline`). */
  readonly timeoutMs: number;
  cookies: SessionCookies | undefined = undefined;
  /** The open requests of the call's session; undefined for a call without a session. */
  openRequests: ServerSession['openRequests'] | undefined = undefined;
  /** This call's entry in `openRequests`, during an attempt. */
  private link: ReturnType<ServerSession['openRequests']['add']> | undefined = undefined;
  /** Headers of the GET that reads the rest of an answer; undefined in an era whose streams end with their connection. */
  resumeHeaders: RequestHeaders | undefined = undefined;
  /** True if an answer to this call does not by itself show that the server is usable. */
  isHandshake = false;
  /** True if the call is sent only to see what the server refuses: its outcome has no other effect. */
  isTrial = false;
  /** The id of the last message sent, which is also its progress token. */
  id = 0;
  /**
   * Renewed by progress, and paused while the server waits for an answer to a question, including one on the session's GET stream.
   */
  deadline: Deadline | undefined = undefined;
  private connection: CallConnection | undefined = undefined;
  private resolve: (outcome: CallOutcome) => void = NOTHING;
  private reject: (error: UpstreamError) => void = NOTHING;
  private isOver = true;
  private exchange: { stop(): void } | undefined = undefined;
  private onAbort = NOTHING;
  private cancelLinger = NOTHING;
  private answering = 0;
  private foreign = 0;
  /** Created on demand: most answers are never resumed. */
  private resumption: ReturnType<typeof createResumption> | undefined = undefined;

  constructor(
    caller: UpstreamCaller,
    request: UpstreamRequest,
    headers: RequestHeaders,
    timeoutMs: number,
  ) {
    this.caller = caller;
    this.request = request;
    this.headers = headers;
    this.timeoutMs = timeoutMs;
  }

  /** Params of the message with the current id. */
  toParams(): JsonObject {
    return this.request.params;
  }

  /** Resolves once the server's request has been answered. Never rejects. */
  protected async onRequest(_message: ServerRequest): Promise<void> {}

  protected onNotification(_message: ServerNotification): void {}

  /** Called when the caller is gone, or the call took too long: the server need not continue. */
  protected onAbandon(_reason: string): void {}

  /** Called after a 401. Replaces the session if the server has lost it; true if so, since the 401 was then not about the token. */
  async replaceSessionIfLost(): Promise<boolean> {
    return false;
  }

  /** Sends the message with the current id. @throws UpstreamError */
  send(
    connection: CallConnection,
    exchange: Exchange,
    headers: readonly RequestHeaders[],
    body: string,
  ): Promise<CallOutcome> {
    return new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
      this.begin(connection, exchange, headers, body);
    });
  }

  /** A separate function, since the closures here outlive the call, and must not retain the sent message. */
  private begin(
    connection: CallConnection,
    exchange: Exchange,
    headers: readonly RequestHeaders[],
    body: string,
  ): void {
    const { timeoutMs } = this;
    const { signal } = this.request;
    if (signal.aborted) {
      this.reject(createAbortedError());
      return;
    }
    this.connection = connection;
    this.isOver = false;
    this.foreign = 0;
    this.resumption = undefined;
    this.deadline = new Deadline(connection.clock, timeoutMs, () =>
      this.abandon(new UpstreamError('timeout', `it did not answer within ${timeoutMs / 1000} s`)),
    );
    if (this.openRequests !== undefined) this.link = this.openRequests.add(this);
    this.exchange = exchange;
    exchange.start('POST', headers, body);
    // A call that could not even be sent has ended by now.
    if (this.isOver) return;
    this.onAbort = () => this.abandon(createAbortedError());
    signal.addEventListener('abort', this.onAbort);
  }

  private end(how: CallOutcome | UpstreamError): void {
    if (this.isOver) return;
    this.isOver = true;
    this.deadline?.clear();
    this.deadline = undefined;
    this.request.signal.removeEventListener('abort', this.onAbort);
    this.openRequests?.remove(this.link);
    if (how instanceof UpstreamError) {
      this.reject(how);
      return;
    }
    // The call will not be sent again. A dead call in the old generation keeps everything that it references alive
    // (docs/decisions/0024).
    if (how.kind !== 'refused') this.request = ENDED;
    this.resolve(how);
  }

  private stop(): void {
    this.exchange?.stop();
    this.exchange = undefined;
  }

  private abandon(error: UpstreamError): void {
    if (this.isOver) return;
    this.stop();
    this.end(error);
    this.onAbandon(error.message);
  }

  // Called by the exchange.

  onMessage(value: unknown, headers: IncomingHttpHeaders): number {
    if (this.isOver) {
      this.connection?.onStray('it went on after its answer');
      return 1;
    }
    const message = readServerMessage(value);
    if (message === undefined) return this.fail(createNoMessageError(value));
    if (message.kind === 'request') void this.answer(message);
    else if (message.kind === 'notification') {
      if (message.method === 'notifications/progress') this.deadline?.renew();
      this.onNotification(message);
    } else return this.takeResponse(message, headers);
    return 1;
  }

  private takeResponse(
    message: Extract<ServerMessage, { kind: 'result' | 'error' }>,
    headers: IncomingHttpHeaders,
  ): number {
    const isOwn = readEchoedNumber(message.id) === this.id;
    // Some servers repeat messages of other calls of the session.
    if (!isOwn && this.resumption?.isReading()) return 1;
    // An error without an id means that the request could not even be parsed.
    if (!isOwn && message.id !== null) {
      // A response to another request does not settle this one: in a stream, the right one may still follow.
      this.foreign += 1;
      if (!isEventStream(headers) || this.foreign > MAX_FOREIGN)
        return this.fail(createInvalidError(FOREIGN));
      this.connection?.onStray(FOREIGN);
      return 1;
    }
    if (isEventStream(headers) && this.connection !== undefined)
      this.cancelLinger = this.connection.clock.after(LINGER_MS, () => this.exchange?.stop());
    this.end(
      message.kind === 'result'
        ? { kind: 'result', result: message.result, headers }
        : { kind: 'error', error: message.error },
    );
    return 0;
  }

  private fail(error: UpstreamError): number {
    this.stop();
    this.end(error);
    return 0;
  }

  private async answer(request: ServerRequest): Promise<void> {
    if (this.answering >= MAX_OPEN_REQUESTS) {
      this.connection?.onStray(`it sends more than ${MAX_OPEN_REQUESTS} requests at once`);
      return;
    }
    this.answering += 1;
    const resume = this.deadline?.pause();
    await this.onRequest(request);
    resume?.();
    this.answering -= 1;
  }

  onEnd(end: ExchangeEnd): void {
    this.cancelLinger();
    this.exchange = undefined;
    // The result has nearly always arrived before. Creating an error that no caller receives is expensive because of its stack.
    if (this.isOver) return;
    if (this.resumption?.goOn(end)) this.exchange = this.resumption;
    else if (end.kind === 'failed') this.end(end.error);
    else
      this.end(
        end.kind === 'refused' ? end : createInvalidError('it ended its answer before the result'),
      );
  }

  openCursor(): EventCursor | undefined {
    const { connection, resumeHeaders } = this;
    if (!this.isOver && connection !== undefined && resumeHeaders !== undefined)
      this.resumption ??= createResumption(connection.clock, this, (lastEventId, listener) =>
        connection.reopen(listener, [...resumeHeaders, 'last-event-id', lastEventId]),
      );
    return this.resumption?.cursor;
  }
}

function NOTHING() {}

/** Replaces the request of a call that has ended. */
const ENDED: UpstreamRequest = { method: '', params: {}, signal: new Cancellation(), trace: {} };

const createAbortedError = () =>
  new UpstreamError('aborted', 'nobody is waiting for its answer any more');

export type CallOutcome =
  | { readonly kind: 'result'; readonly result: JsonObject; readonly headers: IncomingHttpHeaders }
  | { readonly kind: 'error'; readonly error: JsonRpcErrorObject }
  | Extract<ExchangeEnd, { kind: 'refused' }>;

export const isUnauthorized = (outcome: CallOutcome): boolean =>
  outcome.kind === 'refused' && outcome.status === 401;

/** @throws UpstreamError */
export function getResult(outcome: CallOutcome): JsonObject {
  if (outcome.kind === 'result') return outcome.result;
  const error = findError(outcome);
  if (error === undefined && outcome.kind === 'refused') throw toRefusal(outcome);
  throw new UpstreamError('error', 'it answered with an error', {
    ...(error !== undefined && { jsonRpcError: error }),
  });
}

/** Finds the JSON-RPC error, whatever its HTTP status. For 401 and 403, the HTTP error counts instead. */
export function findError(outcome: CallOutcome): JsonRpcErrorObject | undefined {
  if (outcome.kind === 'error') return outcome.error;
  if (outcome.kind === 'result' || outcome.status === 401 || outcome.status === 403)
    return undefined;
  const message = readServerMessage(outcome.body);
  return message?.kind === 'error' ? message.error : undefined;
}

// MCP "Resumability and Redelivery": an answer whose stream broke, or was closed by the server before its end (polling), is
// resumed with GET. The call is never sent again.

/** The number of event ids by which a repeated event is recognized. */
const REMEMBERED_IDS = 32;
/** Consecutive failed attempts: half a minute plus their own duration, in which a server may restart. */
const MAX_FAILURES = 6;

/**
 * `open` opens a stream that begins after this event; it returns undefined once the server may no longer be queried. `reader`
 * receives the messages and the end.
 */
function createResumption(
  clock: Clock,
  reader: Required<Pick<ExchangeListener, 'onMessage' | 'onEnd'>> & ExchangeListener,
  open: (lastEventId: string, listener: ExchangeListener) => Promise<() => void> | undefined,
) {
  const cursor = createEventCursor(REMEMBERED_IDS);
  let isOver = false;
  const attempts = createAttempts(clock, pauseAfter);
  let stopStream = () => {};
  /** The outcome of the call if the server does not resume its stream. */
  let broken: ExchangeEnd | undefined;

  function comeBack() {
    let hasBegun = false;
    const { caller, cookies } = reader;
    const listener: ExchangeListener = {
      caller,
      cookies,
      openCursor: () => cursor,
      onStart(headers) {
        if (!isEventStream(headers)) return giveUp();
        hasBegun = true;
        attempts.noteSuccess();
      },
      onMessage: (value, headers) => reader.onMessage(value, headers),
      onEnd(end) {
        stopStream = () => {};
        if (hasBegun) reader.onEnd(end);
        else if (isRefusal(end) || attempts.countFailures() + 1 >= MAX_FAILURES) giveUp();
        else attempts.again(comeBack, cursor.retryMs());
      },
    };
    const lastId = cursor.lastId();
    const opening = lastId === undefined ? undefined : open(lastId, listener);
    if (opening === undefined) giveUp();
    else
      opening.then((started) => {
        stopStream = started;
        if (isOver) started();
      }, giveUp);
  }

  function giveUp() {
    if (isOver) return;
    stop();
    if (broken !== undefined) reader.onEnd(broken);
  }

  function stop() {
    isOver = true;
    attempts.stop();
    stopStream();
  }

  return {
    cursor,
    /** True if the answer is resumed after this end of its stream. */
    goOn(end: ExchangeEnd) {
      if (isOver || cursor.lastId() === undefined || !isBroken(end)) return false;
      broken = end;
      attempts.after(cursor.retryMs() ?? BACK_OFF.firstMs, comeBack);
      return true;
    },
    /** True while messages are read from a reopened stream. */
    isReading: () => broken !== undefined,
    stop,
  };
}

/** The stream ended without the answer, or was cut off in the middle: the data received so far is valid. */
const isBroken = (end: ExchangeEnd) =>
  end.kind === 'complete' || (end.kind === 'failed' && end.isCut === true);

/** A 409 is no refusal, since the server has not noticed yet that the connection broke; nor are 429 and 5xx, which pass. */
const isRefusal = (end: ExchangeEnd) =>
  end.kind === 'refused' && end.status < 500 && end.status !== 409 && end.status !== 429;
