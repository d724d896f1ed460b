// §26: completions: what is asked for, and the values that come.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { Completion, CompletionRequest } from '../../mcp/catalog/catalog.ts';
import type { CallerContext, ServedCompletion } from '../../mcp/catalog/served-catalog.ts';
import { findCompletionProblem } from '../../mcp/control/message-guards.ts';
import { isObject, isStringArray } from '../../platform/json.ts';
import type { Guard, GuardedItem, Guards } from '../../policy/guards/guards.ts';

interface CompletionGuards {
  guard(
    completion: CompletionRequest,
    complete: (passed: CompletionRequest) => Promise<ServedCompletion>,
  ): Promise<ServedCompletion>;
}

/** Undefined where no guard looks at completions of this. */
export function createCompletionGuards(
  guards: Guards | undefined,
  item: GuardedItem,
  context: CallerContext,
): CompletionGuards | undefined {
  const before = guards?.find('completion/complete', item);
  const after = guards?.find('completion/result', item);
  if (before === undefined && after === undefined) return undefined;
  const { user, clientId, view, trace, relay } = context;
  const message = {
    caller: { user, clientId, view, requestId: undefined, trace },
    signal: relay.signal,
  };

  async function passRequest(completion: CompletionRequest, guard: Guard) {
    const verdict = await guard.judge({
      value: toParams(completion),
      ...message,
      findProblem: (given) =>
        readChanged(completion, given) === undefined
          ? 'its argument must have the same name, and a text'
          : undefined,
    });
    if (verdict.kind === 'refused') return refuse(verdict.by, verdict.message);
    const changed = verdict.kind === 'changed' ? readChanged(completion, verdict.value) : undefined;
    return changed ?? completion;
  }

  async function passResult(
    completing: Promise<ServedCompletion>,
    guard: Guard,
  ): Promise<ServedCompletion> {
    // What the guard does not look at does not go on.
    const value = await completing.then(
      ({ meta: _, ...completion }) => ({ completion }),
      readError,
    );
    const findProblem = findCompletionProblem;
    const verdict = await guard.judge({ value, ...message, findProblem });
    if (verdict.kind === 'refused') return refuse(verdict.by, verdict.message);
    const next = verdict.kind === 'changed' && isObject(verdict.value) ? verdict.value : value;
    if ('error' in next) return failWith(next.error);
    return readCompletion(next.completion);
  }

  return {
    async guard(completion, complete) {
      const passed = before === undefined ? completion : await passRequest(completion, before);
      return after === undefined ? complete(passed) : passResult(complete(passed), after);
    },
  };
}

const toParams = ({ ref, argument, known }: CompletionRequest) => ({
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
  const { arguments: known } = isObject(changed.context) ? changed.context : NOTHING;
  const entries = Object.entries(isObject(known) ? known : {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return { ref, argument: { name: argument.name, value }, known: Object.fromEntries(entries) };
}

const NOTHING = { arguments: undefined };

/** What a server says of its failure. @throws what is of the gateway's own. */
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

function readCompletion(value: unknown): Completion {
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
