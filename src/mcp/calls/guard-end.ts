// §26: how a call ended, before anybody hears of it: its result, or the error of a server in its place.

import { fail, GatewayError, type JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import { parseExactJson } from '../../platform/exact-json.ts';
import {
  findWritten,
  hasRepeatedNames,
  isObject,
  isStringArray,
  type JsonObject,
  noteWritten,
} from '../../platform/json.ts';
import { findText, readExact, toNoted } from '../../platform/noted-json.ts';
import type { Completion, CompletionRequest } from '../catalog/catalog.ts';
import { isToolError, readFailure } from '../catalog/define/tool.ts';
import type { CallerContext, ServedCompletion, Target } from '../catalog/served-catalog.ts';
import type { ItemKind } from '../protocol/list-kinds.ts';
import { URL_REQUIRED } from './client-answers.ts';
import type { CallContext } from './context.ts';
import {
  findAskedProblem,
  findCompletionProblem,
  findResultProblem,
  type Guard,
  type GuardedItem,
  type GuardedMessage,
  type Guards,
  passGuard,
} from './guards.ts';
import { toErrorResult } from './outcome.ts';

interface GuardedEnd {
  readonly after: Guard | undefined;
  readonly asked: Guard | undefined;
  readonly target: Target;
  readonly message: Pick<GuardedMessage, 'caller' | 'signal'>;
  readonly context: Pick<CallContext, 'isAsking' | 'task'>;
}

/** The message of a failed tool of an author is a result like any other. @throws what was thrown otherwise. */
export function toToolError(kind: ItemKind, thrown: unknown): object {
  if (kind !== 'tool' || !isToolError(thrown)) throw thrown;
  return toErrorResult(readFailure(thrown));
}

/** @throws CallStopped where a guard refuses it; else what the call throws. */
export async function guardEnd(running: Promise<object>, end: GuardedEnd): Promise<object> {
  let result: object;
  try {
    result = await running;
  } catch (thrown) {
    return guardThrown(thrown, end);
  }
  // The client is asked in place of an answer: nobody hears of this one.
  return end.context.isAsking() || end.after === undefined || isTaskOfServer(end.context, result)
    ? result
    : guardResult(result, end.after, end);
}

/** §29.5: a handle that the gateway wrote. What comes of the task is looked at when its client asks. */
const isTaskOfServer = ({ task }: Pick<CallContext, 'task'>, result: object): boolean =>
  task?.isHandle(result) === true;

async function guardResult(
  given: object,
  after: Guard,
  { target, message }: GuardedEnd,
): Promise<object> {
  const result = toReadInOneWay(given);
  // The time for which a resource may be kept is the gateway's own note.
  const { cache, value } = splitCache(target.item.kind, result);
  const passed = await passGuard(after, {
    value,
    ...message,
    findProblem: (changed) =>
      findResultProblem(target.item.kind, changed) ?? findStructureProblem(target, changed),
  });
  return isObject(passed?.value) ? toShown(passed.value, cache) : result;
}

/** Plain data, of which nothing is noted. */
function splitCache(kind: ItemKind, result: object): { cache?: unknown; value: JsonObject } {
  const { ...exact } = readExact(result);
  if (kind !== 'resource' || !('cache' in result) || result.cache === undefined) {
    return { value: exact };
  }
  const { cache: _, ...value } = exact;
  return { cache: result.cache, value };
}

/** A member that is there twice may be another for who reads the text than for the guard: what is judged is what is written. */
function toReadInOneWay(result: object): object {
  const text = findText(result);
  if (text === undefined || !hasRepeatedNames(text)) return result;
  const exact = parseExactJson(text);
  return toShown(isObject(exact) ? exact : {}, 'cache' in result ? result.cache : undefined);
}

function toShown(exact: JsonObject, cache: unknown): object {
  const shown = toNoted(exact);
  if (cache === undefined) return shown;
  const made = { ...shown, cache };
  const written = findWritten(shown);
  if (written !== undefined) noteWritten(made, written);
  return made;
}

/** A result that says that the tool failed need not be what its schema says. */
const findStructureProblem = (target: Target, changed: unknown): string | undefined =>
  isObject(changed) && changed.isError !== true ? target.findResultProblem?.(changed) : undefined;

/** The error of a server goes to the client as it is. An error of the gateway itself has nothing of a server. */
async function guardThrown(thrown: unknown, end: GuardedEnd): Promise<never> {
  const said = thrown instanceof GatewayError ? thrown.failure.jsonRpc : undefined;
  if (!(thrown instanceof GatewayError) || said === undefined) throw thrown;
  const asked = await guardUrlQuestions(said, end);
  const jsonRpc = end.after === undefined ? asked : await guardError(asked, end.after, end);
  if (jsonRpc === said) throw thrown;
  return fail(thrown.key, { ...thrown.failure, jsonRpc });
}

async function guardError(
  error: JsonRpcErrorObject,
  after: Guard,
  { target, message }: GuardedEnd,
): Promise<JsonRpcErrorObject> {
  const passed = await passGuard(after, {
    value: { error },
    ...message,
    findProblem: (changed) =>
      isObject(changed) && 'error' in changed
        ? findResultProblem(target.item.kind, changed)
        : 'an error cannot become a result',
  });
  return (passed && readError(passed.value)) ?? error;
}

function readError(value: unknown): JsonRpcErrorObject | undefined {
  const { code, message, data } = isObject(value) && isObject(value.error) ? value.error : {};
  if (typeof code !== 'number' || typeof message !== 'string') return undefined;
  return data === undefined ? { code, message } : { code, message, data };
}

// MCP 2025-11-25 "URL Elicitation Required Errors": an error that asks.

async function guardUrlQuestions(
  error: JsonRpcErrorObject,
  { asked, message }: GuardedEnd,
): Promise<JsonRpcErrorObject> {
  const { code, data } = error;
  if (asked === undefined || code !== URL_REQUIRED) return error;
  if (!isObject(data) || !Array.isArray(data.elicitations)) return error;
  const passed: unknown[] = [];
  let isChanged = false;
  for (const question of data.elicitations) {
    const value: JsonObject = isObject(question) ? question : {};
    const findProblem = (changed: unknown) => findAskedProblem('elicitation', changed);
    const replaced = await passGuard(asked, { value, ...message, findProblem });
    passed.push(replaced === undefined ? question : replaced.value);
    isChanged ||= replaced !== undefined;
  }
  return isChanged ? { ...error, data: { ...data, elicitations: passed } } : error;
}

// §26: completions: what is asked for, and the values that come.

/** `complete` gets the request as the guards let it go on. */
export async function guardCompletion(
  guards: Guards | undefined,
  item: GuardedItem,
  completion: CompletionRequest,
  { user, clientId, view, trace, relay }: CallerContext,
  complete: (passed: CompletionRequest) => Promise<ServedCompletion>,
): Promise<ServedCompletion> {
  const before = guards?.find('completion/complete', item);
  const after = guards?.find('completion/result', item);
  const caller = { user, clientId, view, requestId: undefined, trace };
  const { signal } = relay;
  let passed = completion;
  if (before !== undefined) {
    const verdict = await before.judge({
      value: toCompletionParams(completion),
      caller,
      signal,
      findProblem: (given) =>
        readChanged(completion, given) === undefined
          ? 'its argument must have the same name, and a text'
          : undefined,
    });
    if (verdict.kind === 'refused') return refuse(verdict.by, verdict.message);
    const changed = verdict.kind === 'changed' ? readChanged(completion, verdict.value) : undefined;
    passed = changed ?? completion;
  }
  const completing = complete(passed);
  if (after === undefined) return completing;
  // Nothing goes on that the guard does not look at.
  const value = await completing.then(({ meta: _, ...said }) => ({ completion: said }), readThrown);
  const findProblem = findCompletionProblem;
  const verdict = await after.judge({ value, caller, signal, findProblem });
  if (verdict.kind === 'refused') return refuse(verdict.by, verdict.message);
  const next = verdict.kind === 'changed' && isObject(verdict.value) ? verdict.value : value;
  return 'error' in next ? failWith(next.error) : readPassed(next.completion);
}

export const toCompletionParams = ({ ref, argument, known }: CompletionRequest) => ({
  ref,
  argument,
  ...(Object.keys(known).length > 0 && { context: { arguments: known } }),
});

/** The argument's text, and what is known of others. */
function readChanged(
  { ref, argument }: CompletionRequest,
  changed: unknown,
): CompletionRequest | undefined {
  if (!isObject(changed) || !isObject(changed.argument)) return undefined;
  const { name, value } = changed.argument;
  if (name !== argument.name || typeof value !== 'string') return undefined;
  const { arguments: known } = isObject(changed.context) ? changed.context : NO_ARGUMENTS;
  const entries = Object.entries(isObject(known) ? known : {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return { ref, argument: { name: argument.name, value }, known: Object.fromEntries(entries) };
}

const NO_ARGUMENTS = { arguments: undefined };

/** A server's own error. @throws what is of the gateway's own. */
function readThrown(thrown: unknown): { readonly error: unknown } {
  if (thrown instanceof GatewayError && thrown.failure.jsonRpc !== undefined) {
    return { error: thrown.failure.jsonRpc };
  }
  throw thrown;
}

function failWith(error: unknown): never {
  const { code, message, data } = isObject(error) ? error : NO_ERROR;
  return fail('upstream_error', {
    jsonRpc: {
      code: typeof code === 'number' ? code : NO_ERROR.code,
      message: typeof message === 'string' ? message : NO_ERROR.message,
      ...(data !== undefined && { data }),
    },
  });
}

const NO_ERROR = { code: -32603, message: 'Internal error', data: undefined };

function readPassed(value: unknown): Completion {
  const { values, total, hasMore } = isObject(value) ? value : NO_VALUES;
  return {
    values: isStringArray(values) ? values : [],
    ...(typeof total === 'number' && { total }),
    ...(typeof hasMore === 'boolean' && { hasMore }),
  };
}

const NO_VALUES = { values: [], total: undefined, hasMore: undefined };

function refuse(by: string, message: string): never {
  const facts = { deniedBy: `guard:${by}` };
  return fail('upstream_error', { jsonRpc: { code: -32603, message }, facts });
}
