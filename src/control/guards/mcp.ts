// §26.2: guards that are MCP servers in the file, by their interceptors (SEP-2624).

import { freeText } from '../../config/file/shapes/scalar.ts';
import { defineMember } from '../../config/file/shapes/shape.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { readExact } from '../../platform/noted-json.ts';
import {
  type AskedMessage,
  type AskGuard,
  createGuardLine,
  GuardFailure,
  PASS,
  toSentText,
} from './ask-guard.ts';
import {
  DEFAULT_TIMEOUT_MS,
  defineGuard,
  findServerProblem,
  type GuardHost,
  timeout,
  version,
} from './define-guard.ts';
import { nameEvent, readAnswer, readInterceptorPayload, toInvocation } from './sep-2624.ts';

export interface McpUse {
  readonly kind: 'mcp';
  /** A server in the file. */
  readonly server: string;
  /** The interceptors to use; undefined for all that match the guard's points. */
  readonly interceptor: string | undefined;
  readonly timeoutMs: number;
}

const naming = defineMember(
  'mcp',
  freeText(),
  'The name of an MCP server of this file that has interceptors. Clients do not see it.',
);

const interceptor = defineMember(
  'interceptor',
  freeText(),
  'With mcp: the interceptor to use. Without it, all that check the same messages.',
);

export const mcpGuard = defineGuard<McpUse>({
  kind: 'mcp',
  naming,
  members: [interceptor, timeout, version],
  read({ read }) {
    read(version);
    const timeoutMs = read(timeout) ?? DEFAULT_TIMEOUT_MS;
    const server = read(naming);
    const named = read(interceptor);
    return server === undefined
      ? undefined
      : { kind: 'mcp', server, interceptor: named, timeoutMs };
  },
  bind: (use) => ({
    describe: () => `mcp ${use.server}`,
    complete(servers, _files, report) {
      const problem = findServerProblem('use.mcp', use.server, servers);
      if (problem !== undefined) report(problem);
      const personalBy = servers.find(({ name }) => name === use.server)?.personalBy;
      if (personalBy !== undefined) report(`use.mcp: ${use.server} ${PERSONAL[personalBy]}`);
      return use;
    },
    open: (host) => createMcpGuard(host, use),
  }),
});

/** The gateway itself asks: without a user's token or process. */
const PERSONAL = {
  auth: 'learns who calls ("auth"), but a guard is called by the gateway itself. Give it "headers" instead of "auth".',
  isolation:
    'has separate processes for each user or session, but a guard is called by the gateway itself. Give it "isolation": "shared".',
} as const;

/** Time to live of the list of interceptors. */
const LIST_MS = 60_000;
const MAX_PAGES = 20;

