// Requests of a server that wait for their answers, which it may cancel (MCP "Cancellation").
import { type Cancellation, createCancellation } from '../../platform/cancellation.ts';
import type { JsonObject } from '../../platform/json.ts';
import { answerRequest } from '../messages/answer-request.ts';
import type { ServerRequest } from '../messages/server-message.ts';
import type { UpstreamRequest } from '../upstream.ts';

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
      const cancellation = createCancellation();
      open.set(id, cancellation);
      const response = await answerRequest(question, onRequest, cancellation.signal);
      if (open.get(id) === cancellation) open.delete(id);
      return cancellation.signal.aborted ? undefined : response;
    },
    cancel(id) {
      const cancellation = open.get(id);
      open.delete(id);
      cancellation?.abort();
    },
  };
}
