// §26: guards of one call: they check its arguments before it runs, and its result, or a server's error instead of the result.

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
import { isToolError, readFailure } from '../catalog/define/tool.ts';
import type { CallerContext, ServedCompletion, Target } from '../catalog/served-catalog.ts';
import { readJsonRpcError } from '../protocol/json-rpc.ts';
import type { ItemKind } from '../protocol/list-kinds.ts';
import { toErrorResult } from './call.ts';
import { URL_REQUIRED } from './client-answers.ts';
import type { CallContext, ItemCall } from './context.ts';
import {
  findAskedProblem,
  findCompletionProblem,
  findErrorProblem,
  findResultProblem,
  type Guard,
  type GuardedItem,
  type GuardedMessage,
  type GuardPoint,
  type Guards,
  passGuard,
  QUESTION_POINTS,
  rethrowStopped,
} from './guards.ts';
import { readKnownArguments } from './methods.ts';

const POINTS = {
  tool: { request: 'tools/call', result: 'tools/result' },
  prompt: { request: 'prompts/get', result: 'prompts/result' },
  resource: { request: 'resources/read', result: 'resources/result' },
} as const satisfies Readonly<
  Record<ItemKind, { readonly request: GuardPoint; readonly result: GuardPoint }>
>;

/** The guards for the calls of one target; undefined if none checks them. */
export function findCallGuards(guards: Guards, { item }: Target) {
  const { request, result } = POINTS[item.kind];
  const before = guards.find(request, item);
  const after = guards.find(result, item);
  /** Checks errors that send the user to a URL. */
  const elicitation = guards.find('elicitation', item);
  const isLookedAt = before !== undefined || after !== undefined || elicitation !== undefined;
  return isLookedAt || WHILE_IT_RUNS.some((point) => guards.find(point, item) !== undefined)
    ? { before, after, elicitation }
    : undefined;
}

const WHILE_IT_RUNS: readonly GuardPoint[] = [
  'notifications',
  ...QUESTION_POINTS.filter((point) => point !== 'elicitation'),
];

/** True if the guard changed arguments or `_meta`. @throws CallStopped if it refuses. */
export async function guardArguments(item: ItemCall, guard: Guard): Promise<boolean> {
  const { target, args, context, record } = item;
  const { meta, signal } = context.relay;
  const { name, kind } = target.item;
  // The params of the request, under the name that clients of `/mcp` use.
  const value: JsonObject = {
    ...(kind === 'resource' ? { uri: name } : { name, arguments: readExact(args) }),
    ...(meta && { _meta: readExact(meta) }),
  };
  const passed = await passGuard(guard, {
    value,
    caller: record,
    signal,
    findProblem: (given) => findRequestProblem(target, value, given),
  });
  if (passed === undefined) return false;
  const changed = isObject(passed.value) ? passed.value : value;
  if (isObject(changed.arguments)) item.args = toNoted(changed.arguments);
  item.context = context.withMeta(isObject(changed._meta) ? changed._meta : undefined);
  return true;
}

/** Policies decide what is called: a guard may only change the arguments. */
function findRequestProblem(
  target: Target,
  { name, uri, _meta: meta }: JsonObject,
  changed: unknown,
) {
  if (!isObject(changed)) return 'it must be an object';
  if (changed.name !== name || changed.uri !== uri) return 'its name or uri is another';
  if (changed._meta !== undefined && !isObject(changed._meta)) return '_meta must be an object';
  if (changed._meta !== undefined && meta === undefined) return 'it had no _meta';
  if (target.item.kind === 'resource') return undefined;
  return isObject(changed.arguments)
    ? target.findProblem?.(changed.arguments)
    : 'arguments must be an object';
}

interface GuardedEnd {
  readonly after: Guard | undefined;
  readonly elicitation: Guard | undefined;
  readonly target: Target;
  readonly message: Pick<GuardedMessage, 'caller' | 'signal'>;
  readonly context: CallContext;
}

