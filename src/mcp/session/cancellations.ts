// MCP "Cancellation": calls that run, by session and request id, so that they can be cancelled from
// any replica.
import { GatewayError } from '../../errors/gateway-error.ts';
import { type Link, LinkedList } from '../../platform/linked-list.ts';
import { isShortId, type RequestId } from '../../protocol/json-rpc.ts';
import type { Call } from '../calls/call.ts';
import type { McpReplicas } from './replica-message.ts';

export type Cancellations = ReturnType<typeof createCancellations>;

interface RunningCall {
  readonly sessionId: string;
  readonly id: RequestId;
  readonly call: Call;
}

/**
 * Calls are looked for in one part of so many, chosen by the last two digits of the session's id, a UUID: so few share it that all
 * can be looked at. A Map would grow and shrink with each call (platform/linked-list.ts).
 */
const PARTS = 256;

export function createCancellations(replicas: McpReplicas) {
  const parts = Array.from({ length: PARTS }, () => new LinkedList<RunningCall>());
  const others = new LinkedList<RunningCall>();
  const findPart = (sessionId: string) => parts[Number.parseInt(sessionId.slice(-2), 16)] ?? others;

  function cancelHere(sessionId: string, id: RequestId): boolean {
    const found = findNewest(findPart(sessionId), sessionId, id);
    found?.call.abort(new GatewayError('request_cancelled'));
    return found !== undefined;
  }

  replicas.listen((message) => {
    if (message.about === 'cancelled') cancelHere(message.sessionId, message.id);
  });

  return {
    /** Until it is removed, its client can cancel it: it is answered at once, with `request_cancelled`. */
    add: (call: Call, sessionId: string, id: RequestId): Link<RunningCall> =>
      findPart(sessionId).add({ sessionId, id, call }),
    /** Cancels the call wherever it runs; one that is over already, or never was, is no matter. */
    async cancel(sessionId: string, id: RequestId): Promise<void> {
      if (cancelHere(sessionId, id) || !isShortId(id)) return;
      await replicas.send({ about: 'cancelled', sessionId, id });
    },
  };
}

/** A client that uses an id twice at once cancels the later call. 1 and "1" are two ids (JSON-RPC). */
function findNewest(
  running: Iterable<RunningCall>,
  sessionId: string,
  id: RequestId,
): RunningCall | undefined {
  let newest: RunningCall | undefined;
  for (const one of running) if (one.id === id && one.sessionId === sessionId) newest = one;
  return newest;
}
