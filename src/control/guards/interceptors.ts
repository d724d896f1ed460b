// §26.2: SEP-2624, the interceptors proposal of MCP: what they are sent.

import { isObject, type JsonObject } from '../../platform/json.ts';
import { type AskedMessage, type Decision, GuardFailure, PASS } from './ask-guard.ts';

/** Params of `interceptor/invoke`. `now` is in epoch milliseconds. */
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
          : { type: 'user', id: user.sub, claims: toClaims(user) },
      ...(traceparent !== undefined && { traceId: traceparent.slice(3, 35), traceparent }),
      timestamp: new Date(now).toISOString(),
      // Beyond the proposal: what a policy of a gateway goes by.
      server,
      ...(name !== undefined && { item: name }),
      ...(view !== undefined && { view }),
      ...(client !== undefined && { clientId: client }),
      ...(requestId !== undefined && { requestId }),
    },
  };
}

function toClaims({ issuer, email, groups }: NonNullable<AskedMessage['user']>): JsonObject {
  return {
    ...(issuer !== undefined && { iss: issuer }),
    ...(email !== undefined && { email }),
    ...(groups !== undefined && { groups }),
  };
}

/** The event of a notification is its own method. */
export const nameEvent = (method: string, value: unknown): string =>
  method === 'notifications' && isObject(value) && typeof value.method === 'string'
    ? value.method
    : method;

/** Lists are asked about item by item: each is sent as a list of one. */
const LIST_MEMBERS: Readonly<Record<string, string>> = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'skills/list': 'skills',
};

function toPayload({ method, value }: AskedMessage): unknown {
  const member = LIST_MEMBERS[method];
  if (member !== undefined) return { [member]: [value] };
  return method === 'notifications' && isObject(value) ? value.params : value;
}

/** Reads what takes the place of the message; a list from which the item was taken away refuses it. */
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
  if (method === 'notifications' && isObject(value)) {
    return { kind: 'change', value: { ...value, params: decision.value } };
  }
  return decision;
}

// SEP-2624 "Interceptor Discovery": which interceptors a server has.

export interface Interceptor {
  readonly name: string;
  readonly type: 'validation' | 'mutation';
  readonly hooks: readonly Hook[];
  /** Its answers change nothing. */
  readonly isAudit: boolean;
  readonly priority: Readonly<Record<'request' | 'response', number>>;
}

interface Hook {
  readonly events: readonly string[];
  readonly phase: string;
}

/** @throws GuardFailure for what is no list of them. */
export function readInterceptors({ interceptors }: JsonObject): readonly Interceptor[] {
  if (!Array.isArray(interceptors)) throw new GuardFailure('it lists no interceptors');
  return interceptors.map(readInterceptor);
}

/** One that cannot be read could be the one that refuses. */
function readInterceptor(value: unknown): Interceptor {
  const { name, type, hook, hooks, mode, priorityHint } = isObject(value) ? value : {};
  if (typeof name !== 'string' || (type !== 'validation' && type !== 'mutation')) {
    throw new GuardFailure(
      'it lists an interceptor without a name, or of a type that is not known',
    );
  }
  const given = Array.isArray(hooks) ? hooks : [hook];
  return {
    name,
    type,
    hooks: given.flatMap(readHook),
    isAudit: mode === 'audit',
    priority: {
      request: readPriority(priorityHint, 'request'),
      response: readPriority(priorityHint, 'response'),
    },
  };
}

function readHook(value: unknown): readonly Hook[] {
  const { events, phase } = isObject(value) ? value : {};
  const names = Array.isArray(events) ? events.filter((one) => typeof one === 'string') : [];
  return typeof phase === 'string' ? [{ events: names, phase }] : [];
}

function readPriority(hint: unknown, phase: 'request' | 'response'): number {
  const given = isObject(hint) ? hint[phase] : hint;
  return typeof given === 'number' ? given : 0;
}

/**
 * Those that look at the event, in their order. SEP-2624 "Execution Model": what is sent is changed, then validated; what is
 * received is validated before it is changed.
 */
export function selectInterceptors(
  interceptors: readonly Interceptor[],
  event: string,
  phase: 'request' | 'response',
): readonly Interceptor[] {
  const chosen = interceptors.filter(({ hooks }) =>
    hooks.some((hook) => looksAt(hook, event, phase)),
  );
  const mutators = chosen
    .filter(({ type }) => type === 'mutation')
    .sort((a, b) => a.priority[phase] - b.priority[phase] || (a.name < b.name ? -1 : 1));
  const validators = chosen.filter(({ type }) => type === 'validation');
  return phase === 'request' ? [...mutators, ...validators] : [...validators, ...mutators];
}

const looksAt = (hook: Hook, event: string, phase: string): boolean =>
  (hook.phase === 'both' || hook.phase === phase) &&
  hook.events.some((one) => one === '*' || one === event || one === `*/${phase}`);

/** Asks several one after the other, each about what the ones before made of it. */
export async function askInTurn<Asked>(
  all: readonly Asked[],
  value: unknown,
  ask: (one: Asked, value: unknown) => Promise<Decision>,
): Promise<Decision> {
  let current = value;
  let isChanged = false;
  for (const one of all) {
    const decision = await ask(one, current);
    if (decision.kind === 'refuse') return decision;
    if (decision.kind === 'pass') continue;
    current = decision.value;
    isChanged = true;
  }
  return isChanged ? { kind: 'change', value: current } : PASS;
}
