// Servers of 2024-11-05 to 2025-11-25: requests within a session that begins with `initialize`.

import type { Clock } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { UpstreamConfig } from '../config/upstream-config.ts';
import { NO_SESSIONS, readInitializeResult } from '../messages/description.ts';
import {
  CLIENT_INFO,
  declareCapabilities,
  SESSION_VERSION,
  toSessionParams,
  traceInHeaders,
} from '../messages/envelope.ts';
import { routeToRequest } from '../messages/route-notification.ts';
import type { ServerNotification } from '../messages/server-message.ts';
import type { SessionRecords } from '../transport/session-records.ts';
import {
  readSubscriptionChange,
  SUBSCRIBING,
  type SubscriptionChange,
  type SubscriptionMemory,
} from '../transport/subscription-memory.ts';
import {
  nameOwnSession,
  type UpstreamCaller,
  type UpstreamDescription,
  UpstreamError,
  type UpstreamRequest,
} from '../upstream.ts';
import type { HttpConnection } from './http-connection.ts';
import { type CallOutcome, findError, getResult } from './server-call.ts';
import {
  createServerSession,
  isAnswered,
  isOfOtherEra,
  isSessionLost,
  readSessionId,
  routeToSession,
  type ServerSession,
} from './server-session.ts';
import { createServerSessions, type ServerSessions } from './sessions.ts';

export interface SessionEra {
  /** Undefined where the server is no longer one of sessions. */
  request(caller: UpstreamCaller, request: UpstreamRequest): Promise<JsonObject | undefined>;
  /** Opens a session that is ended at once, only to hear what the server says. */
  introduce(caller: UpstreamCaller): Promise<void>;
  readonly sessions: ServerSessions;
}

export interface SessionEraDeps {
  readonly connection: HttpConnection;
  readonly records: SessionRecords;
  readonly subscriptions: SubscriptionMemory;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Which era the configuration file demands. */
  readonly demanded: UpstreamConfig['era'];
  /** A notification that belongs to no request. */
  onNotification(caller: UpstreamCaller, message: ServerNotification): void;
  /** Called with what each `initialize` said. */
  onDescription(caller: UpstreamCaller, description: UpstreamDescription): void;
  /** Asked when the server refuses what belongs to this era: it may have been replaced by a newer one. */
  hasChangedEra(caller: UpstreamCaller): Promise<boolean>;
}

const REFUSAL = 'it refuses to begin (initialize)';
/** Longer than a server should take to begin; a first call waits for it. */
const HANDSHAKE_MS = 15_000;

