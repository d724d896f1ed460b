// §4.4, §7.1, MCP "Streamable HTTP": how a POST is answered, as values; endpoints.ts makes HTTP
// of them.
import type { CancelSignal } from '../../../core/cancellation.ts';
import { GatewayError, getStackFacts, toGatewayError } from '../../../core/errors/gateway-error.ts';
import { toJsonRpcError } from '../../../core/errors/render.ts';
import type { ReplyStream } from '../../../core/message.ts';
import type { RequestId } from './json-rpc.ts';

/**
 * How a request ends: the `result` or the `error` of its JSON-RPC response. `failure` is for the log, of a result that
 * tells of it.
 */
export type CallOutcome =
  | { readonly result: object; readonly failure?: GatewayError }
  | { readonly error: GatewayError };

/**
 * The result, or the error for what was thrown; `toResult` gives the results that tell of errors. Never rejects. `work` is a promise and no function:
 * what began it, such as the params, is not kept until it ends.
 */
export const toOutcome = (
  work: Promise<object>,
  signal: () => CancelSignal,
  toResult?: (error: GatewayError) => object | undefined,
): Promise<CallOutcome> =>
  work.then(
    (result) => ({ result }),
    (thrown: unknown) => {
      const error = toMethodError(thrown, signal);
      const result = toResult?.(error);
      if (result === undefined) return { error };
      // What a caller did wrong is no failure of the gateway's.
      return error.key === 'tool_failed' ? { result, failure: error } : { result };
    },
  );

/** What a method throws beside GatewayErrors is unexpected: -32603, its cause in the log. */
function toMethodError(thrown: unknown, signal: () => CancelSignal): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  const facts = getStackFacts(thrown);
  return signal().aborted
    ? new GatewayError('request_cancelled', { facts })
    : new GatewayError('method_failed', { cause: thrown, facts });
}

/** One JSON-RPC response, a stream of messages that ends with it, or 202 for what has none. */
export type McpResponse = (JsonResponse | StreamResponse | AcceptedResponse) & SessionInfo;

/** What a response says of its session; nothing in the stateless era. */
export interface SessionInfo {
  /** Of a session that was just made. */
  readonly sessionId?: string;
  /** ISO 8601. */
  readonly expiresAt?: string;
}

export interface JsonResponse {
  readonly kind: 'json';
  readonly outcome: CallOutcome;
}

export interface StreamResponse {
  readonly kind: 'stream';
  /** Server-sent events, as text. */
  readonly events: ReplyStream;
  /** How the request ended, once the stream has; a stream of notifications has no such end. */
  outcome?(): CallOutcome | undefined;
}

export interface AcceptedResponse {
  readonly kind: 'accepted';
}

export const ACCEPTED: AcceptedResponse = { kind: 'accepted' };

export const toResultResponse = (result: object): JsonResponse => ({
  kind: 'json',
  outcome: { result },
});

export const toErrorResponse = (thrown: unknown): JsonResponse => ({
  kind: 'json',
  outcome: { error: toGatewayError(thrown) },
});

/** The JSON-RPC response as text, and the error that it tells of. */
export interface RenderedResponse {
  readonly text: string;
  readonly error?: GatewayError;
}

/** A result that JSON cannot say is a failure of its method. */
export function renderResponse(outcome: CallOutcome, id: RequestId | null): RenderedResponse {
  if ('error' in outcome) {
    const { error } = outcome;
    return { text: JSON.stringify({ jsonrpc: '2.0', error: toJsonRpcError(error), id }), error };
  }
  try {
    const text = JSON.stringify({ jsonrpc: '2.0', result: outcome.result, id });
    return outcome.failure === undefined ? { text } : { text, error: outcome.failure };
  } catch (cause) {
    const error = new GatewayError('method_failed', { cause, facts: getStackFacts(cause) });
    return renderResponse({ error }, id);
  }
}
