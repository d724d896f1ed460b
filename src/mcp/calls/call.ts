// A call of POST /mcp: its message, the record that observers read, and its outcome.
import { catalogue } from '../../errors/catalogue.ts';
import type { GatewayError } from '../../errors/gateway-error.ts';
import type { ListedCall } from '../../http/endpoint/admin-calls.ts';
import type { GetChallenge } from '../../http/endpoint/bearer.ts';
import type { ProtectedCall } from '../../http/endpoint/endpoint.ts';
import type { EndedGrants } from '../../http/endpoint/grants.ts';
import {
  type GatewayRequest,
  type GetProviderToken,
  getHeader,
  readClaimedClient,
  type UserContext,
} from '../../http/endpoint/message.ts';
import { Cancellation, type CancelSignal, toAbortSignal } from '../../platform/cancellation.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { NO_SESSION, type SessionAccess, type SessionLookup } from '../../store/store.ts';
import { NO_TRACE, readTraceContext, type TraceContext } from '../../telemetry/tracing/tracing.ts';
import type { CacheHint } from '../catalog/content.ts';
import type { ServedCatalog, Target } from '../catalog/served-catalog.ts';
import { type JsonRpcMessage, type RequestId, readMeta } from '../protocol/json-rpc.ts';
import { METHODS_BY_NAME, type Method } from '../protocol/methods.ts';
import { detectEra, type Era } from '../protocol/revisions.ts';
import {
  type Answer,
  acceptsEventStream,
  type McpResponse,
  ResponseStream,
  toFailedAnswer,
} from '../streaming/response-stream.ts';

/**
 * One message of `POST /mcp`, and the way to its client. Before a call runs, message and text are cleared: calls may wait for
 * minutes. A class: closures took half a kilobyte more for each call.
 */
export class Call {
  /** The facts that observers of calls read. */
  readonly record: CallRecord;
  /** The catalogue at its path. */
  readonly catalog: ServedCatalog;
  readonly request: GatewayRequest;
  readonly user: UserContext | undefined;
  /** Value of the header `mcp-session-id`. */
  readonly sessionId: string | undefined;
  /** The store's answer about that session, once the limits have admitted the call. */
  session: SessionLookup = NO_SESSION;
  /** The way to the client until the call is answered. */
  readonly stream: ResponseStream;
  /** Sent with the response; unset until the session is found, and in the stateless era. */
  sessionInfo: SessionInfo = NO_SESSION_INFO;
  message: JsonRpcMessage;
  /** The message as sent: its parts are relayed and checked exactly as the client wrote them. */
  sentText: string | undefined;
  /** Counts the bytes of the body as held until the returned function is called. */
  readonly holdBody: () => () => void;
  private cancellation: Cancellation | undefined = undefined;
  private madeAbortSignal: AbortSignal | undefined = undefined;
  private isAborted = false;
  private tellTask: ((error: GatewayError | undefined) => void) | undefined = undefined;

  constructor(
    record: CallRecord,
    catalog: ServedCatalog,
    { request, user, body }: ProtectedCall,
    message: JsonRpcMessage,
  ) {
    this.record = record;
    this.catalog = catalog;
    this.request = request;
    this.user = user;
    this.sessionId = getHeader(request, SESSION_HEADER);
    this.stream = new ResponseStream(acceptsEventStream(request), record.id ?? null);
    this.message = message;
    this.sentText = body.text;
    this.holdBody = body.hold;
  }

  /** Aborted when the client hangs up, or by `abort`. Created on first use: most calls never ask for it. */
  signal(): CancelSignal {
    if (this.cancellation !== undefined) return this.cancellation;
    const created = new Cancellation();
    const hangUp = this.request.signal();
    // A client that can resume the stream has not hung up for good: `abort` is called when it has.
    const noteHangUp = () => {
      if (this.tellTask === undefined && !this.stream.isKept()) created.abort();
    };
    if (this.isAborted) created.abort();
    else if (hangUp.aborted) noteHangUp();
    else hangUp.addEventListener('abort', noteHangUp);
    this.cancellation = created;
    return created;
  }

  /** The same, as tools expect it. */
  abortSignal(): AbortSignal {
    this.madeAbortSignal ??= toAbortSignal(this.signal());
    return this.madeAbortSignal;
  }

