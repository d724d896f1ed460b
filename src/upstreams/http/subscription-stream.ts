// MCP 2026-07-28 "Subscriptions": subscriptions/listen at a server of the stateless era.
import { describeInHeaders, toStatelessParams } from '../messages/envelope.ts';
import type { UpstreamCaller, UpstreamDescription, UpstreamRequest } from '../upstream.ts';
import type { HttpConnection } from './http-connection.ts';
import { type Audience, tellsChanges } from './listeners.ts';
import { type CallOutcome, findError } from './server-call.ts';

export interface SubscriptionStreamDeps {
  readonly connection: HttpConnection;
  readonly describe: (caller: UpstreamCaller) => UpstreamDescription | undefined;
  /** Resources to which a client's session has subscribed. */
  readonly readSubscriptions: (sessionId: string) => Promise<readonly string[]>;
}

/** The longest time that timers know: streams end, but nobody waits for it. */
const NO_TIMEOUT_MS = 2_147_483_647;
const METHOD_NOT_FOUND = -32601;

/** Resolves when the stream has ended: whether it is to be opened again. */
export function createOpenSubscriptionStream(deps: SubscriptionStreamDeps) {
  const { connection, describe } = deps;

  return async function openSubscriptionStream(
    audience: Audience,
    signal: AbortSignal,
    onOpen: () => void,
  ): Promise<'again' | 'never'> {
    const { caller } = audience;
    const { sessionId } = caller;
    const subscribed = sessionId === undefined ? [] : await deps.readSubscriptions(sessionId);
    const uris = [...new Set([...audience.uris, ...subscribed])];
    const notifications = toFilter(describe(caller), uris);
    if (Object.keys(notifications).length === 0 || signal.aborted) return 'never';
    const request: UpstreamRequest = { ...LISTEN, params: { notifications }, signal };
    const outcome = await connection.call(caller, {
      method: request.method,
      toParams: (id) => toStatelessParams(request, id, caller.capabilities),
      headers: describeInHeaders(request),
      timeoutMs: NO_TIMEOUT_MS,
      signal,
      onNotification(message) {
        if (message.method === 'notifications/subscriptions/acknowledged') onOpen();
        else audience.notify(message);
      },
    });
    return isRefusal(outcome) ? 'never' : 'again';
  };
}

const LISTEN = { method: 'subscriptions/listen', trace: {}, logLevel: undefined } as const;

function toFilter(description: UpstreamDescription | undefined, uris: readonly string[]) {
  const hasResources = tellsUpdates(description) && uris.length > 0;
  return {
    ...(tellsChanges(description, 'tools') && { toolsListChanged: true }),
    ...(tellsChanges(description, 'prompts') && { promptsListChanged: true }),
    ...(tellsChanges(description, 'resources') && { resourcesListChanged: true }),
    ...(hasResources && { resourceSubscriptions: uris }),
  };
}

/** Whether the server says when single resources change. */
export const tellsUpdates = (description: UpstreamDescription | undefined): boolean =>
  Object(description?.capabilities.resources).subscribe === true;

const isRefusal = (outcome: CallOutcome): boolean =>
  findError(outcome)?.code === METHOD_NOT_FOUND ||
  (outcome.kind === 'refused' && outcome.status < 500);
