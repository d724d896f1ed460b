// §18.3: JSON-RPC with one process: each message is a line (MCP "stdio").
import type { RequestId } from '../../mcp/protocol/json-rpc.ts';
import {
  GATEWAY_CALLER,
  INTERNAL_ERROR,
  METHOD_NOT_FOUND,
  toOtherFailure,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
} from '../../mcp/upstream/upstream.ts';
import { createBoundedMap, LinkedList } from '../../platform/bounded-map.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { type Clock, Deadline } from '../../platform/clock.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { dropByteOrderMark } from '../../platform/pieces.ts';
import { nameOwner } from '../../store/keys.ts';
import {
  parseServerBytes,
  readChange,
  readEchoedNumber,
  readServerMessage,
  type ServerMessage,
  type ServerNotification,
  type ServerRequest,
} from '../messages/server-message.ts';
import { createServerQuestions, isQuestion } from '../transport/server-questions.ts';

export type RpcConnection = ReturnType<typeof createRpcConnection>;

/**
 * A request times out after `timeoutMs` without progress. `canAttribute` is true if all requests are from one user: only then are
 * messages without a request ID passed on, and server-initiated requests attributed to a call.
 */
export function createRpcConnection(
  clock: Clock,
  timeoutMs: number,
  canAttribute: boolean,
  peer: RpcPeer,
) {
  const { write: send } = peer;
  const forgotten = createBoundedMap<number, true>('unansweredRequests');
  const openRequests = createOpenRequests(clock);
  const questions = createServerQuestions();
  let lastId = 0;
  let failure: UpstreamError | undefined;

  const sendRequest = (id: number, method: string, params: JsonObject) =>
    send({ jsonrpc: '2.0', id, method, params });

  const notify = (method: string, params: JsonObject): void =>
    void send({ jsonrpc: '2.0', method, params });

  function createId() {
    lastId += 1;
    return lastId;
  }

  /** Sends a request and resolves to its result; `toParams` gets its ID. */
  function callServer(
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

  function forget(id: number) {
    forgotten.set(id, true);
  }

  function cancel(id: number, reason: string) {
    forget(id);
    notify('notifications/cancelled', { requestId: id, reason });
  }

  // §18.3: dispatches the messages of a process.

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
    // The server no longer wants the response.
    'notifications/cancelled': ({ requestId }) => questions.cancel(requestId),
  };

  function receiveNotification(message: ServerNotification) {
    const { method, params } = message;
    const receive = Object.hasOwn(notified, method) ? notified[method] : undefined;
    if (receive !== undefined) {
      receive(params);
      return;
    }
    const change = readChange(message);
    const isTakenByCall =
      change?.kind === 'elicitation' &&
      openRequests.list().some((request) => request.onElicitationComplete?.(change.elicitationId));
    if (!isTakenByCall) peer.onNotification(message);
  }

  // Server-initiated requests (session era): elicitation, sampling and roots are passed to a client.

  /** Responds eventually, whatever the request is. */
  async function receiveRequest(question: ServerRequest) {
    const { id, method } = question;
    if (!canAttribute && isQuestion(question)) {
      peer.onUnattributed?.(method);
      send(toError(id, METHOD_NOT_FOUND, SHARED));
    } else if (questions.size < MAX_OPEN) {
      const response = await questions.answerForOneOf(question, () =>
        listOfOneClient(openRequests.list().filter(({ onRequest }) => onRequest !== undefined)).map(
          (request) => ({ request, deadline: request.deadline }),
        ),
      );
      if (response !== undefined) send(response);
    } else send(toError(id, INTERNAL_ERROR, `At most ${MAX_OPEN} requests may be open.`));
  }

  function receiveAnswer(answer: Extract<ServerMessage, { kind: 'result' | 'error' }>): Received {
    const request = openRequests.find(answer.id);
    if (request === undefined) {
      // The response may have crossed with the cancellation.
      const id = readEchoedNumber(answer.id);
      if (id === undefined || !forgotten.delete(id)) peer.onStrayAnswer();
      return OTHER;
    }
    if (answer.kind === 'result') request.settle(answer.result);
    else {
      const { error } = answer;
      request.settle(new UpstreamError('error', error.message, { jsonRpcError: error }));
    }
    return ANSWER;
  }

  /** Fails the request whose response is not a valid message. */
  function failAnswered(value: unknown, reason: string) {
    const request =
      isObject(value) && !('method' in value) ? openRequests.find(value.id) : undefined;
    request?.settle(new UpstreamError('invalid', reason));
  }

  function receiveOne(value: unknown): Received {
    const message = readServerMessage(value);
    if (message === undefined) {
      failAnswered(value, 'its answer is no message of MCP');
      return STRAY;
    }
    if (message.kind === 'request') void receiveRequest(message);
    else if (message.kind === 'notification') receiveNotification(message);
    else return receiveAnswer(message);
    return OTHER;
  }

  function receiveValue(value: unknown): Received {
    if (!Array.isArray(value)) return receiveOne(value);
    // This is a batch (2025-03-26).
    const values: readonly unknown[] = value;
    if (values.length > MAX_BATCH) {
      for (const one of values)
        failAnswered(one, `it answered in a batch of more than ${MAX_BATCH} messages`);
      return STRAY;
    }
    const received = values.map(receiveOne);
    return {
      isMessage: received.every(({ isMessage }) => isMessage),
      count: received.reduce((sum, { count }) => sum + count, 0),
    };
  }

  return {
    /**
     * Sends a request; `toParams` gets its progress token. The params are not retained while the request is in flight: they may
     * be large, and the call may take a long time.
     *
     * @throws UpstreamError
     */
    call(
      caller: UpstreamCaller,
      given: UpstreamRequest,
      toParams: (token: number) => JsonObject,
    ): Promise<JsonObject> {
      const { method, signal, logLevel, onProgress, onLog, onRequest, onElicitationComplete } =
        given;
      const handlers = { caller, logLevel, onProgress, onLog, onRequest, onElicitationComplete };
      return callServer(method, toParams, handlers, { signal, timeoutMs, cancel });
    },
    /**
     * Sends one of the gateway's own requests, which is never cancelled.
     *
     * @throws UpstreamError
     */
    ask: (method: string, params: JsonObject, within: number) =>
      callServer(method, () => params, OWN, {
        signal: undefined,
        timeoutMs: within,
        cancel: forget,
      }),
    /** Sends a request that stays open until the returned function is called (MCP 2026-07-28 "Subscriptions"). */
    openSubscription(params: JsonObject) {
      const id = createId();
      // The response, sent when the server ends the subscription, has no information.
      forget(id);
      sendRequest(id, 'subscriptions/listen', params);
      return () => cancel(id, 'other changes are wanted');
    },
    notify,
    /** Processes a line from the process, in pieces: a message, or a batch. */
    receive(line: readonly Buffer[]) {
      // Some runtimes begin their output with a byte order mark.
      return receiveValue(parseServerBytes(dropByteOrderMark(line))?.value);
    },
    /** Processes a parsed message, or a batch. */
    receiveValue,
    /** Fails the request with this ID, whose response was rejected; has no other effect. */
    refuse: (id: unknown, error: UpstreamError) => openRequests.find(id)?.settle(error),
    /** In-flight requests. */
    listOpenRequests: openRequests.list,
    waitUntilIdle: openRequests.waitUntilNone,
    /** The process or the stream has ended: in-flight requests, which may have been carried out, fail, and all later ones. */
    fail(error: UpstreamError) {
      // Later requests are not sent.
      failure = toOtherFailure(error, 'unavailable');
      openRequests.failAll(
        error.failure === 'unavailable' ? toOtherFailure(error, 'interrupted') : error,
      );
    },
  };
}

