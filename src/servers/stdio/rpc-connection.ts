// §18.3: JSON-RPC with one process: each message is a line (MCP "stdio").
import type { RequestId } from '../../mcp/protocol/json-rpc.ts';
import {
  GATEWAY_CALLER,
  INTERNAL_ERROR,
  METHOD_NOT_FOUND,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
} from '../../mcp/upstream/upstream.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { type Clock, Deadline } from '../../platform/clock.ts';
import { decodeUtf8, isObject, type JsonObject } from '../../platform/json.ts';
import { nameOwner } from '../../store/owner.ts';
import {
  parseServerJson,
  readChange,
  readEchoedNumber,
  readServerMessage,
  type ServerMessage,
  type ServerNotification,
  type ServerRequest,
} from '../messages/server-message.ts';
import { type Askable, createServerQuestions, isQuestion } from '../transport/server-questions.ts';

export type RpcConnection = ReturnType<typeof createRpcConnection>;

/** Requests that ended here before they were answered; the answer may still come. */
const MAX_FORGOTTEN = 1000;

/**
 * A request ends after `timeoutMs` without progress. `canAttribute` is true where all requests are of one user: only then
 * messages that do not say whose they are are passed on, and a question can be told to belong to one of them.
 */
export function createRpcConnection(
  clock: Clock,
  timeoutMs: number,
  canAttribute: boolean,
  peer: RpcPeer,
) {
  const { write: send } = peer;
  const forgotten = createBoundedMap<number, true>(MAX_FORGOTTEN);
  const openRequests = createOpenRequests(clock);
  let lastId = 0;
  let failure: UpstreamError | undefined;

  const sendRequest = (id: number, method: string, params: JsonObject): boolean =>
    send({ jsonrpc: '2.0', id, method, params });

  const notify = (method: string, params: JsonObject): void =>
    void send({ jsonrpc: '2.0', method, params });

  function createId(): number {
    lastId += 1;
    return lastId;
  }

  /** Sends a request and resolves to its result; `toParams` gets its id. */
  function request(
    method: string,
    toParams: (id: number) => JsonObject,
    handlers: RequestHandlers,
    end: RequestEnd,
  ): Promise<JsonObject> {
    if (end.signal?.aborted) return Promise.reject(createAbortedError());
    if (failure !== undefined) return Promise.reject(failure);
    const id = createId();
    return sendRequest(id, method, toParams(id))
      ? openRequests.open(id, handlers, end)
      : Promise.reject(new UpstreamError('unavailable', 'it does not read what is sent to it'));
  }

  function forget(id: number): void {
    forgotten.set(id, true);
  }

  function cancel(id: number, reason: string): void {
    forget(id);
    notify('notifications/cancelled', { requestId: id, reason });
  }

  function takeForgotten(echoed: unknown): boolean {
    const id = readEchoedNumber(echoed);
    return id !== undefined && forgotten.delete(id);
  }

  const receiveValue = createReceive(openRequests, canAttribute, peer, takeForgotten);

  return {
    /**
     * Sends a request; `toParams` gets the progress token of it.
     *
     * @throws UpstreamError
     */
    call: (
      caller: UpstreamCaller,
      given: UpstreamRequest,
      toParams: (token: number) => JsonObject,
    ) =>
      request(given.method, toParams, keepHandlers(caller, given), {
        signal: given.signal,
        timeoutMs,
        cancel,
      }),
    /**
     * Sends a request of the gateway's own, which is never cancelled.
     *
     * @throws UpstreamError
     */
    ask: (method: string, params: JsonObject, within: number) =>
      request(method, () => params, OWN, { signal: undefined, timeoutMs: within, cancel: forget }),
    /** Sends a request that stays open until the result is called (MCP 2026-07-28 "Subscriptions"). */
    openSubscription(params: JsonObject) {
      const id = createId();
      // Its answer, when the server ends it, says nothing.
      forget(id);
      sendRequest(id, 'subscriptions/listen', params);
      return () => cancel(id, 'other changes are wanted');
    },
    notify,
    /** Takes a line of the process. */
    receive: (line: Buffer) => receiveValue(parseLine(line)),
    /** Takes what was parsed of one. */
    receiveValue,
    /** Requests under way. */
    listOpenRequests: openRequests.list,
    waitUntilIdle: openRequests.waitUntilNone,
    /** The process has ended: requests under way fail, and all later ones. */
    fail(error: UpstreamError) {
      failure = error;
      openRequests.failAll(error);
    },
  };
}

const OWN: RequestHandlers = { caller: GATEWAY_CALLER, logLevel: undefined };

/** Without the params of the request: they may be large, and the call may take long. */
const keepHandlers = (
  caller: UpstreamCaller,
  { logLevel, onProgress, onLog, onRequest, onElicitationComplete }: UpstreamRequest,
): RequestHandlers => ({
  caller,
  logLevel,
  ...(onProgress && { onProgress }),
  ...(onLog && { onLog }),
  ...(onRequest && { onRequest }),
  ...(onElicitationComplete && { onElicitationComplete }),
});

