// Servers of 2024-11-05 to 2025-11-25: requests within a session that begins with `initialize`.

import type { Clock } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { UpstreamConfig } from '../config/upstream-config.ts';
import { NO_SESSIONS, readInitializeResult } from '../messages/description.ts';
import { CLIENT_INFO, declareCapabilities, SESSION_VERSION } from '../messages/envelope.ts';
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
import { type Sending, toOutcome } from './attempt.ts';
import { createFindSessionState, createPing, type FindSessionState } from './doubtful-sessions.ts';
import { isUnauthorizedError } from './failures.ts';
import type { HttpConnection } from './http-connection.ts';
import type { QuestionStreams } from './question-streams.ts';
import { type CallOutcome, findError, getResult, isUnauthorized } from './server-call.ts';
import {
  createServerSession,
  isAnswered,
  isSessionLost,
  mayBeLost,
  readSessionId,
  type ServerSession,
} from './server-session.ts';
import type { OpenCookies } from './session-cookies.ts';
import {
  type SendAnew,
  type SendingDeps,
  type SentInSession,
  type SessionAttempt,
  SessionSending,
} from './session-sending.ts';
import { createServerSessions, type ServerSessions } from './sessions.ts';

export interface SessionEra {
  /** `sendAnew` sends what was not carried out, as the server is no longer one of sessions. */
  request(
    caller: UpstreamCaller,
    request: UpstreamRequest,
    sendAnew: SendAnew,
  ): Promise<JsonObject>;
  /** Opens a session that is ended at once, only to hear what the server says. */
  introduce(caller: UpstreamCaller): Promise<void>;
  /** By a session that is ended at once. @throws UpstreamError */
  isTokenRefused(caller: UpstreamCaller): Promise<boolean>;
  readonly sessions: ServerSessions;
  readonly findSessionState: FindSessionState;
}

export interface SessionEraDeps {
  readonly connection: HttpConnection;
  readonly records: SessionRecords;
  readonly subscriptions: SubscriptionMemory;
  readonly questionStreams: Pick<QuestionStreams, 'hold'>;
  readonly openCookies: OpenCookies;
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
  /** The caller has another session, in place of one that the server lost, whose stream may still stand. */
  onReplaced(caller: UpstreamCaller, isStanding: boolean): void;
}

const REFUSAL = 'it refuses to begin (initialize)';
/** Longer than a server should take to begin; a first call waits for it. */
const HANDSHAKE_MS = 15_000;

