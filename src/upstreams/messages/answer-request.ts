// MCP "Elicitation", "Sampling", "Roots", "Ping": a server's request, answered by whoever can.
import type { CancelSignal } from '../../platform/cancellation.ts';
import type { JsonObject } from '../../platform/json.ts';
import { UpstreamError, type UpstreamRequest } from '../upstream.ts';
import type { ServerRequest } from './server-message.ts';

const ASKING_METHODS: readonly string[] = [
  'elicitation/create',
  'sampling/createMessage',
  'roots/list',
];

/** What only a client can answer. */
export const isQuestion = ({ method }: ServerRequest): boolean => ASKING_METHODS.includes(method);

const METHOD_NOT_FOUND = -32601;
const INTERNAL_ERROR = -32603;

/** The whole JSON-RPC response. Never rejects. */
export async function answerRequest(
  request: ServerRequest,
  onRequest: UpstreamRequest['onRequest'],
  signal: CancelSignal,
): Promise<JsonObject> {
  const { id, method, params } = request;
  if (method === 'ping') return { jsonrpc: '2.0', id, result: {} };
  if (onRequest === undefined || !isQuestion(request)) {
    const error = { code: METHOD_NOT_FOUND, message: 'This client does not answer such requests' };
    return { jsonrpc: '2.0', id, error };
  }
  try {
    return { jsonrpc: '2.0', id, result: await onRequest({ method, params }, signal) };
  } catch (thrown) {
    return { jsonrpc: '2.0', id, error: toErrorObject(thrown) };
  }
}

/** What the client itself answered, where it did; anything else is not for the server. */
function toErrorObject(thrown: unknown) {
  const told = thrown instanceof UpstreamError ? thrown.jsonRpcError : undefined;
  return told ?? { code: INTERNAL_ERROR, message: 'The client could not be asked' };
}