const OWN: RequestHandlers = { caller: GATEWAY_CALLER };

/** The outcome of a received message. */
interface Received {
  /** False for a value that is not a message. */
  readonly isMessage: boolean;
  /** The number of messages that it counts as: zero for an expected response. */
  readonly count: number;
}

/** Maximum messages in a batch: each costs as much as a single one, and all are processed without a break. */
const MAX_BATCH = 100;
/** Maximum number of open server-initiated requests of one process. */
const MAX_OPEN = 100;
/** A value that is not a message costs more than any message, since it is logged. */
const STRAY: Received = { isMessage: false, count: 2 };
const ANSWER: Received = { isMessage: true, count: 0 };
const OTHER: Received = { isMessage: true, count: 1 };

/** The other end of the connection, and its listeners. */
interface RpcPeer {
  /** Writes a whole message; returns false while earlier messages are unread (back-pressure). */
  write(message: JsonObject): boolean;
  /** Receives any notification except progress, log messages and cancellation. */
  onNotification(message: ServerNotification): void;
  /** Called for a response that no request expects. */
  onStrayAnswer(): void;
  /** Called when the server sent a request for a client that cannot be attributed to a call. */
  onUnattributed?(method: string): void;
}

const toError = (id: RequestId, code: number, message: string): JsonObject => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
});