// §18.3: what a process writes, told to whom it is for.

/** Takes a message of the process, or a batch of them. */
type Receive = (value: unknown) => Received;

interface Received {
  /** False for what is no message. */
  readonly isMessage: boolean;
  /** The number of messages that it counts as: none for an answer that is waited for. */
  readonly count: number;
}

/** Each costs as much as a message by itself, and all of a batch are looked at in one go. */
const MAX_BATCH = 100;
/** Anything but a message costs more than any message, as the log tells of it. */
const STRAY: Received = { isMessage: false, count: 2 };
const ANSWER: Received = { isMessage: true, count: 0 };
const OTHER: Received = { isMessage: true, count: 1 };

/** The process at the other end, and those who listen to it. */
interface RpcPeer {
  /** A whole message; false where the process does not read what was written before. */
  write(message: JsonObject): boolean;
  /** Any notification but of progress, log messages and cancellation. */
  onNotification(message: ServerNotification): void;
  /** An answer came that nobody waits for. */
  onStrayAnswer(): void;
  /** The server wanted to ask a client, and nobody knows which. */
  onUnattributed?(method: string): void;
}

/** `takeForgotten` says whether a request of this id ended before it was answered; it is asked once. */
function createReceive(
  openRequests: OpenRequests,
  canAttribute: boolean,
  peer: RpcPeer,
  takeForgotten: (id: unknown) => boolean,
): Receive {
  const questions = createQuestions(openRequests, canAttribute, peer);

  const notified: Readonly<Record<string, (params: JsonObject) => void>> = {
    'notifications/progress'(params) {
      const request = openRequests.find(params.progressToken);
      request?.deadline.renew();
      request?.onProgress?.(params);
    },
    'notifications/message'(params) {
      if (!canAttribute) return;
      const [request] = listOfOneClient(
        openRequests.list().filter(({ onLog }) => onLog !== undefined),
      );
      request?.onLog?.(params);
    },
    'notifications/cancelled': ({ requestId }) => questions.cancel(requestId),
  };

  function isTakenByCall(message: ServerNotification): boolean {
    const change = readChange(message);
    if (change?.kind !== 'elicitation') return false;
    const { elicitationId } = change;
    return openRequests.list().some((request) => request.onElicitationComplete?.(elicitationId));
  }

  function receiveAnswer(answer: Extract<ServerMessage, { kind: 'result' | 'error' }>): Received {
    const request = openRequests.find(answer.id);
    if (request === undefined) {
      // An answer that crossed the cancellation is nobody's fault.
      if (!takeForgotten(answer.id)) peer.onStrayAnswer();
      return OTHER;
    }
    if (answer.kind === 'result') request.resolve(answer.result);
    else {
      const { error } = answer;
      request.reject(new UpstreamError('error', error.message, { jsonRpcError: error }));
    }
    return ANSWER;
  }

  function receiveNotification(message: ServerNotification): void {
    const { method, params } = message;
    const receive = Object.hasOwn(notified, method) ? notified[method] : undefined;
    if (receive !== undefined) receive(params);
    else if (!isTakenByCall(message)) peer.onNotification(message);
  }

  /** A request that is answered by anything but a message fails. */
  function failAnswered(value: unknown, reason: string): void {
    const request =
      isObject(value) && !('method' in value) ? openRequests.find(value.id) : undefined;
    request?.reject(new UpstreamError('invalid', reason));
  }

  function receiveOne(value: unknown): Received {
    const message = readServerMessage(value);
    if (message === undefined) {
      failAnswered(value, 'its answer is no message of MCP');
      return STRAY;
    }
    if (message.kind !== 'request' && message.kind !== 'notification')
      return receiveAnswer(message);
    if (message.kind === 'request') questions.receive(message);
    else receiveNotification(message);
    return OTHER;
  }

  /** A batch (2025-03-26). */
  function receiveBatch(values: readonly unknown[]): Received {
    if (values.length > MAX_BATCH) {
      for (const value of values) failAnswered(value, TOO_MANY);
      return STRAY;
    }
    const received = values.map(receiveOne);
    return {
      isMessage: received.every(({ isMessage }) => isMessage),
      count: received.reduce((sum, { count }) => sum + count, 0),
    };
  }

  return (value) => (Array.isArray(value) ? receiveBatch(value) : receiveOne(value));
}

const TOO_MANY = `it answered in a batch of more than ${MAX_BATCH} messages`;

/** Undefined for what is no JSON. */
function parseLine(line: Buffer): unknown {
  // Some runtimes begin their output with a byte order mark.
  const text = decodeUtf8(line)?.replace(/^\uFEFF/, '');
  return text === undefined ? undefined : parseServerJson(text)?.value;
}

// Requests of a server (session era): elicitation, sampling and roots are questions to a client.

/** At once, of one process. */
const MAX_OPEN = 100;

