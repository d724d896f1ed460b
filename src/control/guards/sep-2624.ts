// §26.2: SEP-2624, the interceptors proposal of MCP: requests to guards and their answers.

import { isObject, type JsonObject } from '../../platform/json.ts';
import { type AskedMessage, type Decision, GuardFailure, PASS, readDecision } from './ask-guard.ts';

/** Params of `interceptor/invoke`, which are written without members that are undefined. `now` is in epoch milliseconds. */
export function toInvocation(
  message: AskedMessage,
  interceptor: string,
  timeoutMs: number,
  now: number,
): JsonObject {
  const { method, phase, value, server, name, view, client, requestId, traceparent, user } =
    message;
  return {
    name: interceptor,
    event: nameEvent(method, value),
    phase,
    payload: toPayload(message),
    timeoutMs,
    context: {
      principal:
        user === undefined
          ? { type: 'anonymous' }
          : {
              type: 'user',
              id: user.sub,
              claims: { iss: user.issuer, email: user.email, groups: user.groups },
            },
      traceId: traceparent?.slice(3, 35),
      traceparent,
      timestamp: new Date(now).toISOString(),
      // Beyond the proposal: facts that policies of a gateway need.
      server,
      item: name,
      view,
      clientId: client,
      requestId,
    },
  };
}

/** The event of a notification is its own method. */
export const nameEvent = (method: string, value: unknown): string =>
  method === 'notifications' && isObject(value) && typeof value.method === 'string'
    ? value.method
    : method;

/** Lists are guarded item by item: each is sent as a list of one. */
const LIST_MEMBERS: Readonly<Record<string, string>> = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'skills/list': 'skills',
};

function toPayload({ method, value }: AskedMessage) {
  const member = LIST_MEMBERS[method];
  if (member !== undefined) return { [member]: [value] };
  return method === 'notifications' && isObject(value) ? value.params : value;
}

/** Reads the replacement of the message; an empty list refuses the item. */
export function readInterceptorPayload(
  decision: Decision,
  { method, value }: Pick<AskedMessage, 'method' | 'value'>,
): Decision {
  if (decision.kind !== 'change') return decision;
  const member = LIST_MEMBERS[method];
  if (member !== undefined) {
    const items = isObject(decision.value) ? decision.value[member] : undefined;
    if (!Array.isArray(items)) throw new GuardFailure(`its payload has no ${member}`);
    return items.length === 0
      ? { kind: 'refuse', message: undefined }
      : { kind: 'change', value: items[0] };
  }
  if (method === 'notifications' && isObject(value))
    return { kind: 'change', value: { ...value, params: decision.value } };
  return decision;
}

/** Reads the gateway's own format or SEP-2624. @throws GuardFailure */
export function readAnswer(answer: unknown): Decision {
  if (!isObject(answer) || 'decision' in answer) return readDecision(answer);
  if (typeof answer.valid === 'boolean') return readValidation(answer);
  if (typeof answer.modified === 'boolean') {
    // SEP-2624 "Mutator".
    if (!answer.modified) return PASS;
    if (answer.payload === undefined)
      throw new GuardFailure('it answered "modified" without a payload');
    return { kind: 'change', value: answer.payload };
  }
  throw new GuardFailure('its answer has neither "decision" nor "valid" nor "modified"');
}

/** SEP-2624 "Validator": only errors block. */
function readValidation({ valid, severity = 'error', messages }: JsonObject): Decision {
  if (valid === true || severity === 'warn' || severity === 'info') return PASS;
  const said = Array.isArray(messages) ? messages : [];
  const words = said.flatMap((one: unknown) =>
    isObject(one) && typeof one.message === 'string' && (one.severity ?? 'error') === 'error'
      ? [one.message]
      : [],
  );
  return { kind: 'refuse', message: words.length === 0 ? undefined : words.join(' ') };
}
