// Requests within sessions at a server: what each is sent with, what the server says and asks meanwhile, and what its outcome
// means to its session.

import {
  type RequestHeaders,
  toSessionParams,
  traceInHeaders,
} from '../../mcp/upstream/envelope.ts';
import {
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
} from '../../mcp/upstream/upstream.ts';
import type { Deadline } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import {
  routeToRequest,
  type ServerNotification,
  type ServerRequest,
} from '../messages/server-message.ts';
import {
  readSubscriptionChange,
  SUBSCRIBING,
  type SubscriptionChange,
} from '../transport/session-records.ts';
import { type CallOutcome, getResult, type Sending } from './attempt.ts';
import type { SendAnew, ServerKnowledge } from './era.ts';
import type { HttpConnection } from './http-connection.ts';
import type { ServerListeners } from './listeners.ts';
import {
  isAnswered,
  isOfOtherEra,
  isSessionLost,
  mayBeLost,
  type OpenRequest,
  routeToSession,
  type ServerSession,
} from './server-session.ts';
import type { SessionCookies } from './session-cookies.ts';
import type { FindSessionState, ServerSessions } from './sessions.ts';

interface SentInSession {
  readonly caller: UpstreamCaller;
  readonly request: UpstreamRequest;
  readonly sendAnew: SendAnew;
}

/** A third comes where the server has lost the session of another replica, too: then this one opens its own. */
type SessionAttempt = 'first' | 'second' | 'third';

