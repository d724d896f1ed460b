// §26.2: interceptors of an MCP server behind the gateway (SEP-2624).

import type { CancelSignal } from '../../platform/cancellation.ts';
import type { JsonObject } from '../../platform/json.ts';
import { readExact } from '../../platform/noted-json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { AskedMessage } from './asked-message.ts';
import { type Decision, GuardFailure, PASS, readAnswer } from './decision.ts';
import type { McpGuardConfig } from './guard-config.ts';
import { createGuardLine, toSentText } from './guard-line.ts';
import {
  askInTurn,
  type Interceptor,
  nameEvent,
  readInterceptors,
  readPayload,
  selectInterceptors,
  toInvocation,
} from './interceptors.ts';
import type { AskGuard } from './run-guard.ts';

/**
 * Sends a request to a server of the file, on behalf of the gateway itself.
 *
 * @throws Error whose message says why there is no result, without what was sent.
 */
export type AskServer = (
  server: string,
  request: {
    readonly method: string;
    readonly params: JsonObject;
    readonly signal: CancelSignal | undefined;
    readonly timeoutMs: number;
    readonly traceparent: string | undefined;
  },
) => Promise<JsonObject>;

/** How long a list of interceptors is gone by. */
const LIST_MS = 60_000;
const MAX_PAGES = 20;

export function createMcpGuard(
  { clock }: Pick<Runtime, 'clock'>,
  config: McpGuardConfig,
  askServer: AskServer,
): AskGuard {
  const { server, interceptor: wanted, timeoutMs } = config;
  const line = createGuardLine();
  let listing: { readonly at: number; readonly all: Promise<readonly Interceptor[]> } | undefined;

  async function request(
    method: string,
    params: JsonObject,
    signal: CancelSignal | undefined,
    traceparent?: string,
  ): Promise<JsonObject> {
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
      all.push(...readInterceptors(result));
      cursor = result.nextCursor;
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

  async function findThem(event: string, phase: AskedMessage['phase']) {
    const all = await listAll();
    if (wanted === undefined) {
      const chosen = selectInterceptors(all, event, phase);
      // A guard that looks at nothing would let all pass, and nobody would know.
      if (chosen.length > 0) return chosen;
      throw new GuardFailure(`it has no interceptor for ${event} (${phase})`);
    }
    const chosen = all.filter(({ name }) => name === wanted);
    if (chosen.length === 0) throw new GuardFailure(`it has no interceptor ${wanted}`);
    return chosen;
  }

  async function invoke(
    { name, isAudit }: Interceptor,
    message: AskedMessage,
    { signal, user }: Parameters<AskGuard>[1],
  ): Promise<Decision> {
    const params = toInvocation(message, name, timeoutMs, clock.now());
    toSentText(params);
    const answer = await line.run(
      () => request('interceptor/invoke', params, signal, message.traceparent),
      user,
      signal,
    );
    const decision = readPayload(readAnswer(readExact(answer)), message);
    return isAudit ? PASS : decision;
  }

  return async function askInterceptors(message, asker) {
    const { method, phase, value } = message;
    const chosen = await findThem(nameEvent(method, value), phase);
    return askInTurn(chosen, value, (one, current) =>
      invoke(one, { ...message, value: current }, asker),
    );
  };
}
