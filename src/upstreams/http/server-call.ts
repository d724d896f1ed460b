// One request of JSON-RPC to a server and what belongs to it: its answer, and what the server says before.
import type { IncomingHttpHeaders } from 'node:http';
import type { JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { type Clock, Deadline } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import {
  readServerMessage,
  type ServerMessage,
  type ServerNotification,
  type ServerRequest,
} from '../messages/server-message.ts';
import { UpstreamError } from '../upstream.ts';
import type { EventCursor } from './event-cursor.ts';
import {
  type ExchangeEnd,
  type ExchangeListener,
  type ExchangeRequest,
  isEventStream,
  type Route,
  startExchange,
} from './exchange.ts';
import { createInvalidError, createNoMessageError, toRefusal } from './failures.ts';
import { createResumption, type Reopen, type Resumption } from './resumption.ts';

export interface ServerCall<Result> {
  readonly exchange: ExchangeRequest;
  readonly id: number;
  /** Milliseconds without progress; they stand still while the server waits for an answer of ours. */
  readonly timeoutMs: number;
  readonly signal: CancelSignal | undefined;
  /** Resolves once the server has its answer. Never rejects. */
  onRequest(message: ServerRequest): Promise<void>;
  onNotification(message: ServerNotification): void;
  /** Nobody waits any more, or it took too long. */
  onAbandon(reason: string): void;
  /** Something came that nobody waits for. */
  onStray(words: string): void;
  /** Undefined in an era whose streams end with their connection. */
  readonly reopen: Reopen | undefined;
  /** What the call comes to by how it ended. May throw, as what follows may. */
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

/** Requests of the server that wait for their answers: each answer is a connection of its own. */
export const MAX_OPEN_REQUESTS = 32;

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

/** A class, since every call has one: closures took more of it than all else. */
class OpenCall<Result> implements ExchangeListener {
  private readonly clock: Clock;
  private readonly call: ServerCall<Result>;
  private readonly resolve: (result: Result | Promise<Result>) => void;
  private readonly reject: (thrown: unknown) => void;
  private deadline: Deadline | undefined;
  private exchange: Pick<Resumption, 'stop'> | undefined;
  private onAbort = NOTHING;
  private cancelLinger = NOTHING;
  private isSettled = false;
  private openRequests = 0;
  /** Most answers are never read on. */
  private resumption: Resumption | undefined;

  constructor(
    clock: Clock,
    call: ServerCall<Result>,
    resolve: (result: Result | Promise<Result>) => void,
    reject: (thrown: unknown) => void,
  ) {
    this.clock = clock;
    this.call = call;
    this.resolve = resolve;
    this.reject = reject;
  }

  start(route: Route): void {
    const { call, clock } = this;
    const { signal, timeoutMs } = call;
    if (signal?.aborted) {
      this.fail(createAbortedError());
      return;
    }
    this.deadline = new Deadline(clock, timeoutMs, () =>
      this.abandon(new UpstreamError('timeout', `it did not answer within ${timeoutMs / 1000} s`)),
    );
    this.exchange = startExchange(route, call.exchange, this);
    if (signal === undefined || this.isSettled) return;
    this.onAbort = () => this.abandon(createAbortedError());
    signal.addEventListener('abort', this.onAbort);
  }

  /** False where the call has ended before. */
  private settle(): boolean {
    if (this.isSettled) return false;
    this.isSettled = true;
    this.deadline?.clear();
    this.call.signal?.removeEventListener('abort', this.onAbort);
    return true;
  }

  private succeed(outcome: CallOutcome): void {
    try {
      this.resolve(this.call.conclude(outcome));
    } catch (thrown) {
      this.reject(thrown);
    }
  }

  private fail(error: UpstreamError): void {
    if (!this.settle()) return;
    try {
      this.resolve(this.call.concludeFailure(error));
    } catch (thrown) {
      this.reject(thrown);
    }
  }

  private abandon(error: UpstreamError): void {
    if (this.isSettled) return;
    this.exchange?.stop();
    this.fail(error);
    this.call.onAbandon(error.message);
  }

  private async answer(request: ServerRequest): Promise<void> {
    if (this.openRequests >= MAX_OPEN_REQUESTS) {
      this.call.onStray(`it asks more than ${MAX_OPEN_REQUESTS} things at once`);
      return;
    }
    this.openRequests += 1;
    const resume = this.deadline?.pause();
    await this.call.onRequest(request);
    resume?.();
    this.openRequests -= 1;
  }

  onMessage(value: unknown, headers: IncomingHttpHeaders): number {
    if (this.isSettled) {
      this.call.onStray('it went on after its answer');
      return 1;
    }
    const message = readServerMessage(value);
    if (message?.kind === 'request') {
      void this.answer(message);
      return 1;
    }
    const taken =
      message === undefined ? createNoMessageError(value) : this.takeMessage(message, headers);
    if (taken === undefined) return 1;
    if (taken instanceof UpstreamError) {
      this.exchange?.stop();
      this.fail(taken);
    } else if (this.settle()) {
      if (isEventStream(headers)) this.linger();
      this.succeed(taken);
    }
    return 0;
  }

  private linger(): void {
    this.cancelLinger = this.clock.after(LINGER_MS, () => this.exchange?.stop());
  }

  /** How the call ends by this message: undefined where it goes on. */
  private takeMessage(
    message: Exclude<ServerMessage, ServerRequest>,
    headers: IncomingHttpHeaders,
  ): CallOutcome | UpstreamError | undefined {
    const { call, resumption } = this;
    if (message.kind === 'notification') {
      if (message.method === 'notifications/progress') this.deadline?.renew();
      call.onNotification(message);
      return undefined;
    }
    // Some servers repeat what belongs to other calls of the session.
    if (resumption?.isReading() === true && message.id !== call.id) return undefined;
    // Without an id an error says that the request could not even be read.
    if (message.id !== call.id && message.id !== null) {
      return createInvalidError('it answered another request than the one that was sent');
    }
    return message.kind === 'result'
      ? { kind: 'result', result: message.result, headers }
      : { kind: 'error', error: message.error };
  }

  onEnd(end: ExchangeEnd): void {
    this.cancelLinger();
    // Nearly always the result has come before: an error is not made for nobody, since its stack is dear.
    if (this.isSettled) return;
    if (this.resumption?.goOn(end)) {
      this.exchange = this.resumption;
      return;
    }
    if (end.kind === 'failed') this.fail(end.error);
    else if (end.kind !== 'refused')
      this.fail(createInvalidError('it ended its answer before the result'));
    else if (this.settle()) this.succeed(end);
  }

  openCursor(): EventCursor | undefined {
    const { clock, call } = this;
    const { reopen } = call;
    if (reopen === undefined) return undefined;
    this.resumption ??= createResumption({
      clock,
      reopen,
      onMessage: (value, headers) => this.onMessage(value, headers),
      onEnd: (end) => this.onEnd(end),
    });
    return this.resumption.cursor;
  }
}

const createAbortedError = () =>
  new UpstreamError('aborted', 'nobody waits for its answer any more');

// What the outcome of a call means to whoever asked.

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
