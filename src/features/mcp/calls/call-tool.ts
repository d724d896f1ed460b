// §4.4, §4.11: a tool's call: its unexpected failures told from others, counted and timed.
import type { Clock } from '../../../core/clock.ts';
import { catalogue } from '../../../core/errors/catalogue.ts';
import { fail, GatewayError, getStackFacts } from '../../../core/errors/gateway-error.ts';
import { generateReference } from '../../../core/ids.ts';
import type { Metrics } from '../../../core/metrics/metrics.ts';
import type { Arguments, Catalog, RawResult } from '../catalog/catalog.ts';
import type { ToolResult } from '../catalog/content.ts';
import { isToolError, readWords } from '../catalog/define/tool-error.ts';
import type { Era } from '../protocol/revisions.ts';
import type { CallContext } from './context.ts';

export interface CallToolDeps {
  readonly catalog: Catalog;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

export type CallTool = (
  name: string,
  args: Arguments,
  context: CallContext,
) => Promise<ToolResult | RawResult>;

/** Known tools only; a refused call (unknown tool, wrong input, a question) is not counted. */
export function createCallTool({ catalog, metrics, clock }: CallToolDeps, era: Era): CallTool {
  return async function callTool(name, args, context) {
    const startedAt = clock.monotonic();
    const record = (status: 'success' | 'error' | 'exception') => {
      if (context.isAsking()) return;
      metrics.recordToolCall(name, status, era, (clock.monotonic() - startedAt) / 1000);
    };
    const recordResult = (result: ToolResult | RawResult) => {
      record(result.isError === true ? 'error' : 'success');
      return result;
    };
    const failCall = (cause: unknown): ToolResult => {
      if (cause instanceof GatewayError || cause instanceof InputRequired) throw cause;
      // Nobody waits for it any more, and most tools end so when they are told.
      if (context.signal.aborted) throw cause;
      if (isToolError(cause)) {
        record('error');
        return toErrorResult(readWords(cause));
      }
      record('exception');
      // The message may have secrets, such as an address with a password: it is for the log alone.
      const reference = generateReference();
      return fail('tool_failed', {
        details: `${name} failed; reference ${reference}.`,
        cause,
        facts: { ...getStackFacts(cause), reference },
      });
    };
    // Not awaited here: that would keep the arguments until the tool ends.
    return startCall(catalog, name, args, context).then(recordResult, failCall);
  };
}

/** Async, so that what it throws at once is a rejection, too. */
const startCall = async (catalog: Catalog, ...call: Parameters<CallTool>): ReturnType<CallTool> =>
  catalog.callTool(...call);

/**
 * The result for arguments that do not fit, and for a tool that failed: the model reads it and can act on it, while a
 * JSON-RPC error would end at its client (MCP 2025-11-25 "Error Handling"). Undefined for any other error.
 */
export function toFailureResult({ key, message }: GatewayError): ErrorResult | undefined {
  if (key === 'tool_failed') return toErrorResult(message);
  if (key !== 'invalid_tool_input') return undefined;
  return toErrorResult(`${catalogue.invalid_tool_input.details}\n${message}`);
}

type ErrorResult = ReturnType<typeof toErrorResult>;

const toErrorResult = (text: string) =>
  ({ content: [{ type: 'text', text }], isError: true }) as const;

/** Ends a run in the stateless era: it starts again when the client has answered (MCP, MRTR). */
export class InputRequired extends Error {
  override readonly name = 'InputRequired';

  constructor() {
    super('The client is asked; the call starts again with its answers');
  }
}
