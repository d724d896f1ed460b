// One message of a call as the server answers it: its answer, and what the server says before.

import type { IncomingHttpHeaders } from 'node:http';
import { UpstreamError } from '../../mcp/upstream/upstream.ts';
import { createAttempts, Deadline } from '../../platform/clock.ts';
import {
  readEchoedNumber,
  readServerMessage,
  type ServerMessage,
  type ServerRequest,
} from '../messages/server-message.ts';
import { BACK_OFF, pauseAfter } from '../transport/process-share.ts';
import { createEventCursor, type EventCursor } from './answer-body.ts';
import {
  type Attempt,
  type CallOutcome,
  type CallSender,
  concludeCall,
  concludeFailure,
  type Sending,
} from './attempt.ts';
import {
  type ExchangeEnd,
  type ExchangeListener,
  isEventStream,
  startExchange,
} from './exchange.ts';
import { createInvalidError, createNoMessageError } from './failures.ts';

/** Requests of the server that wait for their answers: each answer is a connection of its own. */
export const MAX_OPEN_REQUESTS = 32;

/** Answers to other requests in the stream of one. */
const MAX_FOREIGN = 100;
const FOREIGN = 'it answered another request than the one that was sent';

/** A stream that goes on after its answer ends its connection. */
const LINGER_MS = 1000;

/** Resolves to what the call comes to. @throws UpstreamError */
export const runCall = <Result>(sender: CallSender, attempt: Attempt<Result>): Promise<Result> =>
  new Promise((resolve, reject) => new ServerCall(sender, resolve, reject).start(attempt));

const NOTHING = () => {};

/**
 * A class, since every call has one: closures took more of it than all else.
 *
 * Once the call has ended, nothing of it is kept, nor of its exchange. Where the collector found one of them in the old
 * generation, it took all that came after it there, too: each collection moved the calls of a second, and took 18 ms in place
 * of 4.
 */
class ServerCall<Result> implements ExchangeListener {
  private readonly sender: CallSender;
  private readonly resolve: (result: Result | Promise<Result>) => void;
  private readonly reject: (thrown: unknown) => void;
  /** Undefined once it has ended. */
  private attempt: Attempt<Result> | undefined;
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
    sender: CallSender,
    resolve: (result: Result | Promise<Result>) => void,
    reject: (thrown: unknown) => void,
  ) {
    this.sender = sender;
    this.resolve = resolve;
    this.reject = reject;
  }

  start(attempt: Attempt<Result>): void {
    const { sender } = this;
    const { signal, timeoutMs } = attempt.sending;
    this.attempt = attempt;
    if (signal?.aborted) {
      this.end(createAbortedError());
      return;
    }
    this.deadline = new Deadline(sender.clock, timeoutMs, () =>
      this.abandon(new UpstreamError('timeout', `it did not answer within ${timeoutMs / 1000} s`)),
    );
    attempt.sending.onStart?.(this.deadline);
    const exchange = startExchange(attempt.exchange, this);
    // A call that could not even be sent has ended by now.
    if (this.attempt === undefined) return;
    this.exchange = exchange;
    if (signal === undefined) return;
    this.onAbort = () => this.abandon(createAbortedError());
    signal.addEventListener('abort', this.onAbort);
  }

  /** Does nothing where it has ended before. */
  private end(how: CallOutcome | UpstreamError): void {
    const { sender, attempt } = this;
    if (attempt === undefined) return;
    this.attempt = undefined;
    this.deadline?.clear();
    const { sending } = attempt;
    sending.signal?.removeEventListener('abort', this.onAbort);
    sending.onSettled?.();
    try {
      this.resolve(
        how instanceof UpstreamError
          ? concludeFailure(sender, attempt, how)
          : concludeCall(sender, attempt, how),
      );
    } catch (thrown) {
      this.reject(thrown);
    }
  }

  private stop(): void {
    this.exchange?.stop();
    this.exchange = undefined;
  }

  private abandon(error: UpstreamError): void {
    const { attempt } = this;
    if (attempt === undefined) return;
    this.stop();
    this.end(error);
    attempt.sending.onAbandon?.(attempt.id, error.message);
  }

  private async answer(sending: Sending<Result>, request: ServerRequest): Promise<void> {
    if (this.openRequests >= MAX_OPEN_REQUESTS) {
      this.sender.onStray(`it asks more than ${MAX_OPEN_REQUESTS} things at once`);
      return;
    }
    this.openRequests += 1;
    const resume = this.deadline?.pause();
    await sending.onRequest?.(request);
    resume?.();
    this.openRequests -= 1;
  }

  onMessage(value: unknown, headers: IncomingHttpHeaders): number {
    const { attempt } = this;
    if (attempt === undefined) {
      this.sender.onStray('it went on after its answer');
      return 1;
    }
    const message = readServerMessage(value);
    if (message?.kind === 'request') {
      void this.answer(attempt.sending, message);
      return 1;
    }
    const how =
      message === undefined
        ? createNoMessageError(value)
        : this.takeMessage(attempt, message, headers);
    if (how === undefined) return 1;
    if (how instanceof UpstreamError) this.stop();
    else if (isEventStream(headers)) this.linger();
    this.end(how);
    return 0;
  }

  private linger(): void {
    this.cancelLinger = this.sender.clock.after(LINGER_MS, () => this.exchange?.stop());
  }

  /** The end of the call by this message: undefined where it goes on. */
  private takeMessage(
    { sending, id }: Attempt<Result>,
    message: Exclude<ServerMessage, ServerRequest>,
    headers: IncomingHttpHeaders,
  ): CallOutcome | UpstreamError | undefined {
    if (message.kind === 'notification') {
      if (message.method === 'notifications/progress') this.deadline?.renew();
      sending.onNotification?.(message, id);
      return undefined;
    }
    const isOwn = readEchoedNumber(message.id) === id;
    // Some servers repeat what belongs to other calls of the session.
    if (!isOwn && this.resumption?.isReading()) return undefined;
    // Without an id an error says that the request could not even be read.
    if (!isOwn && message.id !== null) {
      // The answer to another request settles none: its own may still come, if this is a stream.
      this.foreign += 1;
      if (!isEventStream(headers) || this.foreign > MAX_FOREIGN) return createInvalidError(FOREIGN);
      this.sender.onStray(FOREIGN);
      return undefined;
    }
    return message.kind === 'result'
      ? { kind: 'result', result: message.result, headers }
      : { kind: 'error', error: message.error };
  }

  onEnd(end: ExchangeEnd): void {
    this.cancelLinger();
    this.exchange = undefined;
    // Nearly always the result has come before: an error is not made for nobody, since its stack is dear.
    if (this.attempt === undefined) return;
    if (this.resumption?.goOn(end)) this.exchange = this.resumption;
    else if (end.kind === 'failed') this.end(end.error);
    else
      this.end(
        end.kind === 'refused' ? end : createInvalidError('it ended its answer before the result'),
      );
  }

  openCursor(): EventCursor | undefined {
    if (this.attempt?.sending.resumeHeaders !== undefined)
      this.resumption ??= createResumption(this.sender, this.attempt.sending, this);
    return this.resumption?.cursor;
  }
}

