// Spec §7.1: the JSON-RPC response to a request, be it a result or an error.
import { GatewayError, getStackFacts } from '../../../core/errors/gateway-error.ts';
import { JSONRPC, renderError } from '../../../core/errors/render.ts';
import { json, type Reply } from '../../../core/message.ts';
import type { RequestId } from '../protocol/json-rpc.ts';

/**
 * The reply with what `work` resolves to, or with what it throws. Never rejects. `signal` tells
 * whether anybody still waits for it. `work` is a promise and no function: what began the work, such
 * as the params, is not kept until it ends (decisions 10).
 */
export async function replyTo(
  id: RequestId,
  signal: () => AbortSignal,
  work: Promise<object>,
): Promise<Reply> {
  try {
    return json(200, { jsonrpc: '2.0', result: await work, id });
  } catch (thrown) {
    return renderError(asMethodError(thrown, signal), JSONRPC, id);
  }
}

/** What a method throws beside GatewayErrors is unexpected: -32603, its cause in the log. */
function asMethodError(thrown: unknown, signal: () => AbortSignal): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  const facts = getStackFacts(thrown);
  return signal().aborted
    ? new GatewayError('request_cancelled', { facts })
    : new GatewayError('method_failed', { cause: thrown, facts });
}