function createQuestions(openRequests: OpenRequests, canAsk: boolean, peer: RpcPeer) {
  const { write: send } = peer;
  const open = createServerQuestions();

  const listAskable = (): readonly Askable[] =>
    listOfOneClient(openRequests.list().filter(({ onRequest }) => onRequest !== undefined)).map(
      (request) => ({ request, deadline: request.deadline }),
    );

  async function answer(question: ServerRequest): Promise<void> {
    const response = await open.answerForOneOf(question, listAskable);
    if (response !== undefined) send(response);
  }

  return {
    /** Answers, at some time, whatever it is. */
    receive(question: ServerRequest) {
      const { id } = question;
      if (!canAsk && isQuestion(question)) {
        peer.onUnattributed?.(question.method);
        send(toError(id, METHOD_NOT_FOUND, SHARED));
      } else if (open.size < MAX_OPEN) void answer(question);
      else send(toError(id, INTERNAL_ERROR, `At most ${MAX_OPEN} requests may be open.`));
    },
    /** The server no longer wants an answer. */
    cancel: open.cancel,
  };
}

const toError = (id: RequestId, code: number, message: string): JsonObject => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
});

const SHARED =
  'The gateway cannot tell which client to ask: its configuration file has one process of this server for all users ("isolation": "shared").';

// §18.3: the requests to one process that it has not answered yet.

/** The part of a request that is kept while it is under way: not its params, which may be large. */
interface RequestHandlers
  extends Pick<UpstreamRequest, 'onProgress' | 'onLog' | 'onRequest' | 'onElicitationComplete'> {
  readonly caller: UpstreamCaller;
  readonly logLevel: UpstreamRequest['logLevel'];
}

/** A request that was sent. */
interface PendingRequest extends RequestHandlers {
  readonly deadline: Deadline;
  resolve(result: JsonObject): void;
  reject(error: UpstreamError): void;
}

type OpenRequests = ReturnType<typeof createOpenRequests>;

/** Ends a request before its answer. */
interface RequestEnd {
  readonly signal: CancelSignal | undefined;
  /** Milliseconds without progress. */
  readonly timeoutMs: number;
  /** Called when it ended so. */
  cancel(id: number, reason: string): void;
}

function createOpenRequests(clock: Clock) {
  const byId = new Map<number, PendingRequest>();
  const emptied = new Set<() => void>();

  function remove(id: number): void {
    byId.delete(id);
    if (byId.size > 0) return;
    for (const tell of emptied) tell();
    emptied.clear();
  }

  return {
    /** Resolves to the result of the request with this id, unless its end comes first. */
    open: (id: number, handlers: RequestHandlers, { signal, timeoutMs, cancel }: RequestEnd) =>
      new Promise<JsonObject>((resolve, reject) => {
        function end(): void {
          deadline.clear();
          signal?.removeEventListener('abort', onAbort);
          remove(id);
        }
        function giveUp(error: UpstreamError): void {
          end();
          cancel(id, error.message);
          reject(error);
        }
        const onAbort = () => giveUp(createAbortedError());
        const deadline = new Deadline(clock, timeoutMs, () =>
          giveUp(new UpstreamError('timeout', `it did not answer within ${timeoutMs / 1000} s`)),
        );
        signal?.addEventListener('abort', onAbort);
        byId.set(id, {
          ...handlers,
          deadline,
          resolve(result) {
            end();
            resolve(result);
          },
          reject(error) {
            end();
            reject(error);
          },
        });
      }),
    /** Finds the request with this id or progress token, as the process echoes it. */
    find(echoed: unknown) {
      const id = readEchoedNumber(echoed);
      return id === undefined ? undefined : byId.get(id);
    },
    list: () => [...byId.values()],
    /** All of them end with this error. */
    failAll(error: UpstreamError) {
      for (const request of [...byId.values()]) request.reject(error);
    },
    /** Resolves when none is under way. */
    waitUntilNone: () =>
      byId.size === 0 ? Promise.resolve() : new Promise<void>((resolve) => emptied.add(resolve)),
  };
}

export const createAbortedError = () => new UpstreamError('aborted', 'nobody waits any more');

// §18.3: a process does not say whose request its log messages and questions belong to.

/** The requests that a message may belong to, the newest first: none unless all of them reach the same client. */
function listOfOneClient(requests: readonly PendingRequest[]): readonly PendingRequest[] {
  const [first, ...others] = requests.toReversed();
  if (first === undefined) return [];
  const { caller } = first;
  const isSame = (request: PendingRequest) => isSameClient(caller, request.caller);
  return others.every(isSame) ? [first, ...others] : [];
}

/** Without sessions: the same client of the same user. */
function isSameClient(one: UpstreamCaller, other: UpstreamCaller): boolean {
  if (one.sessionId !== undefined) return one.sessionId === other.sessionId;
  return (
    other.sessionId === undefined &&
    one.user !== undefined &&
    other.user !== undefined &&
    nameOwner(one.user) === nameOwner(other.user) &&
    one.clientId === other.clientId
  );
}