  /** Cancels the tool; an `error` becomes the response. */
  abort(error?: GatewayError): void {
    this.isAborted = true;
    this.cancellation?.abort();
    if (error !== undefined) this.stream.end({ error });
    this.tellTask?.(error);
  }

  /** Continues as a task (§29): a disconnect no longer cancels it; `abort` calls `onAbort`. */
  detach(onAbort: (error: GatewayError | undefined) => void): void {
    this.tellTask = onAbort;
  }
}

export const SESSION_HEADER = 'mcp-session-id';

/** Headers of a response about its session; none in the stateless era. */
interface SessionInfo {
  /** Set when the session was just created. */
  readonly sessionId?: string;
  /** ISO 8601. */
  readonly expiresAt?: string;
}

const NO_SESSION_INFO: SessionInfo = {};

/** An era of the protocol: answers its messages. */
export interface EraHandler {
  /** The store access for the session that the request names; undefined if the era has none. */
  toSessionAccess(
    request: GatewayRequest,
    user: UserContext | undefined,
  ): SessionAccess | undefined;
  /** @throws GatewayError in the era's own terms, synchronously or through the promise. */
  handle(call: Call): McpResponse | Promise<McpResponse>;
}

/** The facts about a message from its arrival to its end, as observers read them. */
export interface CallRecord {
  readonly request: GatewayRequest;
  readonly user: UserContext | undefined;
  readonly era: Era;
  readonly id: RequestId | undefined;
  /** As sent; undefined for a response. */
  readonly methodName: string | undefined;
  /** Undefined if this path does not offer it in this era. */
  readonly method: Method | undefined;
  /** The name or URI in the message, as sent; for a nested call (§25.3) that of the inner call. */
  subject: string | undefined;
  /** W3C Trace Context of the client, or of the call's span. */
  trace: TraceContext;
  /** OAuth client ID, if known; set when the call begins to run. */
  clientId: string | undefined;
  /** Milliseconds of the monotonic clock; set when the call begins to run. */
  startedAt: number;
  /** The server whose path received it; undefined for `/mcp`. */
  readonly pathServer: string | undefined;
  /** The view (§25) whose path received it. */
  readonly view: string | undefined;
  /** The server that the call goes to, once known; undefined for the gateway's own items. */
  server: string | undefined;
  /** True once observers have been notified of the start. */
  hasStarted: boolean;
  /** Its tool, prompt or resource, once resolved. */
  target: Target | undefined;
  /** The policy, guard or approver that denied the call. */
  deniedBy: string | undefined;
  /** Set at the end. */
  outcome: Outcome | undefined;
  /** For operators (§22.8), once the call has ended. */
  listed: ListedCall | undefined;
}

export function createCallRecord(
  message: JsonRpcMessage,
  { request, user }: Pick<CallRecord, 'request' | 'user'>,
  { offers, server, view }: Pick<ServedCatalog, 'offers' | 'server' | 'view'>,
  hasStreams: boolean,
): CallRecord {
  const { method: methodName, params } = message;
  const era = detectEra(message, request);
  const known = METHODS_BY_NAME.get(methodName);
  const isThere =
    known !== undefined &&
    (known.isNotification === true) === (message.kind === 'notification') &&
    (known.era ?? era) === era &&
    (hasStreams || known.needsStreams !== true) &&
    isOffered(known, offers);
  // Clients send further members as they like: only the one that the method uses counts.
  const { name, uri } = isObject(params) ? params : NO_NAMES;
  const isUri = known?.item?.param === 'uri' || methodName?.startsWith('resources/') === true;
  const meta = readMeta(params);
  const subject = isUri && typeof uri === 'string' ? uri : name;
  return {
    request,
    user,
    era,
    id: message.kind === 'request' ? message.id : undefined,
    methodName,
    method: isThere ? known : undefined,
    subject: typeof subject === 'string' ? subject : undefined,
    trace: meta.traceparent === undefined ? NO_TRACE : readTraceContext(meta),
    clientId: undefined,
    startedAt: 0,
    pathServer: server,
    view,
    server,
    hasStarted: false,
    target: undefined,
    deniedBy: undefined,
    outcome: undefined,
    listed: undefined,
  };
}

const NO_NAMES: JsonObject = {};

