// Servers of 2026-07-28: each request brings all that it needs.

import { toListenParams } from '../../mcp/upstream/description.ts';
import {
  describeInHeaders,
  toStatelessParams,
  traceInHeaders,
} from '../../mcp/upstream/envelope.ts';
import {
  METHOD_NOT_FOUND,
  nameOwnSession,
  type UpstreamCaller,
  type UpstreamRequest,
} from '../../mcp/upstream/upstream.ts';
import type { JsonObject } from '../../platform/json.ts';
import { routeToRequest } from '../messages/server-message.ts';
import { readSubscriptionChange, SUBSCRIBING } from '../transport/session-records.ts';
import { toOutcome } from './attempt.ts';
import type { ServerKnowledge } from './era.ts';
import type { HttpUpstreamConfig } from './http-config.ts';
import type { HttpConnection } from './http-connection.ts';
import type { Audience } from './listeners.ts';
import { type CallOutcome, findError, getResult } from './server-call.ts';
import type { SendAnew } from './session-sending.ts';

/** The longest time that timers know: streams end, but nobody waits for it. */
const NO_TIMEOUT_MS = 2_147_483_647;

export function speakStatelessEra(
  { timeoutMs }: HttpUpstreamConfig,
  connection: HttpConnection,
  { era, descriptions, listeners, subscriptions }: ServerKnowledge,
) {
  function send(
    caller: UpstreamCaller,
    request: UpstreamRequest,
    sendAnew: SendAnew,
  ): Promise<JsonObject> {
    /** The server may have been replaced by an older one. */
    async function concludeForeign(outcome: CallOutcome): Promise<JsonObject> {
      const hasChanged = await era.hasChanged(caller, 'stateless');
      return hasChanged ? sendAnew(caller, request) : getResult(outcome);
    }

    return connection.call(caller, {
      method: request.method,
      toParams: (id) => toStatelessParams(request, id, caller.capabilities),
      headers: describeInHeaders(request).concat(traceInHeaders(request)),
      timeoutMs,
      signal: request.signal,
      onNotification(message, id) {
        if (!routeToRequest(message, id, request)) listeners.notify(caller, message);
      },
      conclude: (outcome) => (isForeign(outcome) ? concludeForeign(outcome) : getResult(outcome)),
    });
  }

  return {
    /** `sendAnew` sends what was not carried out, as the server is no longer a stateless one. */
    request(caller: UpstreamCaller, request: UpstreamRequest, sendAnew: SendAnew) {
      const change = SUBSCRIBING.has(request.method)
        ? readSubscriptionChange(caller, request)
        : undefined;
      if (change === undefined) return send(caller, request, sendAnew);
      const { sessionId, uri, isWanted } = change;
      // This era has no such requests: the stream of the client's session asks for the resource.
      return subscriptions.change(sessionId, uri, isWanted).then(() => ({}));
    },
    /**
     * MCP "Subscriptions": calls `onOpen` when the stream stands, and resolves when it has ended: whether it is to be
     * opened again.
     */
    async openStream(
      audience: Audience,
      signal: AbortSignal,
      onOpen: () => void,
    ): Promise<'again' | 'never'> {
      const { caller } = audience;
      const sessionId = nameOwnSession(caller);
      const subscribed = sessionId === undefined ? [] : await subscriptions.read(sessionId);
      const uris = [...new Set([...audience.uris, ...subscribed])];
      const params = toListenParams(descriptions.find(caller), uris);
      if (params === undefined || signal.aborted) return 'never';
      const request: UpstreamRequest = { ...LISTEN, params, signal };
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
        conclude: toOutcome,
      });
      return isRefusal(outcome) ? 'never' : 'again';
    },
  };
}

/** Errors that 2026-07-28 sends with a status of 4xx, and those of JSON-RPC that concern the request. */
const KNOWN_CODES: readonly unknown[] = [-32020, -32021, -32601, -32602, -32603];

const isForeign = (outcome: CallOutcome): boolean =>
  outcome.kind === 'refused' &&
  [400, 404, 405].includes(outcome.status) &&
  !KNOWN_CODES.includes(findError(outcome)?.code);

const LISTEN = { method: 'subscriptions/listen', trace: {}, logLevel: undefined } as const;

const isRefusal = (outcome: CallOutcome): boolean =>
  findError(outcome)?.code === METHOD_NOT_FOUND ||
  (outcome.kind === 'refused' && outcome.status < 500);
