// §18.3: the requests to one process that it has not answered yet.

import {
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
} from '../../mcp/upstream/upstream.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { type Clock, Deadline } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import { nameOwner } from '../../store/owner.ts';
import { readEchoedNumber } from '../messages/server-message.ts';

/** The part of a request that is kept while it is under way: not its params, which may be large. */
export interface RequestHandlers
  extends Pick<UpstreamRequest, 'onProgress' | 'onLog' | 'onRequest' | 'onElicitationComplete'> {
  readonly caller: UpstreamCaller;
  readonly logLevel: UpstreamRequest['logLevel'];
}

/** A request that was sent. */
export interface PendingRequest extends RequestHandlers {
  readonly deadline: Deadline;
  resolve(result: JsonObject): void;
  reject(error: UpstreamError): void;
}

export type OpenRequests = ReturnType<typeof createOpenRequests>;

/** Ends a request before its answer. */
export interface RequestEnd {
  readonly signal: CancelSignal | undefined;
  /** Milliseconds without progress. */
  readonly timeoutMs: number;
  /** Called when it ended so. */
  cancel(id: number, reason: string): void;
}

export function createOpenRequests(clock: Clock) {
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
export function listOfOneClient(requests: readonly PendingRequest[]): readonly PendingRequest[] {
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
