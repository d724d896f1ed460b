// §18.3: detects lost sessions, and replaces them. After a restart a server should answer 404 to sessions that it no longer knows.
// Many answer 401, 400, 410, 503 or something else, which may concern the credentials, the request, or the whole server instead: a
// `ping` finds out, though not each time (`ASK_AGAIN_MS`).

import {
  CredentialError,
  isUnanswered,
  type UpstreamCaller,
  UpstreamError,
} from '../../mcp/upstream/upstream.ts';
import type { Clock } from '../../platform/clock.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import { readEchoedNumber } from '../messages/server-message.ts';
import { type CallOutcome, findError } from './server-call.ts';
import type { ServerSession, ServerSessions } from './sessions.ts';

type SessionState =
  /** The session responds, or a new session is refused in the same way: the refusal was not about the session. */
  | { readonly kind: 'kept' }
  /** The server had lost the session, and a new one has replaced it. */
  | { readonly kind: 'replaced' }
  /** `ping` is refused, and no new session can be opened. */
  | { readonly kind: 'refused'; readonly error: UpstreamError }
  /** The session was probed a moment ago, or gave no answer. */
  | { readonly kind: 'unknown' };

/**
 * Interval between probes of a session that answers no request: limits the cost of a server that refuses all requests, or loses
 * every session.
 */
const ASK_AGAIN_MS = 5000;

/** The probe is a `ping` in the session, and if that is refused, one in a possible replacement. It may throw an UpstreamError. */
export function createReplaceIfLost(
  clock: Clock,
  ping: (caller: UpstreamCaller, session: ServerSession) => Promise<CallOutcome>,
  sessions: ServerSessions,
) {
  const questions = createSingleFlight<ServerSession, SessionState>();

  async function ask(caller: UpstreamCaller, session: ServerSession): Promise<SessionState> {
    session.askedAt = clock.monotonic();
    session.hasServed = false;
    try {
      const answer = await ping(caller, session);
      if (!isRefusal(session, answer)) return KEPT;
      const next = await sessions.replace(caller, session, async (other) => {
        const otherAnswer = await ping(caller, other);
        // A server that refuses `ping`, or refuses the credentials for everything except `initialize`, gives the same answer in
        // every session.
        const isAlike =
          answer.kind === 'refused'
            ? otherAnswer.kind === 'refused' && otherAnswer.status === answer.status
            : otherAnswer.kind === answer.kind;
        if (isRefusal(session, otherAnswer) && isAlike) throw new RefusedAlike();
      });
      next.askedAt = clock.monotonic();
      return REPLACED;
    } catch (error) {
      if (error instanceof RefusedAlike) return KEPT;
      // Missing credentials, or a missing answer, say nothing about the session.
      return isAnswered(error) ? { kind: 'refused', error } : UNKNOWN;
    }
  }

  /**
   * Probes the session, and replaces it if the server has lost it. Single flight per session. With `mustAsk`, probes even if it was
   * probed a moment ago. Never rejects.
   */
  return async function replaceIfLost(
    caller: UpstreamCaller,
    session: ServerSession,
    mustAsk = false,
  ): Promise<SessionState> {
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

const isRefusal = (session: ServerSession, answer: CallOutcome) =>
  isSessionLost(session, answer) || mayBeLost(session, answer);

class RefusedAlike extends UpstreamError {
  constructor() {
    super('unavailable', 'it refuses a new session, too');
  }
}

// Determines from a refusal whether a session is lost, so that the request was not run and may be sent again, or may be lost.

/** True if a handshake failed because of the server's answer: a connection failure has a cause. */
export const isAnswered = (error: unknown): error is UpstreamError =>
  error instanceof UpstreamError &&
  !(error instanceof CredentialError) &&
  error.cause === undefined &&
  (isUnanswered(error) || error.failure === 'invalid');

/**
 * MCP "Session Management": 404 is the answer for a lost session. Some servers answer 400 instead, with an error that names the
 * session and no request. Any other 400 may belong to a call that has run.
 */
export const isSessionLost = ({ id }: ServerSession, outcome: CallOutcome): boolean =>
  id !== undefined &&
  outcome.kind === 'refused' &&
  (outcome.status === 404 ||
    (outcome.status === 400 &&
      namesNoRequest(outcome) &&
      SPEAKS_OF_SESSION.test(findError(outcome)?.message ?? '')));

const SPEAKS_OF_SESSION = /session|not initialized/i;

/**
 * True if the server may have lost the session, and not only refused this request: many servers do not answer 404 after a restart.
 * Such a request may have been carried out.
 */
export const mayBeLost = ({ id }: ServerSession, outcome: CallOutcome): boolean =>
  id !== undefined &&
  (outcome.kind === 'error'
    ? SPEAKS_OF_SESSION.test(outcome.error.message)
    : outcome.kind === 'refused' && outcome.status >= 400 && !OF_REQUEST.has(outcome.status));

/** The request was too long, or there were too many: never about the session. */
const OF_REQUEST: ReadonlySet<number> = new Set([413, 429]);

/** 2026-07-28: `HeaderMismatch`, `MissingRequiredClientCapability`, `UnsupportedProtocolVersion`. */
const ERA_CODES: readonly unknown[] = [-32020, -32021, -32022];

/** True if the response may come from a server of the stateless era, which then has to be queried. */
export const isOfOtherEra = (outcome: CallOutcome): boolean =>
  outcome.kind === 'refused' &&
  [400, 404, 405].includes(outcome.status) &&
  (namesNoRequest(outcome) || ERA_CODES.includes(findError(outcome)?.code));

const namesNoRequest = ({ body }: Extract<CallOutcome, { kind: 'refused' }>) =>
  readEchoedNumber(body?.id) === undefined;
