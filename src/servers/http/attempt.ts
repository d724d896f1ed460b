// A request of JSON-RPC as it is sent, nearly always once: again where its connection broke, or where there is another token.

import type { CredentialHeaders, NoteRefusal } from '../../mcp/upstream/connection-ports.ts';
import type { TokenRefusal } from '../../mcp/upstream/connections.ts';
import type { RequestHeaders } from '../../mcp/upstream/envelope.ts';
import type { UpstreamCaller, UpstreamError } from '../../mcp/upstream/upstream.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import type { Deadline } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { ServerNotification, ServerRequest } from '../messages/server-message.ts';
import type { Judge } from './availability.ts';
import type { ExchangeListener, ExchangeRequest } from './exchange.ts';
import { ConnectionError } from './failures.ts';
import type { CallOutcome, ServerCall } from './server-call.ts';
import type { SessionCookies } from './session-cookies.ts';

/** `Result` is what its outcome means to whoever sends it. */
export interface Sending<Result> {
  readonly method: string;
  /** May be called again: what is sent once more has another id then. */
  toParams(id: number): JsonObject;
  readonly headers: RequestHeaders;
  /** Cookies of its session; undefined if none are kept. */
  readonly cookies?: SessionCookies | undefined;
  /** For the GET by which an answer is read on whose stream has ended; undefined where that cannot be. */
  readonly resumeHeaders?: RequestHeaders;
  readonly timeoutMs: number;
  readonly signal?: CancelSignal | undefined;
  /** Its answer alone does not show that the server can be used. */
  readonly isHandshake?: true;
  /** Sent only to see what the server refuses: nothing else follows from how it ends. */
  readonly isTrial?: true;
  onStart?(deadline: Deadline): void;
  onRequest?(message: ServerRequest): Promise<void>;
  onNotification?(message: ServerNotification, id: number): void;
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

/** A call, and what may still go wrong without that it fails. */
export interface Tried<Result> {
  readonly caller: UpstreamCaller;
  readonly sending: Sending<Result>;
  /** Its connection may break. */
  readonly mayBreak: boolean;
  /** Its token may be refused. */
  readonly mayBeRefused: boolean;
}

export const toFirstTry = <Result>(
  caller: UpstreamCaller,
  sending: Sending<Result>,
): Tried<Result> => ({ caller, sending, mayBreak: mayRepeat(sending), mayBeRefused: true });

/** Sends the calls of a server. */
export interface CallSender {
  /** Told how each call went: whether the server can be reached is seen by that. */
  readonly judge: Pick<Judge, 'noteOutcome' | 'noteFailure'>;
  /** Undefined where what the server says of a token changes nothing. */
  readonly noteRefusal: NoteRefusal | undefined;
  /** Asks the server itself. @throws UpstreamError */
  isTokenRefused(caller: UpstreamCaller): Promise<boolean>;
  readonly onStray: (words: string) => void;
  tryCall<Result>(tried: Tried<Result>): Promise<Result>;
  /** Undefined once the server may no longer be asked. */
  reopen(
    caller: UpstreamCaller,
    session: SessionHeaders,
    listener: ExchangeListener,
  ): Promise<() => void> | undefined;
}

/** Headers by which a request names its session at the server, and the session's cookies; undefined if none are kept. */
export interface SessionHeaders {
  readonly headers: RequestHeaders;
  readonly cookies: SessionCookies | undefined;
}

/** One that is sent: nearly always the only one of its call. A class, since every call has one. */
export class Attempt<Result> implements ServerCall<Result> {
  private readonly sender: CallSender;
  private readonly tried: Tried<Result>;
  /** Sent with it. */
  private readonly credentials: CredentialHeaders;
  readonly id: number;
  readonly exchange: ExchangeRequest;
  readonly timeoutMs: number;
  readonly signal: CancelSignal | undefined;
  readonly canReopen: boolean;
  readonly onStray: CallSender['onStray'];

  constructor(
    sender: CallSender,
    tried: Tried<Result>,
    sent: Pick<ServerCall<Result>, 'id' | 'exchange'> & { readonly credentials: CredentialHeaders },
  ) {
    this.sender = sender;
    this.tried = tried;
    this.credentials = sent.credentials;
    this.id = sent.id;
    this.exchange = sent.exchange;
    this.timeoutMs = tried.sending.timeoutMs;
    this.signal = tried.sending.signal;
    this.canReopen = tried.sending.resumeHeaders !== undefined;
    this.onStray = sender.onStray;
  }

  reopen(lastEventId: string, listener: ExchangeListener): Promise<() => void> | undefined {
    const { caller, sending } = this.tried;
    const { resumeHeaders = [], cookies } = sending;
    const headers = [...resumeHeaders, 'last-event-id', lastEventId];
    return this.sender.reopen(caller, { headers, cookies }, listener);
  }

  onStart(deadline: Deadline): void {
    this.tried.sending.onStart?.(deadline);
  }

  async onRequest(request: ServerRequest): Promise<void> {
    await this.tried.sending.onRequest?.(request);
  }

  onNotification(notification: ServerNotification): void {
    this.tried.sending.onNotification?.(notification, this.id);
  }

  onAbandon(reason: string): void {
    this.tried.sending.onAbandon?.(this.id, reason);
  }

  conclude(outcome: CallOutcome): Result | Promise<Result> {
    this.tried.sending.onSettled?.();
    const { noteRefusal } = this.sender;
    const refusal = findTokenRefusal(outcome);
    return refusal === undefined || noteRefusal === undefined || this.tried.sending.isTrial
      ? this.finish(outcome)
      : this.concludeRefusal(outcome, refusal, noteRefusal);
  }

  /** Noted before whoever waits goes on. */
  private finish(outcome: CallOutcome): Result | Promise<Result> {
    const { sending } = this.tried;
    if (!sending.isTrial) this.sender.judge.noteOutcome(outcome, sending.isHandshake === true);
    return sending.conclude(outcome);
  }

  /**
   * §24.4: a request that was refused for its token was not carried out: it is sent once more where there is another token. It may
   * have been refused by what is behind the server: so the server itself is asked before a login is needed.
   */
  private async concludeRefusal(
    outcome: CallOutcome,
    refusal: TokenRefusal,
    noteRefusal: NoteRefusal,
  ): Promise<Result> {
    const { caller, sending, mayBeRefused } = this.tried;
    if (refusal.status === 401 && (await sending.isAboutSession?.())) return this.finish(outcome);
    const hasOther = await noteRefusal(caller, this.credentials, refusal, () =>
      this.sender.isTokenRefused(caller),
    );
    if (!hasOther || !mayBeRefused) return this.finish(outcome);
    const mayBreak = mayRepeat(sending);
    return this.sender.tryCall({ caller, sending, mayBreak, mayBeRefused: false });
  }

  concludeFailure(error: UpstreamError): Promise<Result> {
    const { sending, mayBreak } = this.tried;
    sending.onSettled?.();
    if (mayBreak && !sending.signal?.aborted && isBroken(error))
      return this.sender.tryCall({ ...this.tried, mayBreak: false });
    if (!sending.isTrial) this.sender.judge.noteFailure(error);
    throw error;
  }
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

/**
 * A server closes connections that were idle for long, maybe just when one is used again. What a tool did by then
 * nobody knows; everything else may be asked twice (RFC 9110 §9.2.2).
 */
const mayRepeat = ({ method }: { readonly method: string }): boolean => method !== 'tools/call';

const isBroken = (failure: unknown): boolean =>
  failure instanceof ConnectionError && failure.isBroken;
