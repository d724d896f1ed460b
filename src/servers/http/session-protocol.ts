// Session era (servers of 2024-11-05 to 2025-11-25): requests within a session that begins with `initialize`.

import {
  NO_SESSIONS,
  readInitializeResult,
  toInitializeParams,
  toSessionParams,
  traceInHeaders,
} from '../../mcp/upstream/envelope.ts';
import {
  mayBeCarriedOut,
  nameOwnSession,
  throwAsUnsent,
  toOtherFailure,
  type Upstream,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import { Cancellation } from '../../platform/cancellation.ts';
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
import { isUnauthorizedError, toRefusal } from './failures.ts';
import type { HttpUpstreamConfig } from './http-config.ts';
import type { HttpConnection } from './http-connection.ts';
import type { ServerListeners } from './listeners.ts';
import {
  createReplaceIfLost,
  isAnswered,
  isOfOtherEra,
  isSessionLost,
  mayBeLost,
} from './lost-sessions.ts';
import {
  type CallOutcome,
  findError,
  getResult,
  isUnauthorized,
  ServerCall,
} from './server-call.ts';
import { createServerSessions, routeToSession, ServerSession } from './sessions.ts';
import type { HttpLink, ServerKnowledge } from './stateless-protocol.ts';

export type SessionEra = ReturnType<typeof speakSessionEra>;

/** Distinguishes the server's session records from those of other servers. */
export const nameHttpServer = ({ name, url }: HttpUpstreamConfig): string => `${name} ${url}`;

const REFUSAL = 'it refuses to begin (initialize)';
/** Longer than a handshake should take, since the first call waits for it. */
const HANDSHAKE_MS = 15_000;
const PING_MS = 5000;
/** MCP "Session Management": visible ASCII; anything else could not be sent back. */
const USABLE_ID = /^[\x21-\x7E]{1,1024}$/;

export function speakSessionEra(
  runtime: UpstreamRuntime,
  config: HttpUpstreamConfig,
  { connection, openCookies }: HttpLink,
  { hasChangedEra, descriptions, listeners, subscriptions, questionStreams }: ServerKnowledge,
) {
  const { clock } = runtime;
  const { timeoutMs } = config;
  const handshakeMs = Math.min(timeoutMs, HANDSHAKE_MS);
  const records = createSessionRecords(runtime, nameHttpServer(config), true);
  const sessions = createServerSessions(clock, records, openCookies, {
    initialize,
    terminate,
    restore,
  });
  const replaceIfLost = createReplaceIfLost(clock, ping, sessions);
  const requests = { timeoutMs, connection, replaceIfLost, notify: listeners.notify };

  async function initialize(caller: UpstreamCaller, isTrial = false): Promise<ServerSession> {
    const cookies = openCookies();
    const params = toInitializeParams(caller.capabilities);
    const call = createOwnCall(caller, { headers: [], cookies }, 'initialize', params);
    call.isHandshake = true;
    call.isTrial = isTrial;
    const outcome = await connection.call(call);
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
    // Best effort: a server may refuse, or be down, and its sessions then expire on their own.
    await connection.send(caller, null, session).catch(() => {});
  }

  /** Repeats the subscriptions and the log level of the lost session. Resources that the server no longer has are skipped. */
  async function restore(caller: UpstreamCaller, session: ServerSession, lost: ServerSession) {
    listeners.move(caller, lost.openStreams > 0);
    // The replica that opened the session has already done this.
    if (session.isFromStore) return;
    if (lost.logLevel !== undefined) void setLogLevel(caller, session, lost.logLevel);
    const sessionId = nameOwnSession(caller);
    const uris = sessionId === undefined ? [] : await subscriptions.read(sessionId).catch(() => []);
    for (const uri of uris)
      await connection
        .call(createOwnCall(caller, session, 'resources/subscribe', { uri }))
        .catch(() => {});
  }

  async function setLogLevel(
    caller: UpstreamCaller,
    session: ServerSession,
    level: ServerSession['logLevel'],
  ) {
    session.logLevel = level;
    // Best effort: a server without logging refuses the request, or never answers it.
    await connection
      .call(createOwnCall(caller, session, 'logging/setLevel', { level }))
      .catch(() => {});
  }

  /** One of the gateway's own requests. */
  function createOwnCall(
    caller: UpstreamCaller,
    { headers, cookies }: Pick<ServerSession, 'headers' | 'cookies'>,
    method: string,
    params: JsonObject,
  ): ServerCall {
    const request = { method, params, signal: new Cancellation(), trace: {} };
    const call = new ServerCall(caller, request, headers, handshakeMs);
    call.cookies = cookies;
    return call;
  }

  /** Tests whether the server accepts requests in this session. Availability and tokens are not affected. @throws UpstreamError */
  function ping(caller: UpstreamCaller, session: ServerSession) {
    const request = { method: 'ping', params: {}, signal: new Cancellation(), trace: {} };
    const call = new ServerCall(caller, request, session.headers, Math.min(timeoutMs, PING_MS));
    call.cookies = session.cookies;
    call.isTrial = true;
    return connection.call(call);
  }

  /**
   * Sends a request in the caller's session. Sends it again in a new session if the server has lost the old one, or in the
   * stateless era if the server has changed to that. A request is never sent again if the session is only possibly lost.
   */
  async function send(
    caller: UpstreamCaller,
    request: UpstreamRequest,
    sendAnew: Upstream['request'],
  ): Promise<JsonObject> {
    const { logLevel } = request;
    let session = sessions.find(caller);
    try {
      session ??= await sessions.open(caller);
    } catch (error) {
      if (isAnswered(error) && (await hasChangedEra(caller, 'session')))
        return sendAnew(caller, request);
      throwAsUnsent(error);
    }
    for (let attempt = 1; ; attempt += 1) {
      const opening = session.canAsk && questionStreams.hold(caller, session, request);
      if (opening) await opening;
      if (logLevel !== undefined && logLevel !== session.logLevel)
        await setLogLevel(caller, session, logLevel);
      const outcome = await connection.call(new SessionCall(requests, caller, session, request));
      if (outcome.kind === 'result') {
        session.hasServed = true;
        return outcome.result;
      }
      const isLost = isSessionLost(session, outcome);
      const mayBeForeign = attempt === 1 && (isLost || isOfOtherEra(outcome));
      if (mayBeForeign && (await hasChangedEra(caller, 'session')))
        return sendAnew(caller, request);
      // The replacement may come from another replica, and be lost as well: then the request is sent a third and last time.
      if (isLost && (attempt === 1 || (attempt === 2 && session.isFromStore))) {
        session = await sessions.replace(caller, session).catch(throwAsUnsent);
        continue;
      }
      if (!isLost && mayBeLost(session, outcome)) await checkSession(caller, session, outcome);
      return getResult(outcome);
    }
  }

  /** @throws UpstreamError if the session was lost and has been replaced, or if the server refuses its credentials. */
  async function checkSession(
    caller: UpstreamCaller,
    session: ServerSession,
    outcome: CallOutcome,
  ): Promise<void> {
    const state = await replaceIfLost(caller, session);
    if (state.kind === 'refused') {
      // The request itself may have been carried out, whatever happened to the later check.
      const wasRefused = outcome.kind === 'refused' && !mayBeCarriedOut(toRefusal(outcome).failure);
      throw wasRefused ? state.error : toOtherFailure(state.error, 'interrupted');
    }
    if (state.kind !== 'replaced') return;
    const answer = outcome.kind === 'refused' ? String(outcome.status) : 'an error';
    const lost = `it answered ${answer} to a session that it had lost, and a new one was opened`;
    throw new UpstreamError('session_lost', lost);
  }

  /** The change is recorded first, so that a session that replaces this one also subscribes. */
  async function changeSubscription(
    { sessionId, uri, isWanted }: SubscriptionChange,
    ...sent: Parameters<typeof send>
  ): Promise<JsonObject> {
    await subscriptions.note(sessionId, uri, isWanted);
    try {
      return await send(...sent);
    } catch (error) {
      if (isWanted) await subscriptions.note(sessionId, uri, false).catch(() => {});
      throw error;
    }
  }

  return {
    sessions,
    replaceIfLost,
    /** `sendAnew` resends a request that was not carried out because the server no longer uses sessions. */
    request(caller: UpstreamCaller, request: UpstreamRequest, sendAnew: Upstream['request']) {
      const change = SUBSCRIBING.has(request.method)
        ? readSubscriptionChange(caller, request)
        : undefined;
      return change === undefined
        ? send(caller, request, sendAnew)
        : changeSubscription(change, caller, request, sendAnew);
    },
    /** Opens a session only to see the server's response, and ends it at once. */
    introduce: async (caller: UpstreamCaller) => terminate(caller, await initialize(caller)),
    /** Uses a session of its own, which is ended at once. @throws UpstreamError */
    async isTokenRefused(caller: UpstreamCaller) {
      try {
        const session = await initialize(caller, true);
        // Some servers let any caller initialize.
        const outcome = await ping(caller, session).finally(() => terminate(caller, session));
        return isUnauthorized(outcome);
      } catch (error) {
        if (isUnauthorizedError(error)) return true;
        throw error;
      }
    },
  };
}

/** Shared by the requests of all sessions at a server. */
interface SessionRequests {
  readonly timeoutMs: number;
  readonly connection: HttpConnection;
  readonly replaceIfLost: ReturnType<typeof createReplaceIfLost>;
  /** Receives a notification that does not belong to a request. */
  readonly notify: ServerListeners['notify'];
}

/** A call within a session. It is one of the session's open requests, and the server may ask its client. */
class SessionCall extends ServerCall {
  private readonly requests: SessionRequests;
  private readonly session: ServerSession;

  constructor(
    requests: SessionRequests,
    caller: UpstreamCaller,
    session: ServerSession,
    request: UpstreamRequest,
  ) {
    const traced = traceInHeaders(request);
    const { headers } = session;
    super(
      caller,
      request,
      traced.length === 0 ? headers : [...headers, ...traced],
      requests.timeoutMs,
    );
    this.requests = requests;
    this.session = session;
    this.cookies = session.cookies;
    this.openRequests = session.openRequests;
    this.resumeHeaders = headers;
  }

  override toParams(): JsonObject {
    return toSessionParams(this.request, this.id);
  }

  protected override async onRequest(message: ServerRequest): Promise<void> {
    const { caller, request, session } = this;
    const response = await session.questions.answer(message, request.onRequest?.bind(request));
    // Without credentials nothing can be sent: the server waits for an answer that never comes, until the call ends.
    if (response !== undefined)
      await this.requests.connection.send(caller, response, session).catch(() => {});
  }

  protected override onNotification(message: ServerNotification): void {
    const { caller, request, session } = this;
    if (routeToRequest(message, this.id, request) || routeToSession(message, session)) return;
    this.requests.notify(caller, message);
  }

  protected override onAbandon(reason: string): void {
    const params = { requestId: this.id, reason };
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params };
    this.requests.connection.send(this.caller, cancelled, this.session).catch(() => {});
  }

  override async replaceSessionIfLost(): Promise<boolean> {
    const { requests, session, caller } = this;
    if (session.id === undefined) return false;
    return (await requests.replaceIfLost(caller, session, true)).kind === 'replaced';
  }
}
