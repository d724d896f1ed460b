// §18.3: an MCP server behind the gateway, whatever its transport and era.
import type { JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { TraceContext } from '../../telemetry/tracing/tracing.ts';
import { type ClientCapabilities, NO_CAPABILITIES } from '../catalog/client-requests.ts';
import type { ListName } from '../protocol/list-kinds.ts';
import type { LogSeverity } from '../protocol/methods.ts';
import type { Era } from '../protocol/revisions.ts';
import {
  type Access,
  type ConnectionInfo,
  type ConnectionOwner,
  nameConnectionOwner,
} from './connections.ts';
import type { UpstreamConfig, UpstreamFacts } from './upstream-config.ts';

export interface Upstream {
  readonly config: UpstreamConfig;
  readonly facts: UpstreamFacts;
  /** True if it could be reached at the last attempt; undefined before the first. */
  readonly isUp: boolean | undefined;
  /** The era of its last answer to any caller; undefined before the first. */
  readonly era: Era | undefined;
  /** Set for a server that users log in to themselves (`"auth": {"type": "oauth"}`), otherwise undefined. */
  readonly logins?: UpstreamLogins | undefined;
  /**
   * The server's last description of itself to this caller; connects if there is none. One for each user or process, if lists are
   * kept that way.
   *
   * @throws UpstreamError
   */
  describe(caller: UpstreamCaller): Promise<UpstreamDescription>;
  /** The same, as far as known. */
  peekDescription(caller: UpstreamCaller): UpstreamDescription | undefined;
  /**
   * Sends a request and resolves to its result as the server wrote it, including `input_required`. Ids and progress tokens are
   * the transport's own. Opens a session or starts a process if one is needed; if an HTTP server no longer knows its session,
   * opens another and repeats the request: a second time if that one was another replica's, and is lost, too.
   *
   * @throws UpstreamError
   */
  request(caller: UpstreamCaller, request: UpstreamRequest): Promise<JsonObject>;
  /**
   * Reports changes until the returned function is called. For the gateway itself: of lists. For a client's session or
   * subscription: also of the resources that it subscribed to (`uris` in the stateless era).
   */
  listen(caller: UpstreamCaller, listener: UpstreamListener, uris?: readonly string[]): () => void;
  /** Called whenever `isUp` changes. */
  onStateChange(listener: (isUp: boolean, reason: string) => void): void;
  /** Ends what was opened for the client's session, if credentials still allow it. Never rejects. */
  endSession(caller: UpstreamCaller): Promise<void>;
  /** Accepts no further requests, lets those in flight finish (`graceMs`), then ends sessions, processes and timers. */
  close(graceMs: number): Promise<void>;
}

/** The part of the runtime that is needed to reach a server, by a gateway or by a command. */
export type UpstreamRuntime = Pick<
  Runtime,
  'config' | 'clock' | 'log' | 'metrics' | 'fetch' | 'store' | 'getSeal'
>;

/** The caller on whose behalf a server is queried. */
export interface UpstreamCaller {
  /** Undefined for the gateway itself, and without authentication. */
  readonly user: UserContext | undefined;
  /** OAuth client ID of the caller; undefined if unknown. */
  readonly clientId: string | undefined;
  /** ID of the client's session; undefined in the stateless era, and for the gateway itself. */
  readonly sessionId: string | undefined;
  /**
   * What the client declared, and so can be asked. Transports see it without roots, unless the server's `roots` allows them
   * (`withholdRoots`).
   */
  readonly capabilities: ClientCapabilities;
  /**
   * The connection used for the request (§24), if users log in to the server themselves: cached data about the server belongs to
   * the connection. Undefined until a request is about to be sent, and for all other servers.
   */
  readonly connectionId?: string | undefined;
}

/**
 * Identifies what a client's session owns at the server; undefined for callers without one. It changes with the connection
 * (§24.4): sessions at the server, and their subscriptions, belong to one account.
 */
export const nameOwnSession = ({
  sessionId,
  connectionId,
}: Pick<UpstreamCaller, 'sessionId' | 'connectionId'>): string | undefined =>
  sessionId === undefined || connectionId === undefined
    ? sessionId
    : `${sessionId}:${connectionId}`;

/** The gateway itself: it requests lists, and listens to their changes. Compared by identity. */
export const GATEWAY_CALLER: UpstreamCaller = {
  user: undefined,
  clientId: undefined,
  sessionId: undefined,
  capabilities: NO_CAPABILITIES,
};

export interface UpstreamRequest {
  readonly method: string;
  /** Without the transport's own members of `_meta`: progress token, trace, and the stateless era's envelope. */
  readonly params: JsonObject;
  /** Aborted when no caller is waiting any more: the server is notified. */
  readonly signal: CancelSignal;
  /** W3C trace context of the caller. */
  readonly trace: TraceContext;
  /** Least severe log message that the client wants; undefined for none. */
  readonly logLevel?: LogSeverity | undefined;
  /** The name or URI of the requested item, for `Mcp-Name`. */
  readonly name?: string | undefined;
  /** Arguments that are also sent in headers (`x-mcp-header`, stateless era only), as header name and value. */
  readonly mirrored?: Readonly<Record<string, string>> | undefined;
  /** Params of `notifications/progress` about this request; if absent, progress is not requested. */
  readonly onProgress?: ((params: JsonObject) => void) | undefined;
  /** Params of `notifications/message` that belong to this request. */
  readonly onLog?: ((params: JsonObject) => void) | undefined;
  /**
   * Answers a request of the server (session era) that belongs to this one: elicitation, sampling, roots.
   * Without it, and if the call that the request belongs to cannot be determined, the server gets an error. The signal is aborted
   * when the server no longer wants an answer.
   */
  onRequest?(request: UpstreamQuestion, signal: CancelSignal): Promise<JsonObject>;
  /**
   * Called when the server reports, while the request continues, that the user has completed an interaction at a URL (session
   * era). False if this request did not ask for it.
   */
  onElicitationComplete?: ((elicitationId: string) => boolean) | undefined;
}

/** JSON-RPC 2.0 §5.1. */
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;

/** A request from the server, as it wrote it. */
export interface UpstreamQuestion {
  readonly method: string;
  readonly params: JsonObject;
}

/** The answer to `initialize` or `server/discover`. */
export interface UpstreamDescription {
  readonly era: Era;
  readonly protocolVersion: string;
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject;
  readonly instructions: string | undefined;
}

export interface UpstreamListener {
  /** `notifications/<list>/list_changed`, and whenever one could have been missed. */
  listChanged(list: ListName): void;
  /** The server notified another caller: the change may concern a list that all share. */
  listMayHaveChanged?(list: ListName): void;
  resourceUpdated(uri: string): void;
  /** The user has completed an interaction at a URL (MCP 2025-11-25 "Elicitation"). */
  elicitationCompleted?(elicitationId: string): void;
  /** Params of `notifications/message` that do not belong to a call, but to the caller's own session at the server. */
  logged?(params: JsonObject): void;
}

/** §24: a server that users log in to themselves: the connection of each caller, and its state. */
export interface UpstreamLogins {
  /** Synchronous if the connection is cached. Never rejects. */
  getAccess(caller: UpstreamCaller): LoginAccess | Promise<LoginAccess>;
  /** The last known one, without a request. */
  peekConnectionId(caller: UpstreamCaller): string | undefined;
  /** The owner of the caller's connection; undefined for those who can have none. */
  findOwner(caller: UpstreamCaller): ConnectionOwner | undefined;
  /** For the caller: the account that they are connected as. @throws UpstreamError if the store is unavailable. */
  describe(caller: UpstreamCaller): Promise<ConnectionInfo | undefined>;
  /** A connection was made, ended, or needs a login: everything opened with the previous one ends. */
  noteChange(owner: ConnectionOwner): void;
}

export type LoginAccess =
  | Access
  /** The caller can have no connection, whatever happens. */
  | { readonly kind: 'impossible'; readonly reason: string };

/** Why a request to a server failed. */
export type UpstreamFailure =
  /** It cannot be reached, or refuses the gateway: the request was not sent, or not carried out. */
  | 'unavailable'
  /** The request was sent, and its process or connection ended without an answer, or a proxy or the server failed (5xx). */
  | 'interrupted'
  /** It did not answer in time. */
  | 'timeout'
  /** It had lost the session, and did not say whether it carried out the request. There is a new session now. */
  | 'session_lost'
  /** Its answer is invalid: not JSON, incomplete, too long, or with a different id. */
  | 'invalid'
  /** The gateway gave up: answers took too much memory, or too much processing time. */
  | 'overloaded'
  /** No caller is waiting any more. */
  | 'aborted'
  /** It answered with a JSON-RPC error, which is for the client. */
  | 'error';

/** `message` is also for the client's model: never a secret, an address or a header. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly failure: UpstreamFailure;
  /** The reason alone, without what the gateway does next. */
  readonly reason: string;
  /** The same for operators: it may name an address, without what could be secret in it. */
  readonly logReason: string;
  /** Like `message`, with `logReason`. */
  readonly logMessage: string;
  /** The `error` member of the response, if `failure` is `error`. */
  readonly jsonRpcError: JsonRpcErrorObject | undefined;

  constructor(
    failure: UpstreamFailure,
    reason: string,
    options: {
      readonly cause?: unknown;
      readonly jsonRpcError?: JsonRpcErrorObject;
      /** The gateway's next step. */
      readonly next?: string;
      /** Replaces `reason`, for operators only. */
      readonly logReason?: string | undefined;
    } = {},
  ) {
    const addNext = (words: string) =>
      options.next === undefined ? words : `${words}; ${options.next}`;
    super(addNext(reason), { cause: options.cause });
    this.reason = reason;
    this.logReason = options.logReason ?? reason;
    this.logMessage = addNext(this.logReason);
    this.failure = failure;
    this.jsonRpcError = options.jsonRpcError;
  }
}