export function createSessionEra(deps: SessionEraDeps): SessionEra {
  const { connection, records, subscriptions, questionStreams, clock, timeoutMs } = deps;
  const { openCookies } = deps;
  const handshakeMs = Math.min(timeoutMs, HANDSHAKE_MS);
  const sessions = createServerSessions({
    initialize,
    terminate,
    restore,
    records,
    openCookies,
    clock,
  });
  const ping = createPing(connection, timeoutMs);
  const findSessionState = createFindSessionState({ ping, sessions, clock });

  async function initialize(
    caller: UpstreamCaller,
    isTrial?: Sending<unknown>['isTrial'],
  ): Promise<ServerSession> {
    const cookies = openCookies();
    const outcome = await connection.call(caller, {
      method: 'initialize',
      toParams: () => ({
        protocolVersion: SESSION_VERSION,
        capabilities: declareCapabilities(caller.capabilities),
        clientInfo: CLIENT_INFO,
      }),
      headers: [],
      cookies,
      timeoutMs: handshakeMs,
      isHandshake: true,
      ...(isTrial && { isTrial }),
      conclude: toOutcome,
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
      false,
      cookies,
    );
    await notify(caller, session, 'notifications/initialized', {});
    deps.onDescription(caller, description);
    return session;
  }

  async function terminate(caller: UpstreamCaller, session: ServerSession): Promise<void> {
    if (session.id === undefined) return;
    // A server may refuse, or be gone: its sessions end by themselves then.
    await connection.send(caller, null, session.headers, session.cookies).catch(() => {});
  }

  /** Repeats the client's subscriptions and log level of the session before. Resources that the server no longer has are skipped. */
  async function restore(
    caller: UpstreamCaller,
    session: ServerSession,
    lost: ServerSession,
  ): Promise<void> {
    deps.onReplaced(caller, lost.standing > 0);
    // The replica that opened it has asked.
    if (session.isFromStore) return;
    if (lost.logLevel !== undefined) void setLogLevel(caller, session, lost.logLevel);
    const sessionId = nameOwnSession(caller);
    const uris = sessionId === undefined ? [] : await subscriptions.read(sessionId).catch(() => []);
    for (const uri of uris) {
      const asked = connection.call(caller, {
        method: 'resources/subscribe',
        toParams: () => ({ uri }),
        headers: session.headers,
        cookies: session.cookies,
        timeoutMs: handshakeMs,
        conclude: toOutcome,
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
    const { headers, cookies } = session;
    await connection.send(caller, { jsonrpc: '2.0', method, params }, headers, cookies);
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
      cookies: session.cookies,
      timeoutMs: handshakeMs,
      conclude: toOutcome,
    });
    // A server without logging refuses it, or never answers: the request itself must not fail by that.
    await asked.catch(() => {});
  }

  function send(
    session: ServerSession,
    sent: SentInSession,
    attempt: SessionAttempt,
  ): Promise<JsonObject> {
    const opening = questionStreams.hold(sent.caller, session, sent.request);
    return opening === undefined
      ? sendNow(session, sent, attempt)
      : opening.then(() => sendNow(session, sent, attempt));
  }

  function sendNow(
    session: ServerSession,
    sent: SentInSession,
    attempt: SessionAttempt,
  ): Promise<JsonObject> {
    const { caller, request } = sent;
    const { logLevel } = request;
    const sending = new SessionSending(sendingDeps, session, sent, attempt);
    return logLevel === undefined || logLevel === session.logLevel
      ? connection.call(caller, sending)
      : setLogLevel(caller, session, logLevel).then(() => connection.call(caller, sending));
  }

  const sendingDeps: SendingDeps = {
    timeoutMs,
    onNotification: deps.onNotification,
    tell: (caller, session, response) =>
      // Without credentials the server waits in vain, until the call ends.
      connection.send(caller, response, session.headers, session.cookies).catch(() => {}),
    cancel: (caller, session, params) =>
      void notify(caller, session, 'notifications/cancelled', params).catch(() => {}),
    sendAgain,
    sendElsewhere,
    concludeDoubtful,
    isReplaced: async (caller, session) =>
      (await findSessionState(caller, session, true)).kind === 'replaced',
  };

  /** Undefined where the server is no longer one of sessions. */
  async function openSession(caller: UpstreamCaller): Promise<ServerSession | undefined> {
    try {
      return await sessions.open(caller);
    } catch (error) {
      if (isAnswered(error) && (await deps.hasChangedEra(caller))) return undefined;
      throw error;
    }
  }

  function sendInSession(sent: SentInSession): Promise<JsonObject> {
    const session = sessions.find(sent.caller);
    return session === undefined ? sendInNewSession(sent) : send(session, sent, 'first');
  }

  async function sendInNewSession(sent: SentInSession): Promise<JsonObject> {
    const { caller, request, sendAnew } = sent;
    const session = await openSession(caller);
    return session === undefined ? sendAnew(caller, request) : send(session, sent, 'first');
  }

  /** The server refuses what belongs to this era. */
  async function sendElsewhere(
    session: ServerSession,
    sent: SentInSession,
    outcome: CallOutcome,
  ): Promise<JsonObject> {
    const { caller, request, sendAnew } = sent;
    if (await deps.hasChangedEra(caller)) return sendAnew(caller, request);
    if (isSessionLost(session, outcome)) return sendAgain(session, sent, 'second');
    return mayBeLost(session, outcome)
      ? concludeDoubtful(session, sent, outcome)
      : getResult(outcome);
  }

  async function concludeDoubtful(
    session: ServerSession,
    { caller }: SentInSession,
    outcome: CallOutcome,
  ): Promise<JsonObject> {
    const state = await findSessionState(caller, session);
    if (state.kind === 'replaced') throw createSessionLostError(outcome);
    if (state.kind === 'refused') throw state.error;
    return getResult(outcome);
  }

  async function sendAgain(
    lost: ServerSession,
    sent: SentInSession,
    attempt: SessionAttempt,
  ): Promise<JsonObject> {
    return send(await sessions.renew(sent.caller, lost), sent, attempt);
  }

  /** Noted first: a session that takes the place of this one has to ask for it, too. */
  async function changeSubscription(
    sent: SentInSession,
    { sessionId, uri, isWanted }: SubscriptionChange,
  ): Promise<JsonObject> {
    await subscriptions.note(sessionId, uri, isWanted);
    try {
      return await sendInSession(sent);
    } catch (error) {
      if (isWanted) await subscriptions.note(sessionId, uri, false).catch(() => {});
      throw error;
    }
  }

  return {
    sessions,
    findSessionState,
    request(caller, request, sendAnew) {
      const sent = { caller, request, sendAnew };
      const change = SUBSCRIBING.has(request.method)
        ? readSubscriptionChange(caller, request)
        : undefined;
      return change === undefined ? sendInSession(sent) : changeSubscription(sent, change);
    },
    introduce: async (caller) => terminate(caller, await initialize(caller)),
    async isTokenRefused(caller) {
      try {
        const session = await initialize(caller, true);
        // Some let anybody begin.
        const outcome = await ping(caller, session).finally(() => terminate(caller, session));
        return isUnauthorized(outcome);
      } catch (error) {
        if (isUnauthorizedError(error)) return true;
        throw error;
      }
    },
  };
}

function createSessionLostError(outcome: CallOutcome): UpstreamError {
  const said = outcome.kind === 'refused' ? String(outcome.status) : 'an error';
  return new UpstreamError(
    'session_lost',
    `it answered ${said} to a session that it had lost, and a new one was opened`,
  );
}
