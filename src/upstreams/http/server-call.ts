// One request of JSON-RPC to a server and what belongs to it: its answer, and what the server says before.
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { type Clock, Deadline } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { HeaderList } from '../messages/envelope.ts';
import {
  readServerMessage,
  type ServerMessage,
  type ServerNotification,
  type ServerRequest,
} from '../messages/server-message.ts';
import { UpstreamError } from '../upstream.ts';
import {
  Exchange,
  type ExchangeDeps,
  type ExchangeEnd,
  type ExchangeListener,
  type ExchangeRequest,
  isEventStream,
} from './exchange.ts';
import { createInvalidError, createNoMessageError, toRefusal } from './failures.ts';

/** What is sent, and whoever hears what the server says before it answers. */
export interface Sending {
  readonly method: string;
  toParams(id: number): JsonObject;
  readonly headers: HeaderList;
  /** Milliseconds without progress; they stand still while the server waits for an answer of ours. */
  readonly timeoutMs: number;
  readonly signal?: CancelSignal | undefined;
  /** Its answer alone does not show that the server can be used. */
  readonly isHandshake?: true;
  /** Resolves once the server has its answer. Never rejects. */
  onRequest?(message: ServerRequest): Promise<void>;
  onNotification?(message: ServerNotification, id: number): void;
  /** Nobody waits any more, or it took too long. */
  onAbandon?(id: number, reason: string): void;
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

export interface CallDeps extends ExchangeDeps {
  readonly clock: Clock;
  /** Something came that nobody waits for. */
  onStray(words: string): void;
}

/** Requests of the server that wait for their answers: each answer is a connection of its own. */
export const MAX_OPEN_REQUESTS = 32;

/** A stream that goes on after its answer ends its connection. */
const LINGER_MS = 1000;

/**
 * Sends the request, which has this id.
 *
 * @throws UpstreamError
 */
export const runCall = (
  dispatcher: Dispatcher,
  request: ExchangeRequest,
  id: number,
  sending: Sending,
  deps: CallDeps,
): Promise<CallOutcome> =>
  sending.signal?.aborted
    ? Promise.reject(createAbortedError())
    : new Promise((resolve, reject) => {
        new ServerCall(id, sending, deps, resolve, reject).start(dispatcher, request);
      });

class ServerCall implements ExchangeListener {
  private readonly id: number;
  private readonly sending: Sending;
  private readonly deps: CallDeps;
  private readonly resolve: (outcome: CallOutcome) => void;
  private readonly reject: (error: UpstreamError) => void;
  private readonly deadline: Deadline;
  private exchange: Exchange | undefined;
  private abandonOnAbort: (() => void) | undefined;
  private cancelLinger: (() => void) | undefined;
  private isSettled = false;
  private openRequests = 0;

  constructor(
    id: number,
    sending: Sending,
    deps: CallDeps,
    resolve: (outcome: CallOutcome) => void,
    reject: (error: UpstreamError) => void,
  ) {
    this.id = id;
    this.sending = sending;
    this.deps = deps;
    this.resolve = resolve;
    this.reject = reject;
    this.deadline = new Deadline(deps.clock, sending.timeoutMs, () =>
      this.abandon(
        new UpstreamError('timeout', `it did not answer within ${sending.timeoutMs / 1000} s`),
      ),
    );
  }

  start(dispatcher: Dispatcher, request: ExchangeRequest): void {
    this.exchange = new Exchange(dispatcher, request, this, this.deps);
    const { signal } = this.sending;
    if (signal === undefined || this.isSettled) return;
    this.abandonOnAbort = () => this.abandon(createAbortedError());
    signal.addEventListener('abort', this.abandonOnAbort);
  }

  onMessage(value: unknown, headers: IncomingHttpHeaders): number {
    if (this.isSettled) {
      this.deps.onStray('it went on after its answer');
      return 1;
    }
    const message = readServerMessage(value);
    if (message?.kind === 'request') {
      void this.answer(message);
      return 1;
    }
    const taken =
      message === undefined ? createNoMessageError(value) : this.takeMessage(message, headers);
    if (taken instanceof UpstreamError) {
      this.exchange?.stop();
      this.fail(taken);
    } else if (taken !== undefined && this.settle()) {
      if (isEventStream(headers)) {
        this.cancelLinger = this.deps.clock.after(LINGER_MS, () => this.exchange?.stop());
      }
      this.resolve(taken);
    }
    return taken === undefined ? 1 : 0;
  }

  onEnd(end: ExchangeEnd): void {
    this.cancelLinger?.();
    // Nearly always the result has come before: an error is not made for nobody, since its stack is dear.
    if (!this.settle()) return;
    if (end.kind === 'refused') this.resolve(end);
    else if (end.kind === 'failed') this.reject(end.error);
    else this.reject(createInvalidError('it ended its answer before the result'));
  }

  /** How the call ends by this message: undefined where it goes on. */
  private takeMessage(
    message: Exclude<ServerMessage, ServerRequest>,
    headers: IncomingHttpHeaders,
  ): CallOutcome | UpstreamError | undefined {
    if (message.kind === 'notification') {
      if (message.method === 'notifications/progress') this.deadline.renew();
      this.sending.onNotification?.(message, this.id);
      return undefined;
    }
    // Without an id an error says that the request could not even be read.
    if (message.id !== this.id && message.id !== null) {
      return createInvalidError('it answered another request than the one that was sent');
    }
    return message.kind === 'result'
      ? { kind: 'result', result: message.result, headers }
      : { kind: 'error', error: message.error };
  }

  private async answer(request: ServerRequest): Promise<void> {
    if (this.openRequests >= MAX_OPEN_REQUESTS) {
      this.deps.onStray(`it asks more than ${MAX_OPEN_REQUESTS} things at once`);
      return;
    }
    this.openRequests += 1;
    const resume = this.deadline.pause();
    await this.sending.onRequest?.(request);
    resume();
    this.openRequests -= 1;
  }

  /** False where the call has ended before. */
  private settle(): boolean {
    if (this.isSettled) return false;
    this.isSettled = true;
    this.deadline.clear();
    if (this.abandonOnAbort !== undefined) {
      this.sending.signal?.removeEventListener('abort', this.abandonOnAbort);
    }
    return true;
  }

  private fail(error: UpstreamError): void {
    if (this.settle()) this.reject(error);
  }

  private abandon(error: UpstreamError): void {
    if (this.isSettled) return;
    this.exchange?.stop();
    this.fail(error);
    this.sending.onAbandon?.(this.id, error.message);
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
