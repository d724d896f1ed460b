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
import {
  type ExchangeEnd,
  type ExchangeRequest,
  isEventStream,
  type Route,
  startExchange,
} from './exchange.ts';
import { createInvalidError, createNoMessageError, toRefusal } from './failures.ts';
import { createResumption, type Reopen, type Resumption } from './resumption.ts';

interface ServerCall {
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

interface CallDeps {
  readonly route: Route;
  readonly clock: Clock;
}

/** Requests of the server that wait for their answers: each answer is a connection of its own. */
export const MAX_OPEN_REQUESTS = 32;

/** A stream that goes on after its answer ends its connection. */
const LINGER_MS = 1000;

/** @throws UpstreamError */
export const runCall = ({ route, clock }: CallDeps, call: ServerCall): Promise<CallOutcome> =>
  new Promise((resolve, reject) => {
    const { signal, timeoutMs, reopen } = call;
    if (signal?.aborted) return reject(createAbortedError());
    let isSettled = false;
    let cancelLinger = () => {};
    let openRequests = 0;
    let stop = () => {};
    /** Most answers are never read on. */
    let resumption: Resumption | undefined;

    /** False where the call has ended before. */
    function settle(): boolean {
      if (isSettled) return false;
      isSettled = true;
      deadline.clear();
      signal?.removeEventListener('abort', abandonOnAbort);
      return true;
    }

    function fail(error: UpstreamError): void {
      if (settle()) reject(error);
    }

    function abandon(error: UpstreamError): void {
      if (isSettled) return;
      stop();
      fail(error);
      call.onAbandon(error.message);
    }

    const abandonOnAbort = () => abandon(createAbortedError());

    async function answer(request: ServerRequest): Promise<void> {
      if (openRequests >= MAX_OPEN_REQUESTS) {
        call.onStray(`it asks more than ${MAX_OPEN_REQUESTS} things at once`);
        return;
      }
      openRequests += 1;
      const resume = deadline.pause();
      await call.onRequest(request);
      resume();
      openRequests -= 1;
    }

    function takeValue(value: unknown, headers: IncomingHttpHeaders): number {
      if (isSettled) {
        call.onStray('it went on after its answer');
        return 1;
      }
      const message = readServerMessage(value);
      if (message?.kind === 'request') {
        void answer(message);
        return 1;
      }
      const taken =
        message === undefined
          ? createNoMessageError(value)
          : takeMessage(call, deadline, message, headers, resumption?.isReading() === true);
      if (taken instanceof UpstreamError) {
        stop();
        fail(taken);
      } else if (taken !== undefined && settle()) {
        if (isEventStream(headers)) cancelLinger = clock.after(LINGER_MS, stop);
        resolve(taken);
      }
      return taken === undefined ? 1 : 0;
    }

    function finish(end: ExchangeEnd): void {
      cancelLinger();
      if (!isSettled && resumption?.goOn(end)) {
        stop = resumption.stop;
        return;
      }
      // Nearly always the result has come before: an error is not made for nobody, since its stack is dear.
      if (!settle()) return;
      if (end.kind === 'refused') resolve(end);
      else if (end.kind === 'failed') reject(end.error);
      else reject(createInvalidError('it ended its answer before the result'));
    }

    const deadline = new Deadline(clock, timeoutMs, () =>
      abandon(new UpstreamError('timeout', `it did not answer within ${timeoutMs / 1000} s`)),
    );
    const openCursor =
      reopen &&
      (() => {
        resumption ??= createResumption({ clock, reopen, onMessage: takeValue, onEnd: finish });
        return resumption.cursor;
      });
    stop = startExchange(route, call.exchange, { onMessage: takeValue, onEnd: finish, openCursor });
    signal?.addEventListener('abort', abandonOnAbort);
  });

/** How the call ends by this message: undefined where it goes on. */
function takeMessage(
  call: ServerCall,
  deadline: Deadline,
  message: Exclude<ServerMessage, ServerRequest>,
  headers: IncomingHttpHeaders,
  isReadOn: boolean,
): CallOutcome | UpstreamError | undefined {
  if (message.kind === 'notification') {
    if (message.method === 'notifications/progress') deadline.renew();
    call.onNotification(message);
    return undefined;
  }
  // Some servers repeat what belongs to other calls of the session.
  if (isReadOn && message.id !== call.id) return undefined;
  // Without an id an error says that the request could not even be read.
  if (message.id !== call.id && message.id !== null) {
    return createInvalidError('it answered another request than the one that was sent');
  }
  return message.kind === 'result'
    ? { kind: 'result', result: message.result, headers }
    : { kind: 'error', error: message.error };
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
