// Which refusals say that a request of the session era was not run, so that it may be sent once more.
import { UpstreamError } from '../upstream.ts';
import { findError } from './outcome.ts';
import type { CallOutcome, Refusal } from './server-call.ts';
import type { ServerSession } from './server-session.ts';

/** Whether a handshake failed by what the server answered: what failed on the way has a cause. */
export const isAnswered = (error: unknown): boolean =>
  error instanceof UpstreamError &&
  error.cause === undefined &&
  (error.failure === 'unavailable' || error.failure === 'invalid');

/**
 * MCP "Session Management": 404 is the answer to a session that is gone. Some servers say 400 instead, with an error
 * that names the session and no request. Any other 400 may come from a call that has run.
 */
export const isSessionLost = ({ id }: ServerSession, outcome: CallOutcome): boolean =>
  id !== undefined &&
  outcome.kind === 'refused' &&
  (outcome.status === 404 ||
    (outcome.status === 400 &&
      namesNoRequest(outcome) &&
      /session|not initialized/i.test(findError(outcome)?.message ?? '')));

/** 2026-07-28: `HeaderMismatch`, `MissingRequiredClientCapability`, `UnsupportedProtocolVersion`. */
const ERA_CODES: readonly unknown[] = [-32020, -32021, -32022];

/** Whether a server of the stateless era may have said it, which is then to be asked. */
export const isOfOtherEra = (outcome: CallOutcome): boolean =>
  outcome.kind === 'refused' &&
  [400, 404, 405].includes(outcome.status) &&
  (namesNoRequest(outcome) || ERA_CODES.includes(findError(outcome)?.code));

const namesNoRequest = ({ body }: Refusal): boolean => typeof body?.id !== 'number';
