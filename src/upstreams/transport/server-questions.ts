// Requests of a server that wait for their answers, which it may cancel (MCP "Cancellation").
import { Cancellation, type CancelSignal } from '../../platform/cancellation.ts';
import type { JsonObject } from '../../platform/json.ts';
import { toRawJson } from '../../platform/noted-json.ts';
import type { ServerRequest } from '../messages/server-message.ts';
import { UpstreamError, type UpstreamRequest } from '../upstream.ts';

export interface ServerQuestions {
  readonly size: number;
  /** The whole response; undefined where the server no longer wants one. Never rejects. */
  answer(
    question: ServerRequest,
    onRequest: UpstreamRequest['onRequest'],
  ): Promise<JsonObject | undefined>;
  /** The server no longer wants an answer. */
  cancel(id: unknown): void;
}

/** Of one session, or of one process: ids are its own. */
export function createServerQuestions(): ServerQuestions {
  const open = new Map<unknown, Cancellation>();

  return {
    get size() {
      return open.size;
    },
    async answer(question, onRequest) {
      const { id } = question;
      const cancellation = new Cancellation();
      open.set(id, cancellation);
      const response = await answerRequest(question, onRequest, cancellation);
      if (open.get(id) === cancellation) open.delete(id);
      return cancellation.aborted ? undefined : response;
    },
    cancel(id) {
      const cancellation = open.get(id);
      open.delete(id);
      cancellation?.abort();
    },
  };
}

// MCP "Elicitation", "Sampling", "Roots", "Ping": a server's request, answered by whoever can.

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
async function answerRequest(
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
    const result = await onRequest({ method, params }, signal);
    return { jsonrpc: '2.0', id, result: toRawJson(result) };
  } catch (thrown) {
    return { jsonrpc: '2.0', id, error: toErrorObject(thrown) };
  }
}

/** What the client itself answered, where it did; anything else is not for the server. */
function toErrorObject(thrown: unknown) {
  const told = thrown instanceof UpstreamError ? thrown.jsonRpcError : undefined;
  return told ?? { code: INTERNAL_ERROR, message: 'The client could not be asked' };
}
