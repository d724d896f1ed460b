// One request of JSON-RPC to a server and what belongs to it: its answer, and what the server says before.

import type { IncomingHttpHeaders } from 'node:http';
import type { JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import { UpstreamError } from '../../mcp/upstream/upstream.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
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
import { createEventCursor, type EventCursor } from './answer-body.ts';
import {
  type ExchangeEnd,
  type ExchangeListener,
  type ExchangeRequest,
  isEventStream,
  type Route,
  startExchange,
} from './exchange.ts';
import { createInvalidError, createNoMessageError, toRefusal } from './failures.ts';

export interface ServerCall<Result> {
  readonly exchange: ExchangeRequest;
  readonly id: number;
  /** Milliseconds without progress; they stand still while the server waits for an answer of ours. */
  readonly timeoutMs: number;
  readonly signal: CancelSignal | undefined;
  /** It is about to be sent. */
  onStart(deadline: Deadline): void;
  /** Resolves once the server has its answer. Never rejects. */
  onRequest(message: ServerRequest): Promise<void>;
  onNotification(message: ServerNotification): void;
  /** Nobody waits any more, or it took too long. */
  onAbandon(reason: string): void;
  /** Something came that nobody waits for. Of the server, not of the call. */
  readonly onStray: (words: string) => void;
  /** False in an era whose streams end with their connection. */
  readonly canReopen: boolean;
  readonly reopen: Reopen;
  /** Makes the result of the call by how it ended. May throw, as what follows may. */
  conclude(outcome: CallOutcome): Result | Promise<Result>;
  concludeFailure(error: UpstreamError): Result | Promise<Result>;
}

export type CallOutcome =
  | {
      readonly kind: 'result';
      readonly result: JsonObject;
      readonly headers: IncomingHttpHeaders;
    }
  | { readonly kind: 'error'; readonly error: JsonRpcErrorObject }
  | Refusal;

export type Refusal = Extract<ExchangeEnd, { kind: 'refused' }>;

export const isUnauthorized = (outcome: CallOutcome): boolean =>
  outcome.kind === 'refused' && outcome.status === 401;

/** Requests of the server that wait for their answers: each answer is a connection of its own. */
export const MAX_OPEN_REQUESTS = 32;

/** Answers to other requests in the stream of one. */
const MAX_FOREIGN = 100;
const FOREIGN = 'it answered another request than the one that was sent';

/** A stream that goes on after its answer ends its connection. */
const LINGER_MS = 1000;

/** Resolves to what the call comes to. @throws UpstreamError */
export const runCall = <Result>(
  route: Route,
  clock: Clock,
  call: ServerCall<Result>,
): Promise<Result> =>
  new Promise((resolve, reject) => new OpenCall(clock, call, resolve, reject).start(route));

const NOTHING = () => {};

/**
 * A class, since every call has one: closures took more of it than all else.
 *
 * Once the call has ended, nothing of it is kept, nor of its exchange. Where the collector found one of them in the old
 * generation, it took all that came after it there, too: each collection moved the calls of a second, and took 18 ms in place
 * of 4.
 */
class OpenCall<Result> implements ExchangeListener {
  private readonly clock: Clock;
  private readonly onStray: ServerCall<Result>['onStray'];
  /** Undefined once it has ended. */
  private call: ServerCall<Result> | undefined;
  private readonly resolve: (result: Result | Promise<Result>) => void;
  private readonly reject: (thrown: unknown) => void;
  private deadline: Deadline | undefined;
  private exchange: Pick<Resumption, 'stop'> | undefined;
  private onAbort = NOTHING;
  private cancelLinger = NOTHING;
  private openRequests = 0;
  /** Answers to other requests that came in its stream. */
  private foreign = 0;
  /** Most answers are never read on. */
  private resumption: Resumption | undefined;

  constructor(
    clock: Clock,
    call: ServerCall<Result>,
    resolve: (result: Result | Promise<Result>) => void,
    reject: (thrown: unknown) => void,
  ) {
    this.clock = clock;
    this.onStray = call.onStray;
    this.call = call;
    this.resolve = resolve;
    this.reject = reject;
  }

  start(route: Route): void {
    const { call, clock } = this;
    if (call === undefined) return;
    const { signal, timeoutMs } = call;
    if (signal?.aborted) {
      this.fail(createAbortedError());
      return;
    }
    this.deadline = new Deadline(clock, timeoutMs, () =>
      this.abandon(new UpstreamError('timeout', `it did not answer within ${timeoutMs / 1000} s`)),
    );
    call.onStart(this.deadline);
    const exchange = startExchange(route, call.exchange, this);
    // A call that could not even be sent has ended by now.
    if (this.call === undefined) return;
    this.exchange = exchange;
    if (signal === undefined) return;
    this.onAbort = () => this.abandon(createAbortedError());
    signal.addEventListener('abort', this.onAbort);
  }

  /** The call, which ends by this; undefined where it has ended before. */
  private settle(): ServerCall<Result> | undefined {
    const { call } = this;
    this.call = undefined;
    this.deadline?.clear();
    call?.signal?.removeEventListener('abort', this.onAbort);
    return call;
  }

  private succeed(call: ServerCall<Result>, outcome: CallOutcome): void {
    try {
      this.resolve(call.conclude(outcome));
    } catch (thrown) {
      this.reject(thrown);
    }
  }

  private fail(error: UpstreamError): void {
    const call = this.settle();
    if (call === undefined) return;
    try {
      this.resolve(call.concludeFailure(error));
    } catch (thrown) {
      this.reject(thrown);
    }
  }

  private abandon(error: UpstreamError): void {
    const { call } = this;
    if (call === undefined) return;
    this.exchange?.stop();
    this.exchange = undefined;
    this.fail(error);
    call.onAbandon(error.message);
  }

  private async answer(call: ServerCall<Result>, request: ServerRequest): Promise<void> {
    if (this.openRequests >= MAX_OPEN_REQUESTS) {
      call.onStray(`it asks more than ${MAX_OPEN_REQUESTS} things at once`);
      return;
    }
    this.openRequests += 1;
    const resume = this.deadline?.pause();
    await call.onRequest(request);
    resume?.();
    this.openRequests -= 1;
  }

  onMessage(value: unknown, headers: IncomingHttpHeaders): number {
    const { call } = this;
    if (call === undefined) {
      this.onStray('it went on after its answer');
      return 1;
    }
    const message = readServerMessage(value);
    if (message?.kind === 'request') {
      void this.answer(call, message);
      return 1;
    }
    const taken =
      message === undefined
        ? createNoMessageError(value)
        : this.takeMessage(call, message, headers);
    if (taken === undefined) return 1;
    if (taken instanceof UpstreamError) {
      this.exchange?.stop();
      this.exchange = undefined;
      this.fail(taken);
      return 0;
    }
    this.settle();
    if (isEventStream(headers)) this.linger();
    this.succeed(call, taken);
    return 0;
  }

  private linger(): void {
    this.cancelLinger = this.clock.after(LINGER_MS, () => this.exchange?.stop());
  }

  /** The end of the call by this message: undefined where it goes on. */
  private takeMessage(
    call: ServerCall<Result>,
    message: Exclude<ServerMessage, ServerRequest>,
    headers: IncomingHttpHeaders,
  ): CallOutcome | UpstreamError | undefined {
    const { resumption } = this;
    if (message.kind === 'notification') {
      if (message.method === 'notifications/progress') this.deadline?.renew();
      call.onNotification(message);
      return undefined;
    }
    const isOwn = readEchoedNumber(message.id) === call.id;
    // Some servers repeat what belongs to other calls of the session.
    if (resumption?.isReading() === true && !isOwn) return undefined;
    // Without an id an error says that the request could not even be read.
    if (!isOwn && message.id !== null) return this.skipForeign(call, headers);
    return message.kind === 'result'
      ? { kind: 'result', result: message.result, headers }
      : { kind: 'error', error: message.error };
  }

  /** The answer to another request settles none: its own may still come, if this is a stream. */
  private skipForeign(
    call: ServerCall<Result>,
    headers: IncomingHttpHeaders,
  ): UpstreamError | undefined {
    this.foreign += 1;
    if (!isEventStream(headers) || this.foreign > MAX_FOREIGN) return createInvalidError(FOREIGN);
    call.onStray(FOREIGN);
    return undefined;
  }

  onEnd(end: ExchangeEnd): void {
    this.cancelLinger();
    this.exchange = undefined;
    const { call } = this;
    // Nearly always the result has come before: an error is not made for nobody, since its stack is dear.
    if (call === undefined) return;
    if (this.resumption?.goOn(end)) {
      this.exchange = this.resumption;
      return;
    }
    if (end.kind === 'failed') this.fail(end.error);
    else if (end.kind !== 'refused')
      this.fail(createInvalidError('it ended its answer before the result'));
    else {
      this.settle();
      this.succeed(call, end);
    }
  }

  openCursor(): EventCursor | undefined {
    const { clock, call } = this;
    if (call === undefined || !call.canReopen) return this.resumption?.cursor;
    this.resumption ??= createResumption(
      clock,
      (lastEventId, listener) => call.reopen(lastEventId, listener),
      this,
    );
    return this.resumption.cursor;
  }
}

const createAbortedError = () =>
  new UpstreamError('aborted', 'nobody waits for its answer any more');

// The meaning of a call's outcome to its caller.

/** @throws UpstreamError */
export function getResult(outcome: CallOutcome): JsonObject {
  if (outcome.kind === 'result') return outcome.result;
  const error = findError(outcome);
  if (error === undefined && outcome.kind === 'refused') {
    throw toRefusal(outcome);
  }
  throw new UpstreamError('error', 'it answered with an error', {
    ...(error !== undefined && { jsonRpcError: error }),
  });
}

/** The error of JSON-RPC, whatever the status it came with; that of 401 and 403 is HTTP's. */
export function findError(outcome: CallOutcome): JsonRpcErrorObject | undefined {
  if (outcome.kind === 'error') return outcome.error;
  return outcome.kind === 'refused' ? findErrorInBody(outcome) : undefined;
}

function findErrorInBody({ status, body }: Refusal): JsonRpcErrorObject | undefined {
  if (status === 401 || status === 403 || body === undefined) return undefined;
  const message = readServerMessage(body);
  return message?.kind === 'error' ? message.error : undefined;
}

// MCP "Resumability and Redelivery": an answer whose stream broke, or that the server closed before its end (polling), is
// read on by GET. The call itself is never sent again.

/** Opens a stream that begins after this event; undefined where the server may no longer be asked. */
type Reopen = (lastEventId: string, listener: ExchangeListener) => Promise<() => void> | undefined;

type Resumption = ReturnType<typeof createResumption>;

/** An event that comes again is known by these. */
const REMEMBERED_IDS = 32;
/** In a row: about a minute, in which a server may be started anew. */
const MAX_FAILURES = 6;

function createResumption(
  clock: Clock,
  reopen: Reopen,
  listener: Pick<ExchangeListener, 'onMessage' | 'onEnd'>,
) {
  const cursor = createEventCursor(REMEMBERED_IDS);
  let isOver = false;
  const attempts = createAttempts(clock, pauseAfter);
  let stopStream = () => {};
  /** The end of the call if the server does not let it go on. */
  let broken: ExchangeEnd | undefined;

  function goOn(end: ExchangeEnd): boolean {
    if (isOver || cursor.lastId() === undefined || !isBroken(end)) return false;
    broken = end;
    attempts.after(cursor.retryMs() ?? BACK_OFF.firstMs, comeBack);
    return true;
  }

  function comeBack(): void {
    const lastId = cursor.lastId();
    const opening = lastId === undefined ? undefined : reopen(lastId, createListener());
    if (opening === undefined) giveUp();
    else {
      opening.then((started) => {
        stopStream = started;
        if (isOver) started();
      }, giveUp);
    }
  }

  function createListener(): ExchangeListener {
    let hasBegun = false;
    return {
      openCursor: () => cursor,
      onStart(headers) {
        if (!isEventStream(headers)) return giveUp();
        hasBegun = true;
        attempts.noteSuccess();
      },
      onMessage: (value, headers) => listener.onMessage(value, headers),
      onEnd(end) {
        stopStream = () => {};
        if (hasBegun) listener.onEnd(end);
        else if (isRefusal(end)) giveUp();
        else if (attempts.countFailures() + 1 >= MAX_FAILURES) giveUp();
        else attempts.again(comeBack, cursor.retryMs());
      },
    };
  }

  function giveUp(): void {
    if (isOver) return;
    stop();
    if (broken !== undefined) listener.onEnd(broken);
  }

  function stop(): void {
    isOver = true;
    attempts.stop();
    stopStream();
  }

  return {
    cursor,
    /** True if the stream that has ended like this is read on; what comes of it is told to `onMessage` and `onEnd`. */
    goOn,
    /** True if what comes now comes on a stream that was opened again. */
    isReading: () => broken !== undefined,
    stop,
  };
}

/** Read to its end without the answer, or cut off in the middle: nothing is wrong with what has come. */
const isBroken = (end: ExchangeEnd): boolean =>
  end.kind === 'complete' || (end.kind === 'failed' && end.isCut === true);

/** 409: the server has not noticed yet that the connection broke. 429 and 5xx pass. */
const isRefusal = (end: ExchangeEnd): boolean =>
  end.kind === 'refused' && end.status < 500 && end.status !== 409 && end.status !== 429;