function createMcpGuard({ clock, askServer }: GuardHost, config: McpUse): AskGuard {
  const { server, interceptor: wanted, timeoutMs } = config;
  const runInTurn = createGuardLine();
  let listing: { readonly at: number; readonly all: Promise<readonly Interceptor[]> } | undefined;

  async function request(
    method: string,
    params: JsonObject,
    signal: CancelSignal | undefined,
    traceparent?: string,
  ) {
    try {
      return await askServer(server, { method, params, signal, timeoutMs, traceparent });
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'it gave no answer';
      throw new GuardFailure(`${method} failed: ${reason}`, { cause: error });
    }
  }

  async function fetchAll(): Promise<readonly Interceptor[]> {
    const all: Interceptor[] = [];
    let cursor: unknown;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const params = typeof cursor === 'string' ? { cursor } : {};
      const result = await request('interceptors/list', params, undefined);
      const { interceptors, nextCursor } = result;
      if (!Array.isArray(interceptors)) throw new GuardFailure('it lists no interceptors');
      all.push(...interceptors.map(readInterceptor));
      cursor = nextCursor;
      if (typeof cursor !== 'string') return all;
    }
    throw new GuardFailure(`it lists its interceptors on more than ${MAX_PAGES} pages`);
  }

  function listAll(): Promise<readonly Interceptor[]> {
    const now = clock.monotonic();
    if (listing !== undefined && now - listing.at < LIST_MS) return listing.all;
    const next = { at: now, all: fetchAll() };
    listing = next;
    next.all.catch(() => {
      if (listing === next) listing = undefined;
    });
    return next.all;
  }

  async function select(event: string, phase: AskedMessage['phase']) {
    const all = await listAll();
    const chosen =
      wanted === undefined
        ? selectInterceptors(all, event, phase)
        : all.filter(({ name }) => name === wanted);
    if (chosen.length > 0) return chosen;
    // Fails closed: a guard without interceptors would pass everything, unnoticed.
    throw new GuardFailure(`it has no interceptor ${wanted ?? `for ${event} (${phase})`}`);
  }

  /** In sequence: each sees the value as changed by the ones before. */
  return async function askInterceptors(message, turn) {
    const { method, phase, traceparent } = message;
    let { value } = message;
    let isChanged = false;
    for (const { name, isAudit } of await select(nameEvent(method, value), phase)) {
      const current = { ...message, value };
      const params = toInvocation(current, name, timeoutMs, clock.now());
      toSentText(params);
      const answer = await runInTurn(
        () => request('interceptor/invoke', params, turn.signal, traceparent),
        turn,
      );
      const decision = readInterceptorPayload(readAnswer(readExact(answer)), current);
      if (isAudit || decision.kind === 'pass') continue;
      if (decision.kind === 'refuse') return decision;
      value = decision.value;
      isChanged = true;
    }
    return isChanged ? { kind: 'change', value } : PASS;
  };
}

// SEP-2624 "Interceptor Discovery": the interceptors of a server.

interface Interceptor {
  readonly name: string;
  readonly type: 'validation' | 'mutation';
  readonly hooks: readonly { readonly events: readonly string[]; readonly phase: string }[];
  /** Its answers have no effect. */
  readonly isAudit: boolean;
  /** A number, or one for each phase. */
  readonly priorityHint: unknown;
}

/** Fails closed: an invalid interceptor could be one that refuses. */
function readInterceptor(value: unknown): Interceptor {
  const { name, type, hook, hooks, mode, priorityHint } = isObject(value) ? value : {};
  if (typeof name !== 'string' || (type !== 'validation' && type !== 'mutation'))
    throw new GuardFailure('it lists an interceptor without a name, or of an unknown type');
  const given = Array.isArray(hooks) ? hooks : [hook];
  return {
    name,
    type,
    hooks: given.flatMap((one: unknown) => {
      const { events, phase } = isObject(one) ? one : {};
      const names = Array.isArray(events) ? events.filter((it) => typeof it === 'string') : [];
      return typeof phase === 'string' ? [{ events: names, phase }] : [];
    }),
    isAudit: mode === 'audit',
    priorityHint,
  };
}

function readPriority({ priorityHint: hint }: Interceptor, phase: string) {
  const given = isObject(hint) ? hint[phase] : hint;
  return typeof given === 'number' ? given : 0;
}

/**
 * The interceptors of the event, in order. SEP-2624 "Execution Model": sent messages are changed, then validated; received ones are
 * validated first.
 */
function selectInterceptors(
  interceptors: readonly Interceptor[],
  event: string,
  phase: 'request' | 'response',
): readonly Interceptor[] {
  const names = ['*', event, `*/${phase}`];
  const chosen = interceptors.filter(({ hooks }) =>
    hooks.some(
      (hook) =>
        (hook.phase === 'both' || hook.phase === phase) &&
        hook.events.some((one) => names.includes(one)),
    ),
  );
  const mutators = chosen
    .filter(({ type }) => type === 'mutation')
    .sort((a, b) => readPriority(a, phase) - readPriority(b, phase) || (a.name < b.name ? -1 : 1));
  const validators = chosen.filter(({ type }) => type === 'validation');
  return phase === 'request' ? [...mutators, ...validators] : [...validators, ...mutators];
}
