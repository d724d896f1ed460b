// What clients answer to our questions, read without trust.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isObject, type JsonObject } from '../../../core/json.ts';
import type { Answers, ClientRequest, ClientRequests } from '../catalog/client-requests.ts';
import { findSchemaProblem } from './check-question-schema.ts';

/**
 * The answers to all of `requests`, checked.
 *
 * @throws GatewayError `invalid_params` naming the answer that does not fit.
 */
export function readAnswers<Requests extends ClientRequests>(
  requests: Requests,
  received: JsonObject,
): Answers<Requests> {
  const answers = Object.entries(requests).map(([key, request]) => {
    const answer = received[key];
    const problem = findProblem(request, answer);
    if (problem !== undefined) failAnswer(key, problem);
    return [key, answer];
  });
  return Object.fromEntries(answers) as Answers<Requests>;
}

const failAnswer = (key: string, problem: string): never =>
  fail('invalid_params', { details: `The client's answer "${key.slice(0, 100)}" ${problem}` });

function findProblem(request: ClientRequest, answer: unknown): string | undefined {
  if (!isObject(answer)) return 'must be an object';
  switch (request.method) {
    case 'elicitation/create':
      return findFormProblem(request.params.requestedSchema, answer);
    case 'sampling/createMessage':
      return isSample(answer) ? undefined : 'must have a role, a model and a content';
    case 'roots/list':
      return isRoots(answer) ? undefined : 'must have a list of roots, each with a uri';
  }
}

function findFormProblem(schema: object, { action, content }: JsonObject): string | undefined {
  if (action === 'decline' || action === 'cancel') return undefined;
  if (action !== 'accept') return 'must have the action accept, decline or cancel';
  return findSchemaProblem(schema, 'content', content);
}

const isSample = ({ role, model, content }: JsonObject): boolean =>
  (role === 'user' || role === 'assistant') &&
  typeof model === 'string' &&
  (isObject(content) || Array.isArray(content));

const isRoots = ({ roots }: JsonObject): boolean =>
  Array.isArray(roots) &&
  roots.every(
    (root) => isObject(root) && typeof root.uri === 'string' && isOptionalString(root.name),
  );

const isOptionalString = (value: unknown): boolean =>
  value === undefined || typeof value === 'string';
