// §18.3: after a restart a server should answer 404 for sessions that it no longer knows. Many answer 401, 400, 410, 503 or something
// else, which may as well concern the credentials, the request, or the whole server. So a `ping` finds out.

import {
  CredentialError,
  type UpstreamCaller,
  UpstreamError,
} from '../../mcp/upstream/upstream.ts';
import type { Clock } from '../../platform/clock.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import { toOutcome } from './attempt.ts';
import type { HttpConnection } from './http-connection.ts';
import type { CallOutcome } from './server-call.ts';
import { isSessionLost, mayBeLost, type ServerSession } from './server-session.ts';
import type { ServerSessions } from './sessions.ts';

export type SessionState =
  /** It answers, or a new one is refused in the same way: the refusal was not about the session. */
  | { readonly kind: 'kept' }
  /** The server had lost it, and another one has taken its place. */
  | { readonly kind: 'replaced' }
  /** `ping` is refused, and no new session can be opened. */
  | { readonly kind: 'refused'; readonly error: UpstreamError }
  /** It was asked a moment ago, or gave no answer. */
  | { readonly kind: 'unknown' };

/** Asks once for all that share the session. Never rejects. */
export type FindSessionState = (
  caller: UpstreamCaller,
  session: ServerSession,
  /** Also where it was asked a moment ago. */
  mustAsk?: boolean,
) => Promise<SessionState>;

/** In the session; nothing follows from how it ends. @throws UpstreamError */
export type Ping = (caller: UpstreamCaller, session: ServerSession) => Promise<CallOutcome>;

/** While it answers no request: what refuses each by its nature costs no more than this, nor does a server that loses each session. */
const ASK_AGAIN_MS = 5000;
const PING_MS = 5000;

export const createPing =
  (connection: Pick<HttpConnection, 'call'>, timeoutMs: number): Ping =>
  (caller, { headers, cookies }) =>
    connection.call(caller, {
      method: 'ping',
      toParams: () => ({}),
      headers,
      cookies,
      timeoutMs: Math.min(timeoutMs, PING_MS),
      isTrial: true,
      conclude: toOutcome,
    });

export function createFindSessionState(
  clock: Clock,
  ping: Ping,
  sessions: Pick<ServerSessions, 'find' | 'replace'>,
): FindSessionState {
  const questions = createSingleFlight<ServerSession, SessionState>();

  async function ask(caller: UpstreamCaller, session: ServerSession): Promise<SessionState> {
    session.askedAt = clock.monotonic();
    session.hasServed = false;
    try {
      const answer = await ping(caller, session);
      if (!isRefusal(session, answer)) return KEPT;
      const next = await sessions.replace(caller, session, async (other) => {
        const otherAnswer = await ping(caller, other);
        if (isRefusal(session, otherAnswer) && isAlike(answer, otherAnswer))
          throw new RefusedAlike();
      });
      next.askedAt = clock.monotonic();
      return REPLACED;
    } catch (error) {
      if (error instanceof RefusedAlike) return KEPT;
      return tellsWhy(error) ? { kind: 'refused', error } : UNKNOWN;
    }
  }

  return async function findSessionState(caller, session, mustAsk = false) {
    const underWay = questions.find(session);
    if (underWay !== undefined) return underWay;
    const current = sessions.find(caller);
    if (current !== undefined && current !== session) return REPLACED;
    const mayAsk =
      mustAsk || session.hasServed || clock.monotonic() - session.askedAt >= ASK_AGAIN_MS;
    return mayAsk ? questions.run(session, () => ask(caller, session)) : UNKNOWN;
  };
}

const KEPT: SessionState = { kind: 'kept' };
const REPLACED: SessionState = { kind: 'replaced' };
const UNKNOWN: SessionState = { kind: 'unknown' };

const isRefusal = (session: ServerSession, answer: CallOutcome): boolean =>
  isSessionLost(session, answer) || mayBeLost(session, answer);

/** A server that refuses `ping`, or the credentials for everything but `initialize`, answers alike in each session. */
const isAlike = (one: CallOutcome, other: CallOutcome): boolean =>
  one.kind === 'refused'
    ? other.kind === 'refused' && other.status === one.status
    : other.kind === one.kind;

class RefusedAlike extends UpstreamError {
  constructor() {
    super('unavailable', 'it refuses a new session, too');
  }
}

/** A credential that cannot be had, or an answer that does not come, says nothing of the server. */
const tellsWhy = (error: unknown): error is UpstreamError =>
  error instanceof UpstreamError &&
  !(error instanceof CredentialError) &&
  error.failure === 'unavailable';