const createAbortedError = () =>
  new UpstreamError('aborted', 'nobody waits for its answer any more');

// MCP "Resumability and Redelivery": an answer whose stream broke, or that the server closed before its end (polling), is
// read on by GET. The call itself is never sent again.

type Resumption = ReturnType<typeof createResumption>;

/** An event that comes again is known by these. */
const REMEMBERED_IDS = 32;
/** In a row: about a minute, in which a server may be started anew. */
const MAX_FAILURES = 6;

function createResumption(
  sender: CallSender,
  sending: Sending<unknown>,
  listener: Pick<ExchangeListener, 'onMessage' | 'onEnd'>,
) {
  const cursor = createEventCursor(REMEMBERED_IDS);
  let isOver = false;
  const attempts = createAttempts(sender.clock, pauseAfter);
  let stopStream = () => {};
  /** The end of the call if the server does not let it go on. */
  let broken: ExchangeEnd | undefined;

  function comeBack() {
    let hasBegun = false;
    const streamListener: ExchangeListener = {
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
        else if (isRefusal(end) || attempts.countFailures() + 1 >= MAX_FAILURES) giveUp();
        else attempts.again(comeBack, cursor.retryMs());
      },
    };
    const lastId = cursor.lastId();
    const opening =
      lastId === undefined ? undefined : sender.reopen(sending, lastId, streamListener);
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
    if (broken !== undefined) listener.onEnd(broken);
  }

  function stop() {
    isOver = true;
    attempts.stop();
    stopStream();
  }

  return {
    cursor,
    /** True if the stream that has ended like this is read on; what comes of it is told to `onMessage` and `onEnd`. */
    goOn(end: ExchangeEnd) {
      if (isOver || cursor.lastId() === undefined || !isBroken(end)) return false;
      broken = end;
      attempts.after(cursor.retryMs() ?? BACK_OFF.firstMs, comeBack);
      return true;
    },
    /** True if what comes now comes on a stream that was opened again. */
    isReading: () => broken !== undefined,
    stop,
  };
}

/** Read to its end without the answer, or cut off in the middle: nothing is wrong with what has come. */
const isBroken = (end: ExchangeEnd) =>
  end.kind === 'complete' || (end.kind === 'failed' && end.isCut === true);

/** 409: the server has not noticed yet that the connection broke. 429 and 5xx pass. */
const isRefusal = (end: ExchangeEnd) =>
  end.kind === 'refused' && end.status < 500 && end.status !== 409 && end.status !== 429;
