// §18.3: what a server may ask a client, and what it is told where there is no answer.
import { GatewayError, type JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import {
  type ClientCapabilities,
  type ClientRequest,
  isQuestionMethod,
  QUESTIONS,
} from '../catalog/client-requests.ts';
import {
  INTERNAL_ERROR,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  UpstreamError,
  type UpstreamQuestion,
} from './upstream.ts';

/** Why this client cannot be asked; undefined where it can. */
export function findQuestionProblem(
  { method, params }: UpstreamQuestion,
  capabilities: ClientCapabilities,
): JsonRpcErrorObject | undefined {
  if (!isQuestionMethod(method)) {
    return { code: METHOD_NOT_FOUND, message: 'Clients of the gateway cannot be asked this.' };
  }
  // MCP 2025-11-25 "Elicitation": a mode that was not declared is invalid params.
  if (method === 'elicitation/create' && params.mode === 'url') {
    return capabilities.elicitationUrl === true
      ? undefined
      : { code: INVALID_PARAMS, message: 'The client did not declare elicitation by URL.' };
  }
  const name = QUESTIONS[method];
  return capabilities[name]
    ? undefined
    : { code: METHOD_NOT_FOUND, message: `The client did not declare ${name}.` };
}

/** The answer to a server whose question cannot be asked. */
export const refuseQuestion = (message: string, code = INTERNAL_ERROR): UpstreamError =>
  new UpstreamError('error', message, { jsonRpcError: { code, message } });

/** The same where the call ended before its client answered: another one may be meant. */
export const refuseAsOver = (message: string): UpstreamError =>
  new UpstreamError('aborted', message, { jsonRpcError: { code: INTERNAL_ERROR, message } });

/** The answer to a server whose question had none. */
export function toQuestionError(thrown: unknown, isCancelled: boolean): UpstreamError {
  if (!(thrown instanceof GatewayError)) return refuseQuestion('The client could not be asked.');
  const isOver = isCancelled || thrown.key === 'request_cancelled';
  return isOver ? refuseAsOver(thrown.message) : refuseQuestion(thrown.message);
}

/** Reads what somebody else wrote as a question; undefined where it is none. */
export function readQuestion(value: unknown): UpstreamQuestion | undefined {
  const { method, params = {} } = isObject(value) ? value : {};
  return typeof method === 'string' && isObject(params) ? { method, params } : undefined;
}

/** Why this is no answer to a question of that kind; undefined where it may be one. */
export const findKindProblem = (
  { method }: Pick<UpstreamQuestion, 'method'>,
  answer: unknown,
): string | undefined =>
  isQuestionMethod(method) && isObject(answer) && IS_ANSWER[method](answer)
    ? undefined
    : `is no answer to ${method}`;

/** By the member that answers to no other question have. */
const IS_ANSWER: Readonly<Record<ClientRequest['method'], (answer: JsonObject) => boolean>> = {
  'elicitation/create': ({ action }) => typeof action === 'string',
  'sampling/createMessage': ({ role }) => typeof role === 'string',
  'roots/list': ({ roots }) => Array.isArray(roots),
};

// §18.3: a client knows of one server only, the gateway. So what it shows its user says which of the servers behind it asks.

export function nameAsker(server: string, question: UpstreamQuestion): UpstreamQuestion {
  const { method, params } = question;
  if (method === 'elicitation/create')
    return { ...question, params: nameAskerInMessage(server, params) };
  if (method !== 'sampling/createMessage') return question;
  // `thisServer` would be the context of all servers behind the gateway.
  const { includeContext: _, ...others } = params;
  return { ...question, params: { ...others, systemPrompt: tell(server, params.systemPrompt) } };
}

/** Takes the params of an elicitation. */
export const nameAskerInMessage = (server: string, params: JsonObject): JsonObject => ({
  ...params,
  message: tell(server, params.message),
});

const tell = (server: string, words: unknown): string =>
  typeof words === 'string' ? `${server} asks: ${words}` : `${server} asks.`;
