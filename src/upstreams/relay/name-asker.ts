// §18.3: a client shows its user the message of an elicitation, and knows of one server only, the gateway: so the
// message says which of the servers behind it asks.
import type { JsonObject } from '../../platform/json.ts';
import type { UpstreamQuestion } from '../upstream.ts';

export const nameAsker = (server: string, question: UpstreamQuestion): UpstreamQuestion =>
  question.method === 'elicitation/create'
    ? { ...question, params: nameAskerInMessage(server, question.params) }
    : question;

/** Of params of an elicitation. */
export const nameAskerInMessage = (server: string, params: JsonObject): JsonObject => ({
  ...params,
  message:
    typeof params.message === 'string' ? `${server} asks: ${params.message}` : `${server} asks.`,
});
