// Spec §4.4, §7.1: how a call ends, whatever its method does.
import { catalogue } from '../../../core/errors/catalogue.ts';
import { GatewayError, getStackFacts } from '../../../core/errors/gateway-error.ts';
import type { CallOutcome } from '../protocol/response.ts';

/**
 * The result, or the error for what was thrown. Never rejects. `work` is a promise and no function:
 * what began it, such as the params, is not kept until it ends.
 */
export const toOutcome = (work: Promise<object>, signal: () => AbortSignal): Promise<CallOutcome> =>
  work.then(
    (result) => ({ result }),
    (thrown: unknown) => ({ error: toMethodError(thrown, signal) }),
  );

/** What a method throws beside GatewayErrors is unexpected: -32603, its cause in the log. */
function toMethodError(thrown: unknown, signal: () => AbortSignal): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  const facts = getStackFacts(thrown);
  return signal().aborted
    ? new GatewayError('request_cancelled', { facts })
    : new GatewayError('method_failed', { cause: thrown, facts });
}

/**
 * The result for arguments that do not fit: the model reads it and can mend them, while a JSON-RPC
 * error would end at its client (MCP 2025-11-25 "Error Handling").
 *
 * @throws what was thrown, when it is anything else.
 */
export function toInputErrorResult(thrown: unknown) {
  if (!(thrown instanceof GatewayError) || thrown.key !== 'invalid_tool_input') throw thrown;
  const text = `${catalogue.invalid_tool_input.details}\n${thrown.message}`;
  return { content: [{ type: 'text', text }], isError: true } as const;
}

/** Ends a run in the stateless era: it starts again when the client has answered (MCP, MRTR). */
export class InputRequired extends Error {
  override readonly name = 'InputRequired';

  constructor() {
    super('The client is asked; the call starts again with its answers');
  }
}
