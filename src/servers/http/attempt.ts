// A request of JSON-RPC as it is sent, nearly always once: again where its connection broke, or where there is another token.

import type { IncomingHttpHeaders } from 'node:http';
import type { JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import type { CredentialHeaders, NoteRefusal } from '../../mcp/upstream/connection-ports.ts';
import type { TokenRefusal } from '../../mcp/upstream/connections.ts';
import type { RequestHeaders } from '../../mcp/upstream/envelope.ts';
import { type UpstreamCaller, UpstreamError } from '../../mcp/upstream/upstream.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import type { Clock, Deadline } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import {
  readServerMessage,
  type ServerNotification,
  type ServerRequest,
} from '../messages/server-message.ts';
import type { ExchangeEnd, ExchangeListener, ExchangeRequest } from './exchange.ts';
import { ConnectionError, toRefusal } from './failures.ts';
import type { SessionCookies } from './session-cookies.ts';

/** Headers by which a request names its session at the server, and the session's cookies; undefined if none are kept. */
export interface SessionHeaders {
  readonly headers: RequestHeaders;
  readonly cookies?: SessionCookies | undefined;
}

/** `Result` is what its outcome means to whoever sends it. */
export interface Sending<Result> extends SessionHeaders {
  readonly caller: UpstreamCaller;
  readonly method: string;
  /** May be called again: what is sent once more has another id then. */
  toParams(id: number): JsonObject;
  /** For the GET by which an answer is read on whose stream has ended; undefined in an era whose streams end with their connection. */
  readonly resumeHeaders?: RequestHeaders;
  /** Milliseconds without progress; they stand still while the server waits for an answer of ours. */
  readonly timeoutMs: number;
  readonly signal?: CancelSignal | undefined;
  /** Its answer alone does not show that the server can be used. */
  readonly isHandshake?: true;
  /** Sent only to see what the server refuses: nothing else follows from how it ends. */
  readonly isTrial?: true;
  /** It is about to be sent. */
  onStart?(deadline: Deadline): void;
  /** Resolves once the server has its answer. Never rejects. */
  onRequest?(message: ServerRequest): Promise<void>;
  onNotification?(message: ServerNotification, id: number): void;
  /** Nobody waits any more, or it took too long. */
  onAbandon?(id: number, reason: string): void;
  /** True if a 401 is about the session, and not about the token. */
  isAboutSession?(): Promise<boolean>;
  /** The message sent with the last id has ended, however it did. */
  onSettled?(): void;
  /**
   * Makes the result of the last outcome; may throw. Not by a promise of the outcome: each between a server and its caller costs
   * both.
   */
  conclude(outcome: CallOutcome): Result | Promise<Result>;
}

/** For those who look at the outcome themselves. */
export const toOutcome = (outcome: CallOutcome): CallOutcome => outcome;

/** One message of a call, and what may still go wrong without that the call fails. */
export interface Attempt<Result> {
  readonly sending: Sending<Result>;
  readonly id: number;
  readonly exchange: ExchangeRequest;
  /** Sent with it. */
  readonly credentials: CredentialHeaders;
  /** Its token may be refused. */
  readonly mayBeRefused: boolean;
  /** Its connection may break. */
  readonly mayBreak: boolean;
}

/** Sends the calls of a server. */
export interface CallSender {
  readonly clock: Clock;
  /** Told how each call went: whether the server can be reached is seen by that. */
  readonly judge: {
    noteOutcome(outcome: CallOutcome, isHandshake: boolean): void;
    noteFailure(failure: UpstreamError): void;
  };
  /** Undefined where what the server says of a token changes nothing. */
  readonly noteRefusal: NoteRefusal | undefined;
  /** Asks the server itself. @throws UpstreamError */
  isTokenRefused(caller: UpstreamCaller): Promise<boolean>;
  /** Something came that nobody waits for. */
  readonly onStray: (words: string) => void;
  /** All may go wrong unless told. */
  call<Result>(
    sending: Sending<Result>,
    mayBeRefused?: boolean,
    mayBreak?: boolean,
  ): Promise<Result>;
  /** Opens a stream that begins after this event; undefined once the server may no longer be asked. */
  reopen(
    sending: Sending<unknown>,
    lastEventId: string,
    listener: ExchangeListener,
  ): Promise<() => void> | undefined;
}

