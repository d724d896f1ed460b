// §18.3: requests of a server (session era): elicitation, sampling and roots are questions to a client.
import type { JsonRpcErrorObject } from '../../../core/errors/gateway-error.ts';
import type { JsonObject } from '../../../core/json.ts';
import type { RequestId } from '../../mcp/protocol/json-rpc.ts';
import type { ServerRequest } from '../messages/server-message.ts';
import { UpstreamError } from '../upstream.ts';
import { attribute } from './attribution.ts';
import type { Call } from './calls.ts';

export interface Questions {
  /** Answers, at some time, whatever it is. */
  receive(question: ServerRequest): void;
  /** The server no longer wants an answer. */
  cancel(id: unknown): void;
}

export interface QuestionsDeps {
  listCalls(): readonly Call[];
  /** Whether all calls of the process are of one user, so that a question can be told to belong to one of them. */
  readonly canAsk: boolean;
  send(message: JsonObject): void;
}

/** At once, of one process. */
const MAX_OPEN = 100;

const METHOD_NOT_FOUND = -32601;
const INTERNAL_ERROR = -32603;

export function createQuestions({ listCalls, canAsk, send }: QuestionsDeps): Questions {
  const open = new Set<RequestId>();

  const refuse = (id: RequestId, code: number, message: string): void =>
    send({ id, error: { code, message } });

  async function answer({ id, method, params }: ServerRequest, call: Call): Promise<void> {
    open.add(id);
    const resume = call.deadline.pause();
    let members: JsonObject;
    try {
      const result = await call.onRequest?.({ method, params });
      members = { result };
    } catch (error) {
      members = { error: toErrorObject(error) };
    }
    resume();
    if (open.delete(id)) send({ id, ...members });
  }

  return {
    receive(question) {
      const { id, method } = question;
      if (method === 'ping') return send({ id, result: {} });
      if (!canAsk) return refuse(id, METHOD_NOT_FOUND, `${method} is not offered here.`);
      if (open.has(id) || open.size >= MAX_OPEN) {
        return refuse(id, INTERNAL_ERROR, 'Too many questions are open, or this one is already.');
      }
      const call = attribute(listCalls(), ({ onRequest }) => onRequest !== undefined);
      if (call === undefined) {
        return refuse(id, INTERNAL_ERROR, 'It cannot be told which call this belongs to.');
      }
      void answer(question, call);
    },
    cancel: (id) => void (isRequestId(id) && open.delete(id)),
  };
}

const isRequestId = (id: unknown): id is RequestId =>
  typeof id === 'string' || typeof id === 'number';

/** What the client answered; anything else is no business of the server. */
const toErrorObject = (error: unknown): JsonRpcErrorObject =>
  (error instanceof UpstreamError ? error.jsonRpcError : undefined) ?? {
    code: INTERNAL_ERROR,
    message: 'The client did not answer.',
  };