/** @throws CallStopped if a guard refuses it; otherwise the call's own error. */
export async function guardEnd(running: Promise<object>, end: GuardedEnd): Promise<object> {
  const { after, target, message, context } = end;
  let given: object;
  try {
    given = await running;
  } catch (thrown) {
    if (target.item.kind !== 'tool' || !isToolError(thrown)) return guardThrown(thrown, end);
    // The message of a failed tool of an author is a result like any other.
    given = toErrorResult(readFailure(thrown));
  }
  // A call that asks the client does not send a result. A task's handle (§29.5) contains nothing from a server: the task's result
  // is guarded when its client requests it.
  if (context.isAsking() || after === undefined || context.task?.isHandle(given)) return given;
  const result = toReadInOneWay(given);
  // How long a resource may be cached is the gateway's own annotation.
  const { cache, value } = splitCache(target.item.kind, result);
  const passed = await passGuard(after, {
    value,
    ...message,
    findProblem: (changed) =>
      findResultProblem(target.item.kind, changed) ??
      // A tool's failure does not have to match the output schema.
      (isObject(changed) && changed.isError !== true
        ? target.findResultProblem?.(changed)
        : undefined),
  });
  return isObject(passed?.value) ? toShown(passed.value, cache) : result;
}

/** Copies the result without its notes, and splits off a resource's cache hint. */
function splitCache(kind: ItemKind, result: object): { cache?: unknown; value: JsonObject } {
  const { ...exact } = readExact(result);
  if (kind !== 'resource' || !('cache' in result) || result.cache === undefined)
    return { value: exact };
  const { cache: _, ...value } = exact;
  return { cache: result.cache, value };
}

/** Parsers differ on repeated members: the text is serialized again, so that its reader gets what the guard has checked. */
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
 * Guards the error of a server, which is passed on unchanged otherwise. Errors of the gateway itself are not guarded.
 *
 * @throws CallStopped if a guard refuses it; otherwise the error to pass on.
 */
export async function guardThrown(
  thrown: unknown,
  { after, elicitation, message }: Pick<GuardedEnd, 'after' | 'elicitation' | 'message'>,
): Promise<never> {
  const said = thrown instanceof GatewayError ? thrown.failure.jsonRpc : undefined;
  if (!(thrown instanceof GatewayError) || said === undefined) throw thrown;
  let jsonRpc =
    elicitation === undefined ? said : await guardUrlQuestions(said, elicitation, message);
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

/** MCP 2025-11-25 "URL Elicitation Required Errors". */
async function guardUrlQuestions(
  error: JsonRpcErrorObject,
  elicitation: Guard,
  message: GuardedEnd['message'],
): Promise<JsonRpcErrorObject> {
  const { code, data } = error;
  if (code !== URL_REQUIRED || !isObject(data) || !Array.isArray(data.elicitations)) return error;
  const passed: unknown[] = [];
  let isChanged = false;
  for (const question of data.elicitations) {
    const value: JsonObject = isObject(question) ? question : {};
    const findProblem = (changed: unknown) => findAskedProblem('elicitation', changed);
    const replaced = await passGuard(elicitation, { value, ...message, findProblem });
    passed.push(replaced === undefined ? question : replaced.value);
    isChanged ||= replaced !== undefined;
  }
  return isChanged ? { ...error, data: { ...data, elicitations: passed } } : error;
}

// §26: completions, their requests and their values.

/** `complete` receives the request as the guards changed it. */
export async function guardCompletion(
  { guards, item, context }: GuardedCompletion,
  completion: CompletionRequest,
  complete: (passed: CompletionRequest) => Promise<ServedCompletion>,
): Promise<ServedCompletion> {
  const { user, clientId, view, trace, relay } = context;
  const before = guards?.find('completion/complete', item);
  const after = guards?.find('completion/result', item);
  const caller = { user, clientId, view, id: undefined, trace };
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
  const elicitation = guards?.find('elicitation', item);
  const completed = await complete(passed).catch((thrown: unknown) =>
    guardThrown(thrown, { after, elicitation, message: { caller, signal } }).catch(rethrowStopped),
  );
  if (after === undefined) return completed;
  // Drops what the guard does not see.
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

interface GuardedCompletion {
  readonly guards: Guards | undefined;
  readonly item: GuardedItem;
  readonly context: CallerContext;
}

export const toCompletionParams = ({ ref, argument, known }: CompletionRequest) => ({
  ref,
  argument,
  ...(Object.keys(known).length > 0 && { context: { arguments: known } }),
});

/** Reads the argument and the known ones; undefined if it is a different argument. */
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
