// MCP "Cancellation": calls that run, by session and request id, so that they can be cancelled from
// any replica.
import { GatewayError } from '../../errors/gateway-error.ts';
import { isShortId, type RequestId } from '../../protocol/json-rpc.ts';
import type { Call } from '../calls/call.ts';
import type { Answer } from '../calls/outcome.ts';
import type { McpReplicas } from './replica-message.ts';

export interface Cancellations {
  /** Resolves to the answer, or to `request_cancelled` as soon as the client cancels the request. */
  raceCancellation(
    call: Call,
    sessionId: string,
    id: RequestId,
    answer: Promise<Answer>,
  ): Promise<Answer>;
  /** Cancels the call wherever it runs; one that is over already, or never was, is no matter. */
  cancel(sessionId: string, id: RequestId): Promise<void>;
}

/**
 * `cancel` is unset when the call is over. A Map that grows and shrinks leaves old tables behind, which
 * survive several garbage collections, and would keep all that the call held.
 */
interface RunningCall {
  cancel: (() => void) | undefined;
}

export function createCancellations(replicas: McpReplicas): Cancellations {
  const running = new Map<string, RunningCall>();

  function cancelHere(sessionId: string, id: RequestId): boolean {
    const runningCall = running.get(buildCallKey(sessionId, id));
    runningCall?.cancel?.();
    return runningCall !== undefined;
  }

  replicas.listen((message) => {
    if (message.about === 'cancelled') cancelHere(message.sessionId, message.id);
  });

  return {
    raceCancellation(call, sessionId, id, answer) {
      const key = buildCallKey(sessionId, id);
      return new Promise((resolve) => {
        const runningCall: RunningCall = {
          cancel() {
            call.abort();
            resolve({ error: new GatewayError('request_cancelled') });
          },
        };
        running.set(key, runningCall);
        answer.then((value) => {
          runningCall.cancel = undefined;
          // A client that uses an id twice at once can cancel the later call only.
          if (running.get(key) === runningCall) running.delete(key);
          resolve(value);
        });
      });
    },
    async cancel(sessionId, id) {
      if (cancelHere(sessionId, id) || !isShortId(id)) return;
      await replicas.send({ about: 'cancelled', sessionId, id });
    },
  };
}

/** 1 and "1" are two ids (JSON-RPC). */
const buildCallKey = (sessionId: string, id: RequestId): string =>
  typeof id === 'string' ? `${sessionId}"${id}` : `${sessionId}#${id}`;
