// §4.4, §4.11: how a call ended, and its response.

import { catalogue } from '../../errors/catalogue.ts';
import { GatewayError, getStackFacts, toGatewayError } from '../../errors/gateway-error.ts';
import type { Reply, ReplyStream } from '../../http/endpoint/message.ts';
import { toJsonRpcError } from '../../http/endpoint/render-error.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { findWritten, surround } from '../../platform/json.ts';
import { findText } from '../../platform/noted-json.ts';
import type { CacheHint } from '../catalog/content.ts';
import type { RequestId } from '../protocol/json-rpc.ts';

export type Outcome =
  | { readonly kind: 'success'; readonly result: MethodResult }
  /** The tool says in its result that it failed. */
  | { readonly kind: 'tool_error'; readonly result: MethodResult }
  /** It ends with a question to the client, which calls again with the answer (MCP, MRTR). */
  | { readonly kind: 'asked' }
  /** A policy does not let the caller; `error` is what it is told. */
  | { readonly kind: 'denied'; readonly by: string; readonly error: GatewayError }
  /** The same, and its result says so: a guard, or somebody who was asked, stopped the call (§26, §27). */
  | { readonly kind: 'denied'; readonly by: string; readonly result: MethodResult }
  | { readonly kind: 'failure'; readonly error: GatewayError };

export interface MethodResult {
  readonly result: object;
  /** Only of what may be kept at all; sent in the stateless era. */
  readonly cache?: CacheHint;
}

/** Ends a run in the stateless era: it starts again when the client has answered (MCP, MRTR). */
export class InputRequired extends Error {
  override readonly name = 'InputRequired';

  constructor() {
    super('The client is asked; the call starts again with its answers');
  }
}

/**
 * The answer; `showResult` makes the result that is sent. With `hasFailureResults` a tool's failure, and arguments
 * that do not fit, are results: the model reads them and can act on them, while a JSON-RPC error would end at its
 * client (MCP 2025-11-25 "Error Handling").
 */
export function toAnswer(
  outcome: Exclude<Outcome, { kind: 'asked' }>,
  hasFailureResults: boolean,
  showResult: (result: MethodResult) => object,
): Answer {
  if ('result' in outcome) {
    try {
      return { result: showResult(outcome.result) };
    } catch (cause) {
      // Not every catalogue checks what it returns.
      return { error: toMethodFailure(cause) };
    }
  }
  const { error } = outcome;
  const show = (text: string) => showResult({ result: toErrorResult(text) });
  if (hasFailureResults && error.key === 'tool_failed')
    return { result: show(error.message), failure: error };
  // A mistake of the caller is no failure of the gateway's.
  return hasFailureResults && error.key === 'invalid_tool_input'
    ? { result: show(`${catalogue.invalid_tool_input.details}\n${error.message}`) }
    : { error };
}

const toMethodFailure = (cause: unknown): GatewayError =>
  new GatewayError('method_failed', { cause, facts: getStackFacts(cause) });

/** Read by models. */
export const toErrorResult = (text: string) => ({
  content: [{ type: 'text', text }],
  isError: true,
});

// §4.4, §7.1, MCP "Streamable HTTP": how a POST is answered, as values; mcp.ts makes HTTP
// of them.

/**
 * The answer to a request: the `result` or the `error` of its JSON-RPC response. `failure` is for the log, of a result that
 * tells of it.
 */
export type Answer =
  | { readonly result: object; readonly failure?: GatewayError }
  | { readonly error: GatewayError };

/** One JSON-RPC response, a stream of messages that ends with it, or 202 for what has none. */
export type McpResponse =
  | { readonly kind: 'json'; readonly answer: Answer }
  | StreamResponse
  | { readonly kind: 'accepted' };

/** Said of its session by a reply; nothing in the stateless era. */
export interface SessionInfo {
  /** Set for a session that was just made. */
  readonly sessionId?: string;
  /** ISO 8601. */
  readonly expiresAt?: string;
}

export interface StreamResponse {
  readonly kind: 'stream';
  /** Server-sent events, as text. */
  readonly events: ReplyStream;
  /** Once the stream has ended; a stream of notifications has none. */
  answer?(): Answer | undefined;
}

export const ACCEPTED: McpResponse = { kind: 'accepted' };

export const toErrorAnswer = (thrown: unknown): Answer => ({ error: toGatewayError(thrown) });

/** The JSON-RPC response as text, and the error that it tells of. A result that JSON cannot say is a failure of its method. */
export function renderResponse(
  answer: Answer,
  id: RequestId | null,
): { readonly text: string; readonly error?: GatewayError } {
  if ('error' in answer) {
    const { error } = answer;
    return { text: writeExactJson({ jsonrpc: '2.0', error: toJsonRpcError(error), id }), error };
  }
  try {
    const written = findText(answer.result);
    const text =
      written === undefined
        ? writeExactJson({ jsonrpc: '2.0', result: answer.result, id })
        : // Line ends mean nothing in JSON, and would end the event that it may become.
          RESULT_HEAD + written.replace(/[\r\n]/g, ' ') + toResultTail(id);
    return answer.failure === undefined ? { text } : { text, error: answer.failure };
  } catch (cause) {
    return renderResponse({ error: toMethodFailure(cause) }, id);
  }
}

/** `renderResponse` for a reply: a result of which it is known how it is written is not written again. */
export function renderBody(
  answer: Answer,
  id: RequestId | null,
): Pick<Reply, 'body' | 'pieces'> & { readonly error?: GatewayError } {
  const hasFailed = 'error' in answer || answer.failure !== undefined;
  const written = hasFailed ? undefined : findWritten(answer.result);
  if (written !== undefined) {
    const response = surround(RESULT_HEAD, written, toResultTail(id));
    return typeof response === 'string' ? { body: response } : { pieces: response };
  }
  const { text, error } = renderResponse(answer, id);
  return error === undefined ? { body: text } : { body: text, error };
}

const RESULT_HEAD = '{"jsonrpc":"2.0","result":';

const toResultTail = (id: RequestId | null): string => `,"id":${JSON.stringify(id)}}`;
