// §26: completions: what is asked for, and the values that come.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import { isObject, isStringArray } from '../../platform/json.ts';
import type { Completion, CompletionRequest } from '../catalog/catalog.ts';
import type { CallerContext, ServedCompletion } from '../catalog/served-catalog.ts';
import type { GuardedItem, Guards } from './guards.ts';
import { findCompletionProblem } from './guards.ts';

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
  const value = await completing.then(({ meta: _, ...said }) => ({ completion: said }), readError);
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
function readError(thrown: unknown): { readonly error: unknown } {
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