/** A method with nothing to offer does not exist for its caller. */
function isOffered({ offers: needed }: Method, offers: ServedCatalog['offers']) {
  if (needed === undefined) return true;
  for (const offer of needed) if (offers[offer] === true) return true;
  return false;
}

// §4.4, §4.11: the outcome of a call, and the answer that both eras make of it.

export type Outcome =
  | { readonly kind: 'success'; readonly result: MethodResult }
  /** The tool reports a failure in its result. */
  | { readonly kind: 'tool_error'; readonly result: MethodResult }
  /** Ends with a request to the client, which calls again with the answer (MCP, MRTR). */
  | { readonly kind: 'asked' }
  /** Refused by a policy; `error` is the answer. */
  | { readonly kind: 'denied'; readonly by: string; readonly error: GatewayError }
  /** Stopped by a guard or an approver, as its result says (§26, §27). */
  | { readonly kind: 'denied'; readonly by: string; readonly result: MethodResult }
  | { readonly kind: 'failure'; readonly error: GatewayError };

export interface MethodResult {
  readonly result: object;
  /** Set only if clients may cache the result; sent in the stateless era. */
  readonly cache?: CacheHint;
}

/** Ends a run in the stateless era: it starts again when the client has answered (MCP, MRTR). */
export class InputRequired extends Error {
  override readonly name = 'InputRequired';

  constructor() {
    super('The client is asked; the call starts again with its answers');
  }
}

/**
 * `showResult` creates the result as it is sent. With `hasFailureResults` a tool's failure, and invalid arguments, are results:
 * the model reads them and can react, while a JSON-RPC error would end at its client (MCP 2025-11-25 "Error Handling").
 */
export function toAnswer(
  outcome: Exclude<Outcome, { kind: 'asked' }>,
  hasFailureResults: boolean,
  showResult: (result: MethodResult) => object,
): Answer {
  if ('result' in outcome) {
    try {
      return { result: showResult(outcome.result) };
    } catch (cause) {
      // Not every catalogue checks its results.
      return toFailedAnswer(cause);
    }
  }
  const { error } = outcome;
  const show = (text: string) => showResult({ result: toErrorResult(text) });
  if (hasFailureResults && error.key === 'tool_failed')
    return { result: show(error.message), failure: error };
  // The caller's mistake, not a failure to log.
  return hasFailureResults && error.key === 'invalid_tool_input'
    ? { result: show(`${catalogue.invalid_tool_input.details}\n${error.message}`) }
    : { error };
}

/** For the model to read. */
export const toErrorResult = (text: string) => ({
  content: [{ type: 'text', text }],
  isError: true,
});

// The callers, as the rest of the gateway knows them.

export interface Callers {
  readonly findClientId: ClientOf;
  readonly getProviderToken: GetProviderToken;
  /** Headers of a 401 at a path; undefined without authentication. */
  readonly getChallenge?: GetChallenge | undefined;
  /** The facts about a user that rules name, for the audit log with `AUDIT_CLAIMS`. */
  readonly describeUser?: ((user: UserContext) => JsonObject | undefined) | undefined;
  /**
   * Seals name and e-mail of a session's user; undefined if the token has neither. The member itself is undefined if there are no
   * operators to show them to.
   */
  readonly sealPerson?:
    | ((user: UserContext, sessionId: string) => Promise<string | undefined>)
    | undefined;
  /** Called with each call to a tool, prompt or resource that has ended; undefined if no operator sees calls. */
  readonly listCall?: ((call: ListedCall) => void) | undefined;
  /** Called with each request of a user; undefined without operators. */
  readonly noteUser?: ((user: UserContext) => void) | undefined;
  /** Undefined if the gateway does not issue its own tokens. */
  readonly endedGrants?: EndedGrants | undefined;
}

/** §18.5: the OAuth client of a token. Undefined if unknown, so no rule about clients applies. */
export type ClientOf = (caller: { readonly user: UserContext | undefined }) => string | undefined;

/**
 * `ownClientId` is the gateway's own client at the provider in broker mode: a provider token issued to it does not say which
 * client uses it.
 */
export const createClientOf = (ownClientId: string | undefined): ClientOf =>
  function clientOf({ user }) {
    if (user === undefined) return undefined;
    if (user.grant !== undefined) return user.grant.clientId;
    const claimed = readClaimedClient(user.claims);
    return claimed === ownClientId ? undefined : claimed;
  };