/** True if there was no answer at all, or one that comes from a server or a proxy that fails. */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof UpstreamError && ['unavailable', 'interrupted'].includes(error.failure);

/**
 * Rethrows the failure of a handshake for the request that waited for it, and was not sent.
 *
 * @throws UpstreamError always; rethrows anything that is not one.
 */
export function throwAsUnsent(thrown: unknown): never {
  if (!(thrown instanceof UpstreamError) || !mayBeCarriedOut(thrown.failure)) throw thrown;
  throw toOtherFailure(thrown, 'unavailable');
}

/** The same reason, for another kind of failure. */
export const toOtherFailure = (
  { message, logMessage: logReason, cause }: UpstreamError,
  failure: UpstreamFailure,
): UpstreamError => new UpstreamError(failure, message, { logReason, cause });

/** True if the server may have carried out a request that failed like this. */
export const mayBeCarriedOut = (failure: UpstreamFailure): boolean => !UNDONE.has(failure);

const UNDONE: ReadonlySet<UpstreamFailure> = new Set(['unavailable', 'aborted', 'error']);

/**
 * The caller has no credentials for the server. Nothing was sent: this says nothing about the server, and
 * concerns only this caller.
 */
export class CredentialError extends UpstreamError {
  constructor(reason: string, options: { readonly cause?: unknown } = {}) {
    super('unavailable', reason, options);
  }
}

/** The caller has to log in to the server: the doors lead there (§24.3). */
export class ConnectionNeeded extends CredentialError {
  /** Why there is no usable connection; undefined if there never was one. Never a secret. */
  readonly why: string | undefined;
  /** The scopes that the server requires in addition to the granted ones. */
  readonly scopes: readonly string[] | undefined;

  constructor({ why, scopes }: Pick<ConnectionNeeded, 'why' | 'scopes'>) {
    super(why ?? 'its user has not logged in to it');
    this.why = why;
    this.scopes = scopes;
  }
}

/** True if the caller's requests use the connection of this owner. */
export function isCallerOf(
  { findOwner }: Pick<UpstreamLogins, 'findOwner'>,
  caller: UpstreamCaller,
  owner: ConnectionOwner,
): boolean {
  const own = findOwner(caller);
  return own !== undefined && nameConnectionOwner(own) === nameConnectionOwner(owner);
}

/** The caller, whose request uses this connection. */
export const bindCaller = (caller: UpstreamCaller, connectionId: string): UpstreamCaller => ({
  ...caller,
  connectionId,
});
