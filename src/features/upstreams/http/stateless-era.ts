// Servers of 2026-07-28: each request brings all that it needs.
import type { JsonObject } from '../../../core/json.ts';
import { toStatelessParams } from '../messages/envelope.ts';
import { routeToRequest } from '../messages/route-notification.ts';
import type { UpstreamCaller, UpstreamRequest } from '../upstream.ts';
import type { CallOutcome } from './call.ts';
import type { Connection } from './connection.ts';
import { findError, getResult } from './outcome.ts';
import { describeInHeaders, traceInHeaders } from './request-headers.ts';

export interface StatelessEra {
  /** Undefined where the server is no longer a stateless one. */
  request(caller: UpstreamCaller, request: UpstreamRequest): Promise<JsonObject | undefined>;
}

export interface StatelessEraDeps {
  readonly connection: Connection;
  readonly timeoutMs: number;
  /** Asked when an answer is none of this era: the server may have been replaced by an older one. */
  hasChangedEra(caller: UpstreamCaller): Promise<boolean>;
}

export function createStatelessEra({
  connection,
  timeoutMs,
  hasChangedEra,
}: StatelessEraDeps): StatelessEra {
  return {
    async request(caller, request) {
      const outcome = await connection.call(caller, {
        method: request.method,
        toParams: (id) => toStatelessParams(request, id, caller.capabilities),
        headers: [...describeInHeaders(request), ...traceInHeaders(request)],
        timeoutMs,
        signal: request.signal,
        onNotification: (message, id) => routeToRequest(message, id, request),
      });
      if (isForeign(outcome) && (await hasChangedEra(caller))) return undefined;
      return getResult(outcome);
    },
  };
}

/** Errors that 2026-07-28 sends with a status of 4xx, and those of JSON-RPC that concern the request. */
const KNOWN_CODES: readonly unknown[] = [-32020, -32021, -32601, -32602, -32603];

const isForeign = (outcome: CallOutcome): boolean =>
  outcome.kind === 'refused' &&
  [400, 404, 405].includes(outcome.status) &&
  !KNOWN_CODES.includes(findError(outcome)?.code);
