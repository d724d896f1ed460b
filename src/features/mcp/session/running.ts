// MCP "Cancellation": calls that run, by session and request id, so that they can be cancelled from
// any replica.
import { isShort, type RequestId } from '../protocol/json-rpc.ts';
import type { Replicas } from './replicas.ts';

export interface Running {
  /** Notes a call; returns what to do when it is over. */
  add(sessionId: string, id: RequestId, cancel: () => void): () => void;
  /** Cancels the call wherever it runs; one that is over already, or never was, is no matter. */
  cancel(sessionId: string, id: RequestId): Promise<void>;
}

export function createRunning(replicas: Replicas): Running {
  const calls = new Map<string, () => void>();

  function cancelHere(sessionId: string, id: RequestId): boolean {
    const cancel = calls.get(keyOf(sessionId, id));
    cancel?.();
    return cancel !== undefined;
  }

  replicas.listen((message) => {
    if (message.about === 'cancelled') cancelHere(message.sessionId, message.id);
  });

  return {
    add(sessionId, id, cancel) {
      const key = keyOf(sessionId, id);
      calls.set(key, cancel);
      return () => {
        // A client that uses an id twice at once can cancel the later call only.
        if (calls.get(key) === cancel) calls.delete(key);
      };
    },
    async cancel(sessionId, id) {
      if (cancelHere(sessionId, id) || !isShort(id)) return;
      await replicas.send({ about: 'cancelled', sessionId, id });
    },
  };
}

/** 1 and "1" are two ids (JSON-RPC). */
const keyOf = (sessionId: string, id: RequestId): string =>
  typeof id === 'string' ? `${sessionId}"${id}` : `${sessionId}#${id}`;
