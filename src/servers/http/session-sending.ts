// A request within a session at the server: what it is sent with, what the server says and asks meanwhile, and what its
// outcome means to the session.

import {
  type RequestHeaders,
  toSessionParams,
  traceInHeaders,
} from '../../mcp/upstream/envelope.ts';
import type { UpstreamCaller, UpstreamRequest } from '../../mcp/upstream/upstream.ts';
import type { Deadline } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import {
  routeToRequest,
  type ServerNotification,
  type ServerRequest,
} from '../messages/server-message.ts';
import type { Sending } from './attempt.ts';
import { type CallOutcome, getResult } from './server-call.ts';
import {
  isOfOtherEra,
  isSessionLost,
  mayBeLost,
  type OpenRequest,
  routeToSession,
  type ServerSession,
} from './server-session.ts';
import type { SessionCookies } from './session-cookies.ts';

/** Sends the request in the era that the server has changed to. */
export type SendAnew = (caller: UpstreamCaller, request: UpstreamRequest) => Promise<JsonObject>;

export interface SentInSession {
  readonly caller: UpstreamCaller;
  readonly request: UpstreamRequest;
  readonly sendAnew: SendAnew;
}

/** A third comes where the server has lost the session of another replica, too: then this one opens its own. */
export type SessionAttempt = 'first' | 'second' | 'third';

/** Sends the requests of all sessions at a server. */
export interface SessionSender {
  readonly timeoutMs: number;
  /** A notification that belongs to no request. */
  onNotification(caller: UpstreamCaller, message: ServerNotification): void;
  tell(caller: UpstreamCaller, session: ServerSession, response: JsonObject): Promise<unknown>;
  cancel(caller: UpstreamCaller, session: ServerSession, params: JsonObject): void;
  sendAgain(lost: ServerSession, sent: SentInSession, attempt: SessionAttempt): Promise<JsonObject>;
  sendElsewhere(
    session: ServerSession,
    sent: SentInSession,
    outcome: CallOutcome,
  ): Promise<JsonObject>;
  /** The error of a request that failed in a session that the server may have lost: it is never sent again. */
  concludeDoubtful(
    session: ServerSession,
    sent: SentInSession,
    outcome: CallOutcome,
  ): Promise<JsonObject>;
  /** True if the session had to be replaced, though the server speaks of credentials. */
  isReplaced(caller: UpstreamCaller, session: ServerSession): Promise<boolean>;
}

/** A class, since every call has one: closures took 2 KB of it. */
export class SessionSending implements Sending<JsonObject>, OpenRequest {
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
  private readonly session: ServerSession;
  private readonly sent: SentInSession;
  private readonly attempt: SessionAttempt;
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
    const { request } = sent;
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
    const { caller, request } = this.sent;
    const { questions } = this.session;
    const response = await questions.answer(message, request.onRequest?.bind(request));
    if (response !== undefined) await this.sender.tell(caller, this.session, response);
  }

  onNotification(message: ServerNotification, id: number): void {
    const { caller, request } = this.sent;
    if (routeToRequest(message, id, request) || routeToSession(message, this.session)) return;
    this.sender.onNotification(caller, message);
  }

  onAbandon(requestId: number, reason: string): void {
    this.sender.cancel(this.sent.caller, this.session, { requestId, reason });
  }

  conclude(outcome: CallOutcome): JsonObject | Promise<JsonObject> {
    const { sender, session, sent, attempt } = this;
    if (outcome.kind === 'result') {
      session.hasServed = true;
      return outcome.result;
    }
    const isLost = isSessionLost(session, outcome);
    if (attempt === 'first' && (isLost || isOfOtherEra(outcome))) {
      return sender.sendElsewhere(session, sent, outcome);
    }
    // The server may have lost that of another replica, too.
    if (attempt === 'second' && isLost && session.isFromStore) {
      return sender.sendAgain(session, sent, 'third');
    }
    return !isLost && mayBeLost(session, outcome)
      ? sender.concludeDoubtful(session, sent, outcome)
      : getResult(outcome);
  }

  async isAboutSession(): Promise<boolean> {
    const { sender, session, sent } = this;
    return session.id !== undefined && sender.isReplaced(sent.caller, session);
  }
}
