// §4.4, §4.11: how a call ended. Judged here, once; whoever answers, counts, logs or audits it goes by this.

import { catalogue } from '../../errors/catalogue.ts';
import { GatewayError, getStackFacts, toGatewayError } from '../../errors/gateway-error.ts';
import type { Reply, ReplyStream } from '../../http/endpoint/message.ts';
import { toJsonRpcError } from '../../http/endpoint/render-error.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { generateReference } from '../../platform/ids.ts';
import { findWritten, surround } from '../../platform/json.ts';
import { findText } from '../../platform/noted-json.ts';
import type { CacheHint } from '../catalog/content.ts';
import { isToolError, readFailure } from '../catalog/define/tool.ts';
import type { RequestId } from '../protocol/json-rpc.ts';
import type { Method } from '../protocol/methods.ts';

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

/** `deniedBy` is what stopped the call; undefined where nothing did. */
export function judgeResult(result: MethodResult, deniedBy: string | undefined): Outcome {
  if (deniedBy !== undefined) return { kind: 'denied', by: deniedBy, result };
  return 'isError' in result.result && result.result.isError === true
    ? { kind: 'tool_error', result }
    : { kind: 'success', result };
}

interface ThrownBy {
  readonly method: Method | undefined;
  /** The name or URI that the call is about. */
  readonly subject: string | undefined;
  /** The policy that denied the call. */
  readonly deniedBy: string | undefined;
}

/** Anything that a method throws beside GatewayErrors is unexpected: its cause is for the log alone. */
export function judgeThrown(
  thrown: unknown,
  { method, subject = '', deniedBy }: ThrownBy,
  isAborted: () => boolean,
): Outcome {
  if (thrown instanceof InputRequired) return { kind: 'asked' };
  if (deniedBy !== undefined) {
    return { kind: 'denied', by: deniedBy, error: toGatewayError(thrown) };
  }
  if (thrown instanceof GatewayError) return { kind: 'failure', error: thrown };
  // The client has cancelled the call, and most tools throw when they are told.
  if (isAborted()) return toFailure('request_cancelled', { facts: getStackFacts(thrown) });
  if (method?.item?.kind !== 'tool') {
    return toFailure('method_failed', { cause: thrown, facts: getStackFacts(thrown) });
  }
  if (isToolError(thrown)) {
    return { kind: 'tool_error', result: { result: toErrorResult(readFailure(thrown)) } };
  }
  // The message may have secrets, such as an address with a password: it is for the log alone.
  const reference = generateReference();
  return toFailure('tool_failed', {
    details: `${subject} failed; reference ${reference}.`,
    cause: thrown,
    facts: { ...getStackFacts(thrown), reference },
  });
}

const toFailure = (...error: ConstructorParameters<typeof GatewayError>): Outcome => ({
  kind: 'failure',
  error: new GatewayError(...error),
});

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
  if ('result' in outcome) return showOrFail(outcome.result, showResult);
  const { error } = outcome;
  const text = hasFailureResults ? findFailureText(error) : undefined;
  if (text === undefined) return { error };
  const result = showResult({ result: toErrorResult(text) });
  // A mistake of the caller is no failure of the gateway's.
  return error.key === 'tool_failed' ? { result, failure: error } : { result };
}

/** Not every catalogue checks what it returns. */
function showOrFail(result: MethodResult, showResult: (result: MethodResult) => object): Answer {
  try {
    return { result: showResult(result) };
  } catch (cause) {
    return { error: new GatewayError('method_failed', { cause, facts: getStackFacts(cause) }) };
  }
}

function findFailureText({ key, message }: GatewayError): string | undefined {
  if (key === 'tool_failed') return message;
  if (key !== 'invalid_tool_input') return undefined;
  return `${catalogue.invalid_tool_input.details}\n${message}`;
}

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
export type McpResponse = JsonResponse | StreamResponse | AcceptedResponse;

/** Said of its session by a reply; nothing in the stateless era. */
export interface SessionInfo {
  /** Set for a session that was just made. */
  readonly sessionId?: string;
  /** ISO 8601. */
  readonly expiresAt?: string;
}

interface JsonResponse {
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

interface AcceptedResponse {
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
interface RenderedResponse {
  readonly text: string;
  readonly error?: GatewayError;
}

/** A result that JSON cannot say is a failure of its method. */
export function renderResponse(answer: Answer, id: RequestId | null): RenderedResponse {
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
    const error = new GatewayError('method_failed', { cause, facts: getStackFacts(cause) });
    return renderResponse({ error }, id);
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
