// §18.3: requests of a server (session era): elicitation, sampling and roots are questions to a client.
import type { JsonObject } from '../../platform/json.ts';
import type { RequestId } from '../../protocol/json-rpc.ts';
import type { ServerRequest } from '../messages/server-message.ts';
import { createServerQuestions, isQuestion } from '../transport/server-questions.ts';
import { attribute, type OpenRequest } from './open-requests.ts';

export type Questions = ReturnType<typeof createQuestions>;

export interface QuestionsDeps {
  listOpenRequests(): readonly OpenRequest[];
  /** Whether all calls of the process are of one user, so that a question can be told to belong to one of them. */
  readonly canAsk: boolean;
  /** One was refused because of that. */
  onUnattributed?(method: string): void;
  /** A whole message. */
  send(message: JsonObject): void;
}

/** At once, of one process. */
const MAX_OPEN = 100;

export function createQuestions(deps: QuestionsDeps) {
  const { listOpenRequests, canAsk, send } = deps;
  const open = createServerQuestions();

  const findRequest = (): OpenRequest | undefined =>
    canAsk ? attribute(listOpenRequests(), ({ onRequest }) => onRequest !== undefined) : undefined;

  async function answer(question: ServerRequest): Promise<void> {
    const request = findRequest();
    const resume = request?.deadline.pause();
    const response = await open.answer(question, request?.onRequest);
    resume?.();
    if (response !== undefined) send(response);
  }

  return {
    /** Answers, at some time, whatever it is. */
    receive(question: ServerRequest) {
      if (!canAsk && isQuestion(question)) deps.onUnattributed?.(question.method);
      if (open.size < MAX_OPEN) void answer(question);
      else send(createTooManyError(question.id));
    },
    /** The server no longer wants an answer. */
    cancel: open.cancel,
  };
}

const createTooManyError = (id: RequestId): JsonObject => ({
  jsonrpc: '2.0',
  id,
  error: { code: -32603, message: `At most ${MAX_OPEN} requests may be open.` },
});