/** The result of a call by how it ended. May throw, as what follows may. */
export function concludeCall<Result>(
  sender: CallSender,
  attempt: Attempt<Result>,
  outcome: CallOutcome,
): Result | Promise<Result> {
  const { noteRefusal } = sender;
  const refusal = findTokenRefusal(outcome);
  return refusal === undefined || noteRefusal === undefined || attempt.sending.isTrial
    ? finish(sender, attempt.sending, outcome)
    : concludeRefusal(sender, attempt, outcome, refusal, noteRefusal);
}

/** Noted before whoever waits goes on. */
function finish<Result>({ judge }: CallSender, sending: Sending<Result>, outcome: CallOutcome) {
  if (!sending.isTrial) judge.noteOutcome(outcome, sending.isHandshake === true);
  return sending.conclude(outcome);
}

/**
 * §24.4: a request that was refused for its token was not carried out: it is sent once more where there is another token. It may
 * have been refused by what is behind the server: so the server itself is asked before a login is needed.
 */
async function concludeRefusal<Result>(
  sender: CallSender,
  { sending, credentials, mayBeRefused }: Attempt<Result>,
  outcome: CallOutcome,
  refusal: TokenRefusal,
  noteRefusal: NoteRefusal,
): Promise<Result> {
  const { caller } = sending;
  if (refusal.status === 401 && (await sending.isAboutSession?.()))
    return finish(sender, sending, outcome);
  const hasOther = await noteRefusal(caller, credentials, refusal, () =>
    sender.isTokenRefused(caller),
  );
  return hasOther && mayBeRefused ? sender.call(sending, false) : finish(sender, sending, outcome);
}

/** @throws UpstreamError unless it is sent once more. */
export function concludeFailure<Result>(
  { judge, call }: CallSender,
  { sending, mayBeRefused, mayBreak }: Attempt<Result>,
  error: UpstreamError,
): Promise<Result> {
  const isBroken = error instanceof ConnectionError && error.isBroken;
  if (mayBreak && !sending.signal?.aborted && isBroken) return call(sending, mayBeRefused, false);
  if (!sending.isTrial) judge.noteFailure(error);
  throw error;
}

/** RFC 6750 §3.1: the token is refused, or is good for less. Any other 403 concerns what was asked for. */
function findTokenRefusal(outcome: CallOutcome): TokenRefusal | undefined {
  if (outcome.kind !== 'refused') return undefined;
  const challenge = outcome.headers['www-authenticate'];
  if (outcome.status === 401) return { status: 401, challenge };
  return outcome.status === 403 && /\binsufficient_scope\b/.test(challenge ?? '')
    ? { status: 403, challenge }
    : undefined;
}

// The meaning of a call's outcome to its caller.

export type CallOutcome =
  | { readonly kind: 'result'; readonly result: JsonObject; readonly headers: IncomingHttpHeaders }
  | { readonly kind: 'error'; readonly error: JsonRpcErrorObject }
  | Refusal;

export type Refusal = Extract<ExchangeEnd, { kind: 'refused' }>;

export const isUnauthorized = (outcome: CallOutcome): boolean =>
  outcome.kind === 'refused' && outcome.status === 401;

/** @throws UpstreamError */
export function getResult(outcome: CallOutcome): JsonObject {
  if (outcome.kind === 'result') return outcome.result;
  const error = findError(outcome);
  if (error === undefined && outcome.kind === 'refused') throw toRefusal(outcome);
  throw new UpstreamError('error', 'it answered with an error', {
    ...(error !== undefined && { jsonRpcError: error }),
  });
}

/** The error of JSON-RPC, whatever the status it came with; that of 401 and 403 is HTTP's. */
export function findError(outcome: CallOutcome): JsonRpcErrorObject | undefined {
  if (outcome.kind === 'error') return outcome.error;
  if (outcome.kind === 'result' || outcome.status === 401 || outcome.status === 403)
    return undefined;
  const message = readServerMessage(outcome.body);
  return message?.kind === 'error' ? message.error : undefined;
}
