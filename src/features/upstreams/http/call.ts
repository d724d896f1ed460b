// One request of JSON-RPC to a server and what belongs to it: its answer, and what the server says before.
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { CancelSignal } from '../../../core/cancellation.ts';
import type { Clock } from '../../../core/clock.ts';
import type { JsonRpcErrorObject } from '../../../core/errors/gateway-error.ts';
import type { JsonObject } from '../../../core/json.ts';
import {
  readServerMessage,
  type ServerMessage,
  type ServerNotification,
  type ServerRequest,
} from '../messages/server-message.ts';
import { UpstreamError } from '../upstream.ts';
import {
  type ExchangeEnd,
  type ExchangeRequest,
  isEventStream,
  startExchange,
} from './exchange.ts';
import { createInvalidError } from './failures.ts';

export interface Call {
  readonly exchange: ExchangeRequest;
  readonly id: number;
  /** Milliseconds without progress; they stand still while the server waits for an answer of ours. */
  readonly timeoutMs: number;
  readonly signal: CancelSignal | undefined;
  /** Resolves once the server has its answer. */
  onRequest(message: ServerRequest): Promise<void>;
  onNotification(message: ServerNotification): void;
  /** Nobody waits any more, or it took too long. */
  onAbandon(reason: string): void;
  /** Something came that nobody waits for. */
  onStray(words: string): void;
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

export interface CallDeps {
  readonly dispatcher: Dispatcher;
  readonly clock: Clock;
}

/** A stream that goes on after its answer ends its connection. */
const LINGER_MS = 1000;

/** @throws UpstreamError */
export const runCall = ({ dispatcher, clock }: CallDeps, call: Call): Promise<CallOutcome> =>
  new Promise((resolve, reject) => {
    const { id, signal, timeoutMs } = call;
    let isSettled = false;
    let openQuestions = 0;
    let deadline = clock.monotonic() + timeoutMs;
    let cancelTimer = () => {};

    function settle(): boolean {
      if (isSettled) return false;
      isSettled = true;
      cancelTimer();
      signal?.removeEventListener('abort', abandonOnAbort);
      return true;
    }

    function fail(error: UpstreamError): void {
      if (settle()) reject(error);
    }

    function abandon(error: UpstreamError): void {
      if (!settle()) return;
      call.onAbandon(error.message);
      stop();
      reject(error);
    }

    function abandonOnAbort(): void {
      abandon(createAbortedError());
    }

    function watchTime(ms: number): void {
      cancelTimer = clock.after(ms, () => {
        const left = openQuestions > 0 ? timeoutMs : deadline - clock.monotonic();
        if (left > 0) watchTime(left);
        else abandon(new UpstreamError('timeout', `it did not answer within ${timeoutMs} ms`));
      });
    }

    function answer(outcome: CallOutcome, headers: IncomingHttpHeaders): void {
      if (!settle()) return;
      if (isEventStream(headers)) cancelTimer = clock.after(LINGER_MS, stop);
      resolve(outcome);
    }

    function fitsId(answered: unknown): boolean {
      if (answered === id) return true;
      stop();
      fail(createInvalidError('it answered another request than the one that was sent'));
      return false;
    }

    async function askBack(request: ServerRequest): Promise<void> {
      openQuestions += 1;
      try {
        await call.onRequest(request);
      } finally {
        openQuestions -= 1;
        deadline = clock.monotonic() + timeoutMs;
      }
    }

    function take(message: ServerMessage, headers: IncomingHttpHeaders): void {
      switch (message.kind) {
        case 'result':
          if (fitsId(message.id)) answer({ ...message, headers }, headers);
          return;
        case 'error':
          // Null: it could not even read the request.
          if (message.id === null || fitsId(message.id)) {
            answer({ kind: 'error', error: message.error }, headers);
          }
          return;
        case 'request':
          void askBack(message);
          return;
        default:
          if (message.method === 'notifications/progress') deadline = clock.monotonic() + timeoutMs;
          call.onNotification(message);
      }
    }

    function takeValue(value: unknown, headers: IncomingHttpHeaders): void {
      const message = readServerMessage(value);
      if (isSettled) {
        call.onStray('it went on after its answer');
      } else if (message === undefined) {
        stop();
        fail(createInvalidError('it answered what is no message of MCP'));
      } else {
        take(message, headers);
      }
    }

    function finish(end: ExchangeEnd): void {
      if (isSettled) cancelTimer();
      else if (end.kind === 'failed') fail(end.error);
      else if (end.kind === 'complete') {
        fail(createInvalidError('it ended its answer before the result'));
      } else if (settle()) resolve(end);
    }

    if (signal?.aborted) return reject(createAbortedError());
    const stop = startExchange(dispatcher, call.exchange, { onMessage: takeValue, onEnd: finish });
    signal?.addEventListener('abort', abandonOnAbort);
    watchTime(timeoutMs);
  });

const createAbortedError = () =>
  new UpstreamError('aborted', 'nobody waits for its answer any more');
