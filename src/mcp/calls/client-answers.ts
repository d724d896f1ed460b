// Answers of clients to server-initiated requests, parsed without trust; and the request that leads to a page.

import type { Ajv, ValidateFunction } from 'ajv';
import { fail, failParams, GatewayError } from '../../errors/gateway-error.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { createLoader } from '../../platform/load-package.ts';
import type { RelayedSessionClient } from '../catalog/catalog.ts';
import type { Answers, ClientRequests } from '../catalog/client-requests.ts';
import { describeErrors } from '../catalog/define/describe-errors.ts';
import type { Question } from './guards.ts';

/**
 * The validated answers to all of `requests`.
 *
 * @throws GatewayError `invalid_params`, naming the invalid answer.
 */
export function readAnswers<Requests extends ClientRequests>(
  requests: Requests,
  received: JsonObject,
): Answers<Requests> {
  const answers = Object.entries(requests).map(([key, request]) => {
    const answer = received[key];
    const problem = findClientAnswerProblem(request, answer);
    if (problem !== undefined) failParams(`The client's answer "${key.slice(0, 100)}" ${problem}`);
    return [key, answer];
  });
  return Object.fromEntries(answers) as Answers<Requests>;
}

/** The problem of the answer to one request; undefined if it is valid. */
export function findClientAnswerProblem(
  { method, params }: { readonly method: string; readonly params: object },
  answer: unknown,
): string | undefined {
  if (!isObject(answer)) return 'must be an object';
  switch (method) {
    case 'elicitation/create':
      return findFormProblem(params, answer);
    case 'sampling/createMessage':
      return isSample(answer) ? undefined : 'must have a role, a model and a content';
    case 'roots/list':
      return isRoots(answer) ? undefined : 'must have a list of roots, each with a uri';
    default:
      return undefined;
  }
}

function findFormProblem(params: object, { action, content }: JsonObject) {
  if (action === 'decline' || action === 'cancel') return undefined;
  if (action !== 'accept') return 'must have the action accept, decline or cancel';
  const { requestedSchema } = { requestedSchema: {}, ...params };
  const schema = isObject(requestedSchema) ? requestedSchema : {};
  const validate = validators.get(schema) ?? compileQuestionSchema(schema);
  return validate(content)
    ? undefined
    : describeErrors('content', validate.errors ?? []).join('\n');
}

const isSample = ({ role, model, content }: JsonObject) =>
  (role === 'user' || role === 'assistant') &&
  typeof model === 'string' &&
  (isObject(content) || Array.isArray(content));

const isRoots = ({ roots }: JsonObject) =>
  Array.isArray(roots) &&
  roots.every(
    (root) =>
      isObject(root) &&
      typeof root.uri === 'string' &&
      (root.name === undefined || typeof root.name === 'string'),
  );

// JSON Schemas of forms, which tools create while they run. Validators are kept by schema object: one that was created for a single
// form leaves nothing behind.

const loadAjv = createLoader<typeof import('ajv')>('ajv');

const validators = new WeakMap<object, ValidateFunction>();

/** An Ajv instance retains data for each schema, so it is replaced after this many. */
const SCHEMAS_PER_AJV = 100;

let schemasLeft = 0;
let ajv: Ajv | undefined;

function compileQuestionSchema(schema: object): ValidateFunction {
  if (ajv === undefined || schemasLeft === 0) {
    const options = {
      strict: false,
      validateFormats: false,
      logger: false,
      verbose: true,
    } as const;
    ajv = new (loadAjv().Ajv)(options);
    schemasLeft = SCHEMAS_PER_AJV;
  }
  schemasLeft -= 1;
  const validate = ajv.compile(schema);
  // Otherwise the next schema with the same `$id` would be refused.
  ajv.removeSchema(schema);
  validators.set(schema, validate);
  return validate;
}

// MCP "URL mode elicitation": the client leads its user to a page of the gateway.

export const createPageQuestion = (params: {
  readonly elicitationId: string;
  readonly url: string;
  readonly message: string;
}): Question => ({ method: 'elicitation/create', params: { mode: 'url', ...params } });

/** The client's response; undefined if the request cannot reach the client. */
export async function askInSession(
  relay: RelayedSessionClient,
  question: Question,
): Promise<JsonObject | undefined> {
  try {
    const answer = await relay.ask(question);
    return 'result' in answer ? answer.result : NO_ANSWER;
  } catch (thrown) {
    if (relay.signal.aborted || !(thrown instanceof GatewayError)) throw thrown;
    return thrown.key === 'client_cannot_be_asked' ? undefined : NO_ANSWER;
  }
}

/**
 * Resolves to the client's response.
 *
 * @throws GatewayError; MCP 2025-11-25 "URL Elicitation Required Errors" if the request cannot reach the client.
 */
export async function askToOpen(
  relay: RelayedSessionClient,
  question: Question,
): Promise<JsonObject> {
  const { params } = question;
  const jsonRpc = {
    code: URL_REQUIRED,
    message: String(params.message),
    data: { elicitations: [params] },
  };
  return (await askInSession(relay, question)) ?? fail('upstream_error', { jsonRpc });
}

export const URL_REQUIRED = -32042;

/** As if the user had closed the form. */
export const NO_ANSWER = { action: 'cancel' } as const;
