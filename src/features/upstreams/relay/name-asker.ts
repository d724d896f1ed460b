// §18.3: a client shows its user the message of an elicitation, and knows of one server only, the gateway: so the
// message says which of the servers behind it asks.
import type { UpstreamQuestion } from '../upstream.ts';

export const nameAsker = (server: string, question: UpstreamQuestion): UpstreamQuestion =>
  question.method === 'elicitation/create'
    ? { ...question, params: { ...question.params, message: toMessage(server, question.params) } }
    : question;

const toMessage = (server: string, { message }: UpstreamQuestion['params']): string =>
  typeof message === 'string' ? `${server} asks: ${message}` : `${server} asks.`;
