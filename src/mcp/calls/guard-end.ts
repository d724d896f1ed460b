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
import type { CompletionRequest } from '../catalog/catalog.ts';
import type { CallerContext, ServedCompletion, Target } from '../catalog/served-catalog.ts';
import { readJsonRpcError } from '../protocol/json-rpc.ts';
import type { ItemKind } from '../protocol/list-kinds.ts';
import { URL_REQUIRED } from './client-answers.ts';
import type { CallContext } from './context.ts';
import {
  findAskedProblem,
  findCompletionProblem,
  findErrorProblem,
  findResultProblem,
  type Guard,
  type GuardedItem,
  type GuardedMessage,
  type Guards,
  passGuard,
  rethrowStopped,
} from './guards.ts';
import { readKnownArguments } from './methods.ts';

interface GuardedEnd {
  readonly after: Guard | undefined;
  readonly asked: Guard | undefined;
  readonly target: Target;
  readonly message: Pick<GuardedMessage, 'caller' | 'signal'>;
  readonly context: CallContext;
}

/** @throws CallStopped where a guard refuses it; else what the call throws. */
export async function guardEnd(running: Promise<object>, end: GuardedEnd): Promise<object> {
  const { after, target, message, context } = end;
  let given: object;
  try {
    given = await running;
  } catch (thrown) {
    return guardThrown(thrown, end);
  }
  // The client is asked in place of an answer: nobody hears of this one. Nor is there anything of a server in the handle of a task
  // (§29.5): what comes of that is looked at when its client asks.
  if (context.isAsking() || after === undefined || context.task?.isHandle(given)) return given;
  const result = toReadInOneWay(given);
  // The time for which a resource may be kept is the gateway's own note.
  const { cache, value } = splitCache(target.item.kind, result);
  const passed = await passGuard(after, {
    value,
    ...message,
    findProblem: (changed) =>
      findResultProblem(target.item.kind, changed) ??
      // A result that says that the tool failed need not be what its schema says.
      (isObject(changed) && changed.isError !== true
        ? target.findResultProblem?.(changed)
        : undefined),
  });
  return isObject(passed?.value) ? toShown(passed.value, cache) : result;
}

/** Plain data, of which nothing is noted. */
function splitCache(kind: ItemKind, result: object): { cache?: unknown; value: JsonObject } {
  const { ...exact } = readExact(result);
  if (kind !== 'resource' || !('cache' in result) || result.cache === undefined)
    return { value: exact };
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

/**
 * The error of a server goes to the client as it is. An error of the gateway itself has nothing of a server.
 *
 * @throws CallStopped where a guard refuses it; else the error, as it goes on.
 */
export async function guardThrown(
  thrown: unknown,
  { after, asked, message }: Pick<GuardedEnd, 'after' | 'asked' | 'message'>,
): Promise<never> {
  const said = thrown instanceof GatewayError ? thrown.failure.jsonRpc : undefined;
  if (!(thrown instanceof GatewayError) || said === undefined) throw thrown;
  let jsonRpc = asked === undefined ? said : await guardUrlQuestions(said, asked, message);
  if (after !== undefined) {
    const passed = await passGuard(after, {
      value: { error: jsonRpc },
      ...message,
      findProblem: (changed) =>
        isObject(changed) && 'error' in changed
          ? findErrorProblem(changed.error)
          : 'an error cannot become a result',
    });
    if (isObject(passed?.value)) jsonRpc = readJsonRpcError(passed.value.error) ?? jsonRpc;
  }
  if (jsonRpc === said) throw thrown;
  return fail(thrown.key, { ...thrown.failure, jsonRpc });
}

// MCP 2025-11-25 "URL Elicitation Required Errors": an error that asks.

async function guardUrlQuestions(
  error: JsonRpcErrorObject,
  asked: Guard,
  message: GuardedEnd['message'],
): Promise<JsonRpcErrorObject> {
  const { code, data } = error;
  if (code !== URL_REQUIRED || !isObject(data) || !Array.isArray(data.elicitations)) return error;
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
    const judged = await passGuard(before, {
      value: toCompletionParams(completion),
      caller,
      signal,
      findProblem: (given) =>
        readChanged(completion, given) === undefined
          ? 'its argument must have the same name, and a text'
          : undefined,
    }).catch(rethrowStopped);
    passed = (judged && readChanged(completion, judged.value)) ?? completion;
  }
  const asked = guards?.find('elicitation', item);
  const completed = await complete(passed).catch((thrown: unknown) =>
    guardThrown(thrown, { after, asked, message: { caller, signal } }).catch(rethrowStopped),
  );
  if (after === undefined) return completed;
  // Nothing goes on that the guard does not look at.
  const { meta: _, ...said } = completed;
  const value: JsonObject = { completion: said };
  const findProblem = findCompletionProblem;
  const judged = await passGuard(after, { value, caller, signal, findProblem }).catch(
    rethrowStopped,
  );
  const next = isObject(judged?.value) ? judged.value : value;
  if ('error' in next)
    fail('upstream_error', { jsonRpc: readJsonRpcError(next.error) ?? NO_ERROR });
  const { values, total, hasMore } = isObject(next.completion) ? next.completion : NO_VALUES;
  return {
    values: isStringArray(values) ? values : [],
    ...(typeof total === 'number' && { total }),
    ...(typeof hasMore === 'boolean' && { hasMore }),
  };
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
  return {
    ref,
    argument: { name: argument.name, value },
    known: readKnownArguments(changed.context),
  };
}

const NO_ERROR = { code: -32603, message: 'Internal error' };

const NO_VALUES = { values: [], total: undefined, hasMore: undefined };
