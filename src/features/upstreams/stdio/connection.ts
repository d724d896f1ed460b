// §18.3: JSON-RPC with one process: each message is a line (MCP "stdio").
import type { Clock } from '../../../core/clock.ts';
import { isObject, type JsonObject } from '../../../core/json.ts';
import { decodeUtf8 } from '../../../core/utf8.ts';
import { parseServerJson } from '../messages/parse-json.ts';
import {
  readServerMessage,
  type ServerMessage,
  type ServerNotification,
} from '../messages/server-message.ts';
import {
  GATEWAY_CALLER,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
} from '../upstream.ts';
import { attribute } from './attribution.ts';
import {
  type Call,
  type CallEnd,
  type CallHandlers,
  createAbortedError,
  createCalls,
} from './calls.ts';
import { createQuestions } from './questions.ts';

export interface Connection {
  /**
   * Sends a request; `toParams` gets the progress token of it.
   *
   * @throws UpstreamError
   */
  call(
    caller: UpstreamCaller,
    request: UpstreamRequest,
    toParams: (token: number) => JsonObject,
  ): Promise<JsonObject>;
  /**
   * Sends a request of the gateway's own, which is never cancelled.
   *
   * @throws UpstreamError
   */
  ask(method: string, params: JsonObject, timeoutMs: number): Promise<JsonObject>;
  /** Sends a request that stays open until the result is called (MCP 2026-07-28 "Subscriptions"). */
  openSubscription(params: JsonObject): () => void;
  notify(method: string, params: JsonObject): void;
  /** Takes a line of the process; false for what is no message. */
  receive(line: Buffer): boolean;
  /** Requests under way. */
  listCalls(): readonly Call[];
  waitUntilIdle(): Promise<void>;
  /** The process has ended: requests under way fail. */
  fail(error: UpstreamError): void;
}

export interface ConnectionDeps {
  readonly clock: Clock;
  /** Milliseconds without progress after which a request ends. */
  readonly timeoutMs: number;
  /** Whether all its calls are of one user: only then messages that do not say whose they are are passed on. */
  readonly canAttribute: boolean;
  /** False where the process does not read what was written before. */
  write(line: string): boolean;
  /** Any notification but of progress, log messages and cancellation. */
  onNotification(message: ServerNotification): void;
  /** An answer came that nobody waits for. */
  onStrayAnswer(): void;
}

/** Requests that ended here before they were answered; the answer may still come. */
const MAX_CANCELLED = 1000;

export function createConnection(deps: ConnectionDeps): Connection {
  const { clock, timeoutMs, canAttribute, write, onNotification, onStrayAnswer } = deps;
  const cancelled = new Set<number>();
  const calls = createCalls(clock);
  const questions = createQuestions({
    listCalls: calls.list,
    canAsk: canAttribute,
    send: sendMessage,
  });
  let lastId = 0;
  let failure: UpstreamError | undefined;

  function sendMessage(message: JsonObject): boolean {
    return write(`${JSON.stringify(message)}\n`);
  }

  const send = (members: JsonObject): boolean => sendMessage({ jsonrpc: '2.0', ...members });

  /** Sends a request and resolves to its result; `toParams` gets its id. */
  function request(
    method: string,
    toParams: (id: number) => JsonObject,
    handlers: CallHandlers,
    end: CallEnd,
  ): Promise<JsonObject> {
    if (end.signal?.aborted) return Promise.reject(createAbortedError());
    if (failure !== undefined) return Promise.reject(failure);
    lastId += 1;
    const id = lastId;
    return send({ id, method, params: toParams(id) })
      ? calls.open(id, handlers, end)
      : Promise.reject(new UpstreamError('unavailable', 'it does not read what is sent to it'));
  }

  function forget(id: number): void {
    const [oldest] = cancelled;
    if (cancelled.size >= MAX_CANCELLED && oldest !== undefined) cancelled.delete(oldest);
    cancelled.add(id);
  }

  function cancelCall(id: number, reason: string): void {
    forget(id);
    send({ method: 'notifications/cancelled', params: { requestId: id, reason } });
  }

  function receiveAnswer(answer: Extract<ServerMessage, { kind: 'result' | 'error' }>): void {
    const { id } = answer;
    const call = calls.find(id);
    if (call === undefined) {
      // An answer that crossed the cancellation is nobody's fault.
      if (typeof id !== 'number' || !cancelled.delete(id)) onStrayAnswer();
    } else if (answer.kind === 'result') call.resolve(answer.result);
    else {
      const { error } = answer;
      call.reject(new UpstreamError('error', error.message, { jsonRpcError: error }));
    }
  }

  const notified: Readonly<Record<string, (params: JsonObject) => void>> = {
    'notifications/progress'(params) {
      const call = calls.find(params.progressToken);
      call?.deadline.renew();
      call?.onProgress?.(params);
    },
    'notifications/message'(params) {
      if (!canAttribute) return;
      attribute(calls.list(), ({ onLog }) => onLog !== undefined)?.onLog?.(params);
    },
    'notifications/cancelled': ({ requestId }) => questions.cancel(requestId),
  };

  /** False for what is no message; where it answers a request all the same, that one fails. */
  function receiveValue(value: unknown): boolean {
    const message = readServerMessage(value);
    if (message === undefined) {
      const call = isObject(value) && !('method' in value) ? calls.find(value.id) : undefined;
      call?.reject(new UpstreamError('invalid', 'its answer is no message of MCP'));
      return false;
    }
    receiveMessage(message);
    return true;
  }

  function receiveMessage(message: ServerMessage): void {
    if (message.kind === 'request') questions.receive(message);
    else if (message.kind === 'notification') receiveNotification(message);
    else receiveAnswer(message);
  }

  function receiveNotification(message: ServerNotification): void {
    const { method, params } = message;
    const receive = Object.hasOwn(notified, method) ? notified[method] : undefined;
    if (receive === undefined) onNotification(message);
    else receive(params);
  }

  return {
    call: (caller, given, toParams) =>
      request(given.method, toParams, keepHandlers(caller, given), {
        signal: given.signal,
        timeoutMs,
        cancel: cancelCall,
      }),
    ask: (method, params, within) =>
      request(method, () => params, OWN, { signal: undefined, timeoutMs: within, cancel: forget }),
    openSubscription(params) {
      lastId += 1;
      const id = lastId;
      // Its answer, when the server ends it, says nothing.
      forget(id);
      send({ id, method: 'subscriptions/listen', params });
      return () => cancelCall(id, 'other changes are wanted');
    },
    notify: (method, params) => void send({ method, params }),
    receive(line) {
      const value = parseLine(line);
      // A batch (2025-03-26), or one message.
      const messages = Array.isArray(value) ? value : [value];
      return messages.map(receiveValue).every((isMessage) => isMessage);
    },
    listCalls: calls.list,
    waitUntilIdle: calls.waitUntilNone,
    fail(error) {
      failure = error;
      calls.failAll(error);
    },
  };
}

const OWN: CallHandlers = { caller: GATEWAY_CALLER, logLevel: undefined };

/** Without the params of the request: they may be large, and the call may take long. */
const keepHandlers = (
  caller: UpstreamCaller,
  { logLevel, onProgress, onLog, onRequest }: UpstreamRequest,
): CallHandlers => ({
  caller,
  logLevel,
  ...(onProgress && { onProgress }),
  ...(onLog && { onLog }),
  ...(onRequest && { onRequest }),
});

function parseLine(line: Buffer): unknown {
  const text = decodeUtf8(line);
  return text === undefined ? undefined : parseServerJson(text)?.value;
}