export function createSessionEra(deps: SessionEraDeps): SessionEra {
  const { connection, records, subscriptions, clock, timeoutMs } = deps;
  const handshakeMs = Math.min(timeoutMs, HANDSHAKE_MS);
  const sessions = createServerSessions({ initialize, terminate, restore, records, clock });

  async function initialize(caller: UpstreamCaller): Promise<ServerSession> {
    const outcome = await connection.call(caller, {
      method: 'initialize',
      toParams: () => ({
        protocolVersion: SESSION_VERSION,
        capabilities: declareCapabilities(caller.capabilities),
        clientInfo: CLIENT_INFO,
      }),
      headers: [],
      timeoutMs: handshakeMs,
      isHandshake: true,
    });
    if (findError(outcome) !== undefined) {
      const isDemanded = deps.demanded === 'session';
      throw new UpstreamError('unavailable', isDemanded ? NO_SESSIONS : REFUSAL);
    }
    const description = readInitializeResult(getResult(outcome));
    if (description === undefined) {
      throw new UpstreamError('unavailable', 'it speaks no version of MCP that is known here');
    }
    const id = outcome.kind === 'result' ? outcome.headers['mcp-session-id'] : undefined;
    const session = createServerSession(
      readSessionId(id),
      description.protocolVersion,
      clock.monotonic(),
    );
    await notify(caller, session, 'notifications/initialized', {});
    deps.onDescription(caller, description);
    return session;
  }

  async function terminate(caller: UpstreamCaller, session: ServerSession): Promise<void> {
    if (session.id === undefined) return;
    // A server may refuse, or be gone: its sessions end by themselves then.
    await connection.send(caller, null, session.headers).catch(() => {});
  }

  /** What the client subscribed to in the session before. What the server no longer has is not told of. */
  async function restore(caller: UpstreamCaller, session: ServerSession): Promise<void> {
    const sessionId = nameOwnSession(caller);
    const uris = sessionId === undefined ? [] : await subscriptions.read(sessionId).catch(() => []);
    for (const uri of uris) {
      const asked = connection.call(caller, {
        method: 'resources/subscribe',
        toParams: () => ({ uri }),
        headers: session.headers,
        timeoutMs: handshakeMs,
      });
      await asked.catch(() => {});
    }
  }

  async function notify(
    caller: UpstreamCaller,
    session: ServerSession,
    method: string,
    params: JsonObject,
  ): Promise<void> {
    await connection.send(caller, { jsonrpc: '2.0', method, params }, session.headers);
  }

  async function setLogLevel(
    caller: UpstreamCaller,
    session: ServerSession,
    level: ServerSession['logLevel'],
  ): Promise<void> {
    session.logLevel = level;
    const asked = connection.call(caller, {
      method: 'logging/setLevel',
      toParams: () => ({ level }),
      headers: session.headers,
      timeoutMs: handshakeMs,
    });
    // A server without logging refuses it, or never answers: the request itself must not fail by that.
    await asked.catch(() => {});
  }

  async function send(
    caller: UpstreamCaller,
    session: ServerSession,
    request: UpstreamRequest,
  ): Promise<CallOutcome> {
    const { logLevel, method, signal } = request;
    if (logLevel !== undefined && logLevel !== session.logLevel) {
      await setLogLevel(caller, session, logLevel);
    }
    const { openRequests } = session;
    let place: number | undefined;
    try {
      return await connection.call(caller, {
        method,
        toParams(id) {
          // What is sent once more has another id then.
          if (place !== undefined) openRequests.remove(place);
          place = openRequests.add(id, request);
          return toSessionParams(request, id);
        },
        headers: [...session.headers, ...traceInHeaders(request)],
        resumeHeaders: session.headers,
        timeoutMs,
        signal,
        async onRequest(message) {
          const { questions } = session;
          const response = await questions.answer(message, request.onRequest?.bind(request));
          if (response === undefined) return;
          // Without credentials the server waits in vain, until the call ends.
          await connection.send(caller, response, session.headers).catch(() => {});
        },
        onNotification(message, id) {
          if (routeToRequest(message, id, request) || routeToSession(message, session)) return;
          deps.onNotification(caller, message);
        },
        onAbandon(requestId, reason) {
          notify(caller, session, 'notifications/cancelled', { requestId, reason }).catch(() => {});
        },
      });
    } finally {
      if (place !== undefined) openRequests.remove(place);
    }
  }

  /** Undefined where the server is no longer one of sessions. */
  async function openSession(caller: UpstreamCaller): Promise<ServerSession | undefined> {
    try {
      return await sessions.open(caller);
    } catch (error) {
      if (isAnswered(error) && (await deps.hasChangedEra(caller))) return undefined;
      throw error;
    }
  }

  async function sendInSession(
    caller: UpstreamCaller,
    request: UpstreamRequest,
  ): Promise<JsonObject | undefined> {
    const session = sessions.find(caller) ?? (await openSession(caller));
    if (session === undefined) return undefined;
    const outcome = await send(caller, session, request);
    const hasNoSession = isSessionLost(session, outcome);
    if (!hasNoSession && !isOfOtherEra(outcome)) return getResult(outcome);
    if (await deps.hasChangedEra(caller)) return undefined;
    return getResult(hasNoSession ? await sendAgain(caller, request, session) : outcome);
  }

  async function sendAgain(
    caller: UpstreamCaller,
    request: UpstreamRequest,
    lost: ServerSession,
  ): Promise<CallOutcome> {
    const renewed = await sessions.renew(caller, lost);
    const outcome = await send(caller, renewed, request);
    // The server may have lost that of another replica, too: then this one opens its own.
    if (!renewed.isFromStore || !isSessionLost(renewed, outcome)) return outcome;
    return send(caller, await sessions.renew(caller, renewed), request);
  }

  /** Noted first: a session that takes the place of this one has to ask for it, too. */
  async function changeSubscription(
    caller: UpstreamCaller,
    request: UpstreamRequest,
    { sessionId, uri, isWanted }: SubscriptionChange,
  ): Promise<JsonObject | undefined> {
    await subscriptions.note(sessionId, uri, isWanted);
    try {
      return await sendInSession(caller, request);
    } catch (error) {
      if (isWanted) await subscriptions.note(sessionId, uri, false).catch(() => {});
      throw error;
    }
  }

  return {
    sessions,
    request(caller, request) {
      const change = SUBSCRIBING.has(request.method)
        ? readSubscriptionChange(caller, request)
        : undefined;
      return change === undefined
        ? sendInSession(caller, request)
        : changeSubscription(caller, request, change);
    },
    introduce: async (caller) => terminate(caller, await initialize(caller)),
  };
}