const SHARED =
  'The gateway cannot tell which client to ask: its configuration file has one process of this server for all users ("isolation": "shared").';

// §18.3: requests that a process has not answered yet.

/** The part of a request that is retained while it is in flight. */
interface RequestHandlers {
  readonly caller: UpstreamCaller;
  readonly logLevel?: UpstreamRequest['logLevel'];
  readonly onProgress?: UpstreamRequest['onProgress'];
  readonly onLog?: UpstreamRequest['onLog'];
  readonly onRequest?: UpstreamRequest['onRequest'] | undefined;
  readonly onElicitationComplete?: UpstreamRequest['onElicitationComplete'];
}

/** A request that was sent. */
interface PendingRequest extends RequestHandlers {
  readonly id: number;
  readonly deadline: Deadline;
  settle(outcome: JsonObject | UpstreamError): void;
}

/** Ends a request before its response. */
interface RequestEnd {
  readonly signal: CancelSignal | undefined;
  /** Milliseconds without progress. */
  readonly timeoutMs: number;
  /** Called when the request ended this way. */
  cancel(id: number, reason: string): void;
}

function createOpenRequests(clock: Clock) {
  const pending = new LinkedList<PendingRequest>();
  const emptied = new Set<() => void>();

  return {
    /** Resolves to the result of the request with this ID, unless the request ends before. */
    open: (id: number, handlers: RequestHandlers, { signal, timeoutMs, cancel }: RequestEnd) =>
      new Promise<JsonObject>((resolve, reject) => {
        function settle(outcome: JsonObject | UpstreamError) {
          deadline.clear();
          signal?.removeEventListener('abort', onAbort);
          pending.remove(link);
          if (pending.size === 0) {
            for (const tell of emptied) tell();
            emptied.clear();
          }
          if (outcome instanceof UpstreamError) reject(outcome);
          else resolve(outcome);
        }
        function giveUp(error: UpstreamError) {
          settle(error);
          cancel(id, error.message);
        }
        const onAbort = () => giveUp(createAbortedError());
        const deadline = new Deadline(clock, timeoutMs, () =>
          giveUp(new UpstreamError('timeout', `it did not answer within ${timeoutMs / 1000} s`)),
        );
        signal?.addEventListener('abort', onAbort);
        const link = pending.add({ id, ...handlers, deadline, settle });
      }),
    /** Finds the request with this ID or progress token, as echoed by the process. */
    find(echoed: unknown) {
      const id = readEchoedNumber(echoed);
      return id === undefined ? undefined : pending.find((request) => request.id === id);
    },
    list: () => [...pending],
    /** Fails all in-flight requests with this error. */
    failAll(error: UpstreamError) {
      for (const request of [...pending]) request.settle(error);
    },
    /** Resolves when no request is in flight. */
    waitUntilNone: () =>
      pending.size === 0 ? Promise.resolve() : new Promise<void>((resolve) => emptied.add(resolve)),
  };
}

export const createAbortedError = () => new UpstreamError('aborted', 'nobody is waiting any more');

// §18.3: a process does not say to which request its log messages and server-initiated requests belong.

/** The requests that a message may belong to, newest first: none unless all of them come from the same client. */
function listOfOneClient(requests: readonly PendingRequest[]): readonly PendingRequest[] {
  const [first, ...others] = requests.toReversed();
  if (first === undefined) return [];
  const { caller } = first;
  const isSame = (request: PendingRequest) => isSameClient(caller, request.caller);
  return others.every(isSame) ? [first, ...others] : [];
}

/** For callers without sessions: the same client of the same user. */
function isSameClient(one: UpstreamCaller, other: UpstreamCaller) {
  if (one.sessionId !== undefined) return one.sessionId === other.sessionId;
  return (
    other.sessionId === undefined &&
    one.user !== undefined &&
    other.user !== undefined &&
    nameOwner(one.user) === nameOwner(other.user) &&
    one.clientId === other.clientId
  );
}
