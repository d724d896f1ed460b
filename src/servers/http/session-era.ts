// Servers of 2024-11-05 to 2025-11-25: requests within a session that begins with `initialize`.

import {
  NO_SESSIONS,
  type RequestHeaders,
  readInitializeResult,
  toInitializeParams,
  toSessionParams,
  traceInHeaders,
} from '../../mcp/upstream/envelope.ts';
import {
  nameOwnSession,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import type { Deadline } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import {
  routeToRequest,
  type ServerNotification,
  type ServerRequest,
} from '../messages/server-message.ts';
import {
  createSessionRecords,
  readSubscriptionChange,
  SUBSCRIBING,
  type SubscriptionChange,
} from '../transport/session-records.ts';
import {
  type CallOutcome,
  findError,
  getResult,
  isUnauthorized,
  type Sending,
  toOutcome,
} from './attempt.ts';
import type { HttpLink, SendAnew, ServerKnowledge } from './era.ts';
import { isUnauthorizedError } from './failures.ts';
import type { HttpUpstreamConfig } from './http-config.ts';
import type { HttpConnection } from './http-connection.ts';
import type { ServerListeners } from './listeners.ts';
import {
  isAnswered,
  isOfOtherEra,
  isSessionLost,
  mayBeLost,
  type OpenRequest,
  routeToSession,
  ServerSession,
} from './server-session.ts';
import type { SessionCookies } from './session-cookies.ts';
import {
  createFindSessionState,
  createServerSessions,
  type FindSessionState,
  type ServerSessions,
} from './sessions.ts';

export type SessionEra = ReturnType<typeof speakSessionEra>;

/** Tells records of its sessions from those of other servers. */
export const nameHttpServer = ({ name, url }: HttpUpstreamConfig): string => `${name} ${url}`;

const REFUSAL = 'it refuses to begin (initialize)';
/** Longer than a server should take to begin; a first call waits for it. */
const HANDSHAKE_MS = 15_000;
const PING_MS = 5000;
/** MCP "Session Management": visible ASCII; anything else could not be sent back. */
const USABLE_ID = /^[\x21-\x7E]{1,1024}$/;

export function speakSessionEra(
  runtime: UpstreamRuntime,
  config: HttpUpstreamConfig,
  { connection, openCookies }: HttpLink,
  knowledge: ServerKnowledge,
) {
  const { clock } = runtime;
  const { timeoutMs } = config;
  const { descriptions, listeners, subscriptions } = knowledge;
  const handshakeMs = Math.min(timeoutMs, HANDSHAKE_MS);
  const records = createSessionRecords(runtime, nameHttpServer(config), true);
  const sessions = createServerSessions(clock, records, openCookies, {
    initialize,
    terminate,
    restore,
  });
  const findSessionState = createFindSessionState(clock, ping, sessions);

  async function initialize(
    caller: UpstreamCaller,
    isTrial?: Sending<unknown>['isTrial'],
  ): Promise<ServerSession> {
    const cookies = openCookies();
    const outcome = await connection.call({
      caller,
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
    if (description === undefined)
      throw new UpstreamError('unavailable', 'it speaks no version of MCP that is known here');
    const id = outcome.kind === 'result' ? outcome.headers['mcp-session-id'] : undefined;
    const session = new ServerSession(
      typeof id === 'string' && USABLE_ID.test(id) ? id : undefined,
      description.protocolVersion,
      clock.monotonic(),
      { cookies },
    );
    const initialized = { jsonrpc: '2.0', method: 'notifications/initialized', params: {} };
    await connection.send(caller, initialized, session);
    descriptions.note(caller, description);
    return session;
  }

  async function terminate(caller: UpstreamCaller, session: ServerSession) {
    if (session.id === undefined) return;
    // A server may refuse, or be gone: its sessions end by themselves then.
    await connection.send(caller, null, session).catch(() => {});
  }

  /** Repeats the client's subscriptions and log level of the session before. Resources that the server no longer has are skipped. */
  async function restore(caller: UpstreamCaller, session: ServerSession, lost: ServerSession) {
    listeners.move(caller, lost.standing > 0);
    // The replica that opened it has asked.
    if (session.isFromStore) return;
    if (lost.logLevel !== undefined) void setLogLevel(caller, session, lost.logLevel);
    const sessionId = nameOwnSession(caller);
    const uris = sessionId === undefined ? [] : await subscriptions.read(sessionId).catch(() => []);
    for (const uri of uris)
      await ask(caller, session, 'resources/subscribe', { uri }).catch(() => {});
  }

  async function setLogLevel(
    caller: UpstreamCaller,
    session: ServerSession,
    level: ServerSession['logLevel'],
  ) {
    session.logLevel = level;
    // A server without logging refuses it, or never answers: the request itself must not fail by that.
    await ask(caller, session, 'logging/setLevel', { level }).catch(() => {});
  }

  /** Sends a request of the gateway's own. */
  const ask = (
    caller: UpstreamCaller,
    { headers, cookies }: ServerSession,
    method: string,
    params: JsonObject,
    how: Pick<Sending<unknown>, 'timeoutMs' | 'isTrial'> = { timeoutMs: handshakeMs },
  ): Promise<CallOutcome> =>
    connection.call({
      caller,
      method,
      toParams: () => params,
      headers,
      cookies,
      conclude: toOutcome,
      ...how,
    });

  /** Nothing follows from how it ends. @throws UpstreamError */
  function ping(caller: UpstreamCaller, session: ServerSession) {
    const how = { timeoutMs: Math.min(timeoutMs, PING_MS), isTrial: true } as const;
    return ask(caller, session, 'ping', {}, how);
  }

  return {
    sessions,
    findSessionState,
    request: createSendInSession(timeoutMs, connection, knowledge, {
      sessions,
      findSessionState,
      setLogLevel,
    }),
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

// Requests within sessions at a server: what each is sent with, what the server says and asks meanwhile, and what its outcome
// means to its session.

interface SentInSession {
  readonly caller: UpstreamCaller;
  readonly request: UpstreamRequest;
  readonly sendAnew: SendAnew;
}

/** A third comes where the server has lost the session of another replica, too: then this one opens its own. */
type SessionAttempt = 'first' | 'second' | 'third';

/** Returns a function that sends a request; `sendAnew` what was not carried out, as the server is no longer one of sessions. */
function createSendInSession(
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

  function sendInSession(sent: SentInSession) {
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

  function send(session: ServerSession, sent: SentInSession, attempt: SessionAttempt) {
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