/** Returns a function that sends a request; `sendAnew` what was not carried out, as the server is no longer one of sessions. */
export function createSendInSession(
  timeoutMs: number,
  connection: HttpConnection,
  { era, listeners, subscriptions, questionStreams }: ServerKnowledge,
  {
    sessions,
    findSessionState,
    setLogLevel,
  }: {
    readonly sessions: ServerSessions;
    readonly findSessionState: FindSessionState;
    setLogLevel(
      caller: UpstreamCaller,
      session: ServerSession,
      level: ServerSession['logLevel'],
    ): Promise<void>;
  },
) {
  const sender: SessionSender = {
    timeoutMs,
    connection,
    findSessionState,
    notify: listeners.notify,
    concludeRefused,
  };
  /** The server refuses what belongs to this era: it may have been replaced by a newer one. */
  const hasChangedEra = (caller: UpstreamCaller) => era.hasChanged(caller, 'session');

  function sendInSession(sent: SentInSession): Promise<JsonObject> {
    const session = sessions.find(sent.caller);
    return session === undefined ? sendInNewSession(sent) : send(session, sent, 'first');
  }

  async function sendInNewSession(sent: SentInSession): Promise<JsonObject> {
    const { caller, request, sendAnew } = sent;
    let session: ServerSession;
    try {
      session = await sessions.open(caller);
    } catch (error) {
      if (isAnswered(error) && (await hasChangedEra(caller))) return sendAnew(caller, request);
      throw error;
    }
    return send(session, sent, 'first');
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
      ? connection.call(sending)
      : setLogLevel(caller, session, logLevel).then(() => connection.call(sending));
  }

  /** What failed in a session that the server may have lost is never sent again. */
  async function concludeRefused(
    { session, sent, attempt }: SessionSending,
    outcome: CallOutcome,
  ): Promise<JsonObject> {
    const { caller, request, sendAnew } = sent;
    const isFirst = attempt === 'first';
    const isLost = isSessionLost(session, outcome);
    const mayBeForeign = isFirst && (isLost || isOfOtherEra(outcome));
    if (mayBeForeign && (await hasChangedEra(caller))) return sendAnew(caller, request);
    // The server may have lost that of another replica, too.
    if (isLost && (isFirst || (attempt === 'second' && session.isFromStore))) {
      const next = await sessions.replace(caller, session);
      return send(next, sent, isFirst ? 'second' : 'third');
    }
    if (isLost || !mayBeLost(session, outcome)) return getResult(outcome);
    const state = await findSessionState(caller, session);
    if (state.kind === 'replaced') {
      const said = outcome.kind === 'refused' ? String(outcome.status) : 'an error';
      const lost = `it answered ${said} to a session that it had lost, and a new one was opened`;
      throw new UpstreamError('session_lost', lost);
    }
    if (state.kind === 'refused') throw state.error;
    return getResult(outcome);
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

  return function sendRequest(
    caller: UpstreamCaller,
    request: UpstreamRequest,
    sendAnew: SendAnew,
  ): Promise<JsonObject> {
    const sent = { caller, request, sendAnew };
    const change = SUBSCRIBING.has(request.method)
      ? readSubscriptionChange(caller, request)
      : undefined;
    return change === undefined ? sendInSession(sent) : changeSubscription(sent, change);
  };
}

/** Sends the requests of all sessions at a server. */
interface SessionSender {
  readonly timeoutMs: number;
  readonly connection: HttpConnection;
  readonly findSessionState: FindSessionState;
  /** Told a notification that belongs to no request. */
  readonly notify: ServerListeners['notify'];
  concludeRefused(sending: SessionSending, outcome: CallOutcome): Promise<JsonObject>;
}

/** A class, since every call has one: closures took 2 KB of it. */
class SessionSending implements Sending<JsonObject>, OpenRequest {
  readonly session: ServerSession;
  readonly sent: SentInSession;
  readonly attempt: SessionAttempt;
  readonly caller: UpstreamCaller;
  readonly request: UpstreamRequest;
  token = 0;
  deadline: Deadline | undefined;
  readonly method: string;
  readonly headers: RequestHeaders;
  readonly cookies: SessionCookies | undefined;
  readonly resumeHeaders: RequestHeaders;
  readonly timeoutMs: number;
  readonly signal: UpstreamRequest['signal'];
  private readonly sender: SessionSender;
  /** Among the open requests of the session. */
  private place: number | undefined;

  constructor(
    sender: SessionSender,
    session: ServerSession,
    sent: SentInSession,
    attempt: SessionAttempt,
  ) {
    this.sender = sender;
    this.session = session;
    this.sent = sent;
    this.attempt = attempt;
    const { caller, request } = sent;
    this.caller = caller;
    this.request = request;
    const traced = traceInHeaders(request);
    const { headers } = session;
    this.method = request.method;
    this.headers = traced.length === 0 ? headers : [...headers, ...traced];
    this.cookies = session.cookies;
    this.resumeHeaders = headers;
    this.timeoutMs = sender.timeoutMs;
    this.signal = request.signal;
  }

  toParams(id: number): JsonObject {
    this.token = id;
    this.place = this.session.openRequests.add(this);
    return toSessionParams(this.request, id);
  }

  onStart(deadline: Deadline): void {
    this.deadline = deadline;
  }

  onSettled(): void {
    if (this.place !== undefined) this.session.openRequests.remove(this.place);
    this.place = undefined;
    this.deadline = undefined;
  }

  async onRequest(message: ServerRequest): Promise<void> {
    const { caller, request, session } = this;
    const response = await session.questions.answer(message, request.onRequest?.bind(request));
    // Without credentials the server waits in vain, until the call ends.
    if (response !== undefined)
      await this.sender.connection.send(caller, response, session).catch(() => {});
  }

  onNotification(message: ServerNotification, id: number): void {
    const { caller, request, session } = this;
    if (routeToRequest(message, id, request) || routeToSession(message, session)) return;
    this.sender.notify(caller, message);
  }

  onAbandon(requestId: number, reason: string): void {
    const method = 'notifications/cancelled';
    const cancelled = { jsonrpc: '2.0', method, params: { requestId, reason } };
    this.sender.connection.send(this.caller, cancelled, this.session).catch(() => {});
  }

  conclude(outcome: CallOutcome): JsonObject | Promise<JsonObject> {
    if (outcome.kind !== 'result') return this.sender.concludeRefused(this, outcome);
    this.session.hasServed = true;
    return outcome.result;
  }

  /** The session had to be replaced, though the server speaks of credentials. */
  async isAboutSession(): Promise<boolean> {
    const { sender, session, caller } = this;
    if (session.id === undefined) return false;
    return (await sender.findSessionState(caller, session, true)).kind === 'replaced';
  }
}
