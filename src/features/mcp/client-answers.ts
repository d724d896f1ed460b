// What clients answer to our questions, read without trust.
import { fail } from '../../core/errors/gateway-error.ts';
import type { Answers, ClientRequest, ClientRequests } from './client-requests.ts';
import { checkOnce } from './define/schema.ts';
import { isObject } from './json-rpc.ts';

/**
 * The answers to all of `requests`, checked.
 *
 * @throws GatewayError `invalid_params` naming the answer that does not fit.
 */
export function readAnswers<Requests extends ClientRequests>(
  requests: Requests,
  given: Readonly<Record<string, unknown>>,
): Answers<Requests> {
  const answers = Object.entries(requests).map(([key, request]) => {
    const answer = given[key];
    const problem = problemOf(request, answer);
    if (problem !== undefined) refuse(key, problem);
    return [key, answer];
  });
  return Object.fromEntries(answers) as Answers<Requests>;
}

const refuse = (key: string, problem: string): never =>
  fail('invalid_params', { details: `The client's answer "${key.slice(0, 100)}" ${problem}` });

function problemOf(request: ClientRequest, answer: unknown): string | undefined {
  if (!isObject(answer)) return 'must be an object';
  switch (request.method) {
    case 'elicitation/create':
      return formProblem(request.params.requestedSchema, answer);
    case 'sampling/createMessage':
      return isObject(answer.content) || Array.isArray(answer.content)
        ? undefined
        : 'must have a content';
    case 'roots/list':
      return Array.isArray(answer.roots) ? undefined : 'must have a list of roots';
  }
}

function formProblem(
  schema: object,
  { action, content }: Readonly<Record<string, unknown>>,
): string | undefined {
  if (action === 'decline' || action === 'cancel') return undefined;
  if (action !== 'accept') return 'must have the action accept, decline or cancel';
  return checkOnce('content', schema, content);
}
