// §26.3: what a guard puts in place of a message has to be one: what is wrong with it, as the rest of a sentence.

import { isObject, type JsonObject } from '../../platform/json.ts';
import type { GuardPoint } from '../../policy/guards/guards.ts';
import type { ItemKind } from '../../protocol/list-kinds.ts';

type FindProblem = (value: JsonObject) => string | undefined;

const isText = (value: unknown): boolean => typeof value === 'string';
const isListOf =
  (isItem: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    Array.isArray(value) && value.every(isItem);

/** MCP "Content": further members, and types that nobody knows yet, are its author's matter. */
const isContent = (value: unknown): boolean => isObject(value) && isText(value.type);
const isMessage = (value: unknown): boolean =>
  isObject(value) &&
  isText(value.role) &&
  (isContent(value.content) || isListOf(isContent)(value.content));
const isResourceContent = (value: unknown): boolean =>
  isObject(value) && isText(value.uri) && (isText(value.text) || isText(value.blob));

const need =
  (member: string, isRight: (value: unknown) => boolean, what: string): FindProblem =>
  (value) =>
    isRight(value[member]) ? undefined : `${member} must be ${what}`;

const RESULTS: Readonly<Record<ItemKind, FindProblem>> = {
  tool: (value) =>
    need('content', isListOf(isContent), 'a list of content, each with a type')(value) ??
    (value.isError === undefined || typeof value.isError === 'boolean'
      ? undefined
      : 'isError must be true or false'),
  prompt: need('messages', isListOf(isMessage), 'a list of messages, each with a role and content'),
  resource: need(
    'contents',
    isListOf(isResourceContent),
    'a list, each with a uri and a text or blob',
  ),
};

/** Of a result, or of `{"error": …}`. */
export function findResultProblem(kind: ItemKind, value: unknown): string | undefined {
  if (!isObject(value)) return NO_OBJECT;
  return 'error' in value ? findErrorProblem(value.error) : RESULTS[kind](value);
}

const NO_OBJECT = 'it must be an object';

function findErrorProblem(error: unknown): string | undefined {
  return isObject(error) && Number.isInteger(error.code) && isText(error.message)
    ? undefined
    : 'error must have a code and a message';
}

export const findCompletionProblem = (value: unknown): string | undefined => {
  if (!isObject(value)) return NO_OBJECT;
  if ('error' in value) return findErrorProblem(value.error);
  return isObject(value.completion) && isListOf(isText)(value.completion.values)
    ? undefined
    : 'completion must have a list of values';
};

/** MCP "Elicitation", "Sampling", "Roots". */
const ASKED: Readonly<Partial<Record<GuardPoint, FindProblem>>> = {
  elicitation: (value) =>
    isText(value.message) && (isObject(value.requestedSchema) || isText(value.url))
      ? undefined
      : 'it must have a message, and a requestedSchema or url',
  'elicitation/result': need(
    'action',
    (action) => action === 'accept' || action === 'decline' || action === 'cancel',
    'accept, decline or cancel',
  ),
  sampling: (value) =>
    isListOf(isMessage)(value.messages) && Number.isInteger(value.maxTokens)
      ? undefined
      : 'it must have messages and maxTokens',
  'sampling/result': (value) =>
    isMessage(value) && isText(value.model)
      ? undefined
      : 'it must have a role, a model and content',
  'roots/result': need(
    'roots',
    isListOf((root) => isObject(root) && isText(root.uri)),
    'a list, each with a uri',
  ),
};

export const findAskedProblem = (point: GuardPoint, value: unknown): string | undefined =>
  isObject(value) ? ASKED[point]?.(value) : NO_OBJECT;
