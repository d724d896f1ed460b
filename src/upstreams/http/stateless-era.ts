// Servers of 2026-07-28: each request brings all that it needs.
import type { JsonObject } from '../../platform/json.ts';
import { describeInHeaders, toStatelessParams, traceInHeaders } from '../messages/envelope.ts';
import { routeToRequest } from '../messages/route-notification.ts';
import type { ServerNotification } from '../messages/server-message.ts';
import {
  readSubscriptionChange,
  type SubscriptionMemory,
} from '../transport/subscription-memory.ts';
import type { UpstreamCaller, UpstreamRequest } from '../upstream.ts';
import type { HttpConnection } from './http-connection.ts';
import { type CallOutcome, findError, getResult } from './server-call.ts';

export interface StatelessEra {
  /** Undefined where the server is no longer a stateless one. */
  request(caller: UpstreamCaller, request: UpstreamRequest): Promise<JsonObject | undefined>;
}

export interface StatelessEraDeps {
  readonly connection: HttpConnection;
  readonly subscriptions: SubscriptionMemory;
  readonly timeoutMs: number;
  /** A notification that belongs to no request. */
  onNotification(caller: UpstreamCaller, message: ServerNotification): void;
  /** Asked when an answer is none of this era: the server may have been replaced by an older one. */
  hasChangedEra(caller: UpstreamCaller): Promise<boolean>;
}

export function createStatelessEra(deps: StatelessEraDeps): StatelessEra {
  const { connection, subscriptions, timeoutMs } = deps;

  async function send(
    caller: UpstreamCaller,
    request: UpstreamRequest,
  ): Promise<JsonObject | undefined> {
    const outcome = await connection.call(caller, {
      method: request.method,
      toParams: (id) => toStatelessParams(request, id, caller.capabilities),
      headers: [...describeInHeaders(request), ...traceInHeaders(request)],
      timeoutMs,
      signal: request.signal,
      onNotification(message, id) {
        if (!routeToRequest(message, id, request)) deps.onNotification(caller, message);
      },
    });
    if (isForeign(outcome) && (await deps.hasChangedEra(caller))) return undefined;
    return getResult(outcome);
  }

  return {
    request(caller, request) {
      const change = readSubscriptionChange(caller, request);
      if (change === undefined) return send(caller, request);
      const { sessionId, uri, isWanted } = change;
      // This era has no such requests: the stream of the client's session asks for the resource.
      return subscriptions.change(sessionId, uri, isWanted).then(() => ({}));
    },
  };
}

/** Errors that 2026-07-28 sends with a status of 4xx, and those of JSON-RPC that concern the request. */
const KNOWN_CODES: readonly unknown[] = [-32020, -32021, -32601, -32602, -32603];

const isForeign = (outcome: CallOutcome): boolean =>
  outcome.kind === 'refused' &&
  [400, 404, 405].includes(outcome.status) &&
  !KNOWN_CODES.includes(findError(outcome)?.code);
