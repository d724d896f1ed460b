// What clients answer to our questions, read without trust.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isObject } from '../../../core/json.ts';
import type { Answers, ClientRequest, ClientRequests } from './client-requests.ts';
import { problemBy } from './define/schema.ts';

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
      return isSample(answer) ? undefined : 'must have a role, a model and a content';
    case 'roots/list':
      return isRoots(answer) ? undefined : 'must have a list of roots, each with a uri';
  }
}

type Fields = Readonly<Record<string, unknown>>;

function formProblem(schema: object, { action, content }: Fields): string | undefined {
  if (action === 'decline' || action === 'cancel') return undefined;
  if (action !== 'accept') return 'must have the action accept, decline or cancel';
  return problemBy(schema, 'content', content);
}

const isSample = ({ role, model, content }: Fields): boolean =>
  (role === 'user' || role === 'assistant') &&
  typeof model === 'string' &&
  (isObject(content) || Array.isArray(content));

const isRoots = ({ roots }: Fields): boolean =>
  Array.isArray(roots) &&
  roots.every((root) => isObject(root) && typeof root.uri === 'string' && isText(root.name));

const isText = (name: unknown): boolean => name === undefined || typeof name === 'string';
