// §4.4, §7.1, MCP "Streamable HTTP": how a POST is answered, as values; endpoints.ts makes HTTP
// of them.
import { GatewayError, getStackFacts, toGatewayError } from '../../../core/errors/gateway-error.ts';
import { toJsonRpcError } from '../../../core/errors/render.ts';
import type { ReplyStream } from '../../../core/message.ts';
import type { RequestId } from '../../../protocol/json-rpc.ts';

/**
 * How a request is answered: the `result` or the `error` of its JSON-RPC response. `failure` is for the log, of a result that
 * tells of it.
 */
export type Answer =
  | { readonly result: object; readonly failure?: GatewayError }
  | { readonly error: GatewayError };

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
  readonly answer: Answer;
}

export interface StreamResponse {
  readonly kind: 'stream';
  /** Server-sent events, as text. */
  readonly events: ReplyStream;
  /** Once the stream has ended; a stream of notifications has none. */
  answer?(): Answer | undefined;
}

export interface AcceptedResponse {
  readonly kind: 'accepted';
}

export const ACCEPTED: AcceptedResponse = { kind: 'accepted' };

export const toResultResponse = (result: object): JsonResponse => ({
  kind: 'json',
  answer: { result },
});

export const toErrorAnswer = (thrown: unknown): Answer => ({ error: toGatewayError(thrown) });

export const toErrorResponse = (thrown: unknown): JsonResponse => ({
  kind: 'json',
  answer: toErrorAnswer(thrown),
});

/** The JSON-RPC response as text, and the error that it tells of. */
export interface RenderedResponse {
  readonly text: string;
  readonly error?: GatewayError;
}

/** A result that JSON cannot say is a failure of its method. */
export function renderResponse(answer: Answer, id: RequestId | null): RenderedResponse {
  if ('error' in answer) {
    const { error } = answer;
    return { text: JSON.stringify({ jsonrpc: '2.0', error: toJsonRpcError(error), id }), error };
  }
  try {
    const text = JSON.stringify({ jsonrpc: '2.0', result: answer.result, id });
    return answer.failure === undefined ? { text } : { text, error: answer.failure };
  } catch (cause) {
    const error = new GatewayError('method_failed', { cause, facts: getStackFacts(cause) });
    return renderResponse({ error }, id);
  }
}
