// MCP 2025-11-25 "Error Handling", decisions 10: arguments that do not fit are a result that the model
// reads, so that it can mend them; a JSON-RPC error would end at its client.
import { catalogue } from '../../../core/errors/catalogue.ts';
import { GatewayError } from '../../../core/errors/gateway-error.ts';

/**
 * The result for arguments that do not fit.
 *
 * @throws what was thrown, when it is anything else.
 */
export function inputErrorResult(thrown: unknown) {
  if (!(thrown instanceof GatewayError) || thrown.key !== 'invalid_tool_input') throw thrown;
  const text = `${catalogue.invalid_tool_input.details}\n${thrown.message}`;
  return { content: [{ type: 'text', text }], isError: true } as const;
}
