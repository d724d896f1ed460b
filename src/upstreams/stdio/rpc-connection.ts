// §18.3: JSON-RPC with one process: each message is a line (MCP "stdio").
import { createBoundedMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import { readEchoedNumber } from '../messages/server-message.ts';
import {
  GATEWAY_CALLER,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
} from '../upstream.ts';
import {
  createAbortedError,
  createOpenRequests,
  type RequestEnd,
  type RequestHandlers,
} from './open-requests.ts';
import { createReceive, parseLine, type RpcPeer } from './receive.ts';

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
