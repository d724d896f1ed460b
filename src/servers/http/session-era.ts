// Servers of 2024-11-05 to 2025-11-25: requests within a session that begins with `initialize`.

import { NO_SESSIONS, readInitializeResult } from '../../mcp/upstream/description.ts';
import { toInitializeParams } from '../../mcp/upstream/envelope.ts';
import {
  nameOwnSession,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import type { JsonObject } from '../../platform/json.ts';
import {
  createOptionalRecords,
  createSessionRecords,
  readSubscriptionChange,
  SUBSCRIBING,
  type SubscriptionChange,
} from '../transport/session-records.ts';
import { type Sending, toOutcome } from './attempt.ts';
import type { HttpLink, ServerKnowledge } from './era.ts';
import { isUnauthorizedError } from './failures.ts';
import type { HttpUpstreamConfig } from './http-config.ts';
import { type CallOutcome, findError, getResult, isUnauthorized } from './server-call.ts';
import {
  createServerSession,
  isAnswered,
  isSessionLost,
  mayBeLost,
  readSessionId,
  type ServerSession,
} from './server-session.ts';
import {
  type SendAnew,
  type SentInSession,
  type SessionAttempt,
  type SessionSender,
  SessionSending,
} from './session-sending.ts';
import { createFindSessionState, createPing, createServerSessions } from './sessions.ts';

export type SessionEra = ReturnType<typeof speakSessionEra>;

/** Tells records of its sessions from those of other servers. */
export const nameHttpServer = ({ name, url }: HttpUpstreamConfig): string => `${name} ${url}`;

const REFUSAL = 'it refuses to begin (initialize)';
/** Longer than a server should take to begin; a first call waits for it. */
const HANDSHAKE_MS = 15_000;

export function speakSessionEra(
  runtime: UpstreamRuntime,
  config: HttpUpstreamConfig,
  { connection, openCookies }: HttpLink,
  { era, descriptions, listeners, subscriptions, questionStreams }: ServerKnowledge,
) {
  const { clock, log } = runtime;
  const { timeoutMs } = config;
  const handshakeMs = Math.min(timeoutMs, HANDSHAKE_MS);
  const records = createOptionalRecords(createSessionRecords(runtime, nameHttpServer(config)), log);
  const sessions = createServerSessions(clock, records, openCookies, {
    initialize,
    terminate,
    restore,
  });
  const ping = createPing(connection, timeoutMs);
  const findSessionState = createFindSessionState(clock, ping, sessions);
  /** The server refuses what belongs to this era: it may have been replaced by a newer one. */
  const hasChangedEra = (caller: UpstreamCaller) => era.hasChanged(caller, 'session');

  async function initialize(
    caller: UpstreamCaller,
    isTrial?: Sending<unknown>['isTrial'],
  ): Promise<ServerSession> {
    const cookies = openCookies();
    const outcome = await connection.call(caller, {
      method: 'initialize',
      toParams: () => toInitializeParams(caller.capabilities),
      headers: [],
      cookies,
      timeoutMs: handshakeMs,
      isHandshake: true,
      ...(isTrial && { isTrial }),
      conclude: toOutcome,
    });
    if (findError(outcome) !== undefined) {
      const isDemanded = config.era === 'session';
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
      { cookies },
    );
    await notify(caller, session, 'notifications/initialized', {});
    descriptions.note(caller, description);
    return session;
  }

  async function terminate(caller: UpstreamCaller, session: ServerSession): Promise<void> {
    if (session.id === undefined) return;
    // A server may refuse, or be gone: its sessions end by themselves then.
    await connection.send(caller, null, session).catch(() => {});
  }

  /** Repeats the client's subscriptions and log level of the session before. Resources that the server no longer has are skipped. */
  async function restore(
    caller: UpstreamCaller,
    session: ServerSession,
    lost: ServerSession,
  ): Promise<void> {
    listeners.move(caller, lost.standing > 0);
    // The replica that opened it has asked.
    if (session.isFromStore) return;
    if (lost.logLevel !== undefined) void setLogLevel(caller, session, lost.logLevel);
    const sessionId = nameOwnSession(caller);
    const uris = sessionId === undefined ? [] : await subscriptions.read(sessionId).catch(() => []);
    for (const uri of uris)
      await ask(caller, session, 'resources/subscribe', { uri }).catch(() => {});
  }

  /** Sends a request of the gateway's own. */
  const ask = (
    caller: UpstreamCaller,
    { headers, cookies }: ServerSession,
    method: string,
    params: JsonObject,
  ): Promise<CallOutcome> =>
    connection.call(caller, {
      method,
      toParams: () => params,
      headers,
      cookies,
      timeoutMs: handshakeMs,
      conclude: toOutcome,
    });

  async function notify(
    caller: UpstreamCaller,
    session: ServerSession,
    method: string,
    params: JsonObject,
  ): Promise<void> {
    await connection.send(caller, { jsonrpc: '2.0', method, params }, session);
  }

  async function setLogLevel(
    caller: UpstreamCaller,
    session: ServerSession,
    level: ServerSession['logLevel'],
  ): Promise<void> {
    session.logLevel = level;
    // A server without logging refuses it, or never answers: the request itself must not fail by that.
    await ask(caller, session, 'logging/setLevel', { level }).catch(() => {});
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
    const sending = new SessionSending(sender, session, sent, attempt);
    return logLevel === undefined || logLevel === session.logLevel
      ? connection.call(caller, sending)
      : setLogLevel(caller, session, logLevel).then(() => connection.call(caller, sending));
  }

  const sender: SessionSender = {
    timeoutMs,
    onNotification: listeners.notify,
    tell: (caller, session, response) =>
      // Without credentials the server waits in vain, until the call ends.
      connection.send(caller, response, session).catch(() => {}),
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
      if (isAnswered(error) && (await hasChangedEra(caller))) return undefined;
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
    if (await hasChangedEra(caller)) return sendAnew(caller, request);
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
    /** `sendAnew` sends what was not carried out, as the server is no longer one of sessions. */
    request(caller: UpstreamCaller, request: UpstreamRequest, sendAnew: SendAnew) {
      const sent = { caller, request, sendAnew };
      const change = SUBSCRIBING.has(request.method)
        ? readSubscriptionChange(caller, request)
        : undefined;
      return change === undefined ? sendInSession(sent) : changeSubscription(sent, change);
    },
    /** Opens a session that is ended at once, only to hear what the server says. */
    introduce: async (caller: UpstreamCaller) => terminate(caller, await initialize(caller)),
    /** Uses a session that is ended at once. @throws UpstreamError */
    async isTokenRefused(caller: UpstreamCaller) {
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
