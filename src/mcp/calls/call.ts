// One call of POST /mcp: what all of its steps need, made once.
import type { GatewayError } from '../../errors/gateway-error.ts';
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
import type { SessionAccess, SessionLookup } from '../../store/store.ts';
import { readTraceContext, type TraceContext } from '../../telemetry/tracing/tracing.ts';
import type { ServedCatalog, Target } from '../catalog/served-catalog.ts';
import { type JsonRpcMessage, type RequestId, readMeta } from '../protocol/json-rpc.ts';
import { findMethod, isAvailable, type Method } from '../protocol/methods.ts';
import type { Era } from '../protocol/revisions.ts';
import { acceptsEventStream, ResponseStream } from '../streaming/response-stream.ts';
import type { McpResponse, Outcome, SessionInfo } from './outcome.ts';

/**
 * Has neither body nor message: a call that waits keeps this, and nothing of what was sent. A class: as closures each call's
 * had half a kilobyte more.
 */
export class Call {
  /** Known of it, for those that observe calls. */
  readonly record: CallRecord;
  /** Served at its path. */
  readonly catalog: ServedCatalog;
  readonly request: GatewayRequest;
  readonly user: UserContext | undefined;
  /** Value of the header `mcp-session-id`. */
  readonly sessionId: string | undefined;
  /** The store's answer about that session. */
  readonly session: SessionLookup;
  /** The way to the client until the call is answered. */
  readonly stream: ResponseStream;
  /** Said of its session by its response; unset while that is not found, and in the stateless era. */
  sessionInfo: SessionInfo = NO_SESSION;
  /**
   * As it was sent: what of it goes on, or is judged, is as its client wrote it. Unset before the call runs, as what waits
   * keeps nothing of it.
   */
  sentText: string | undefined;
  /** Counts the bytes of the body as held until what it returns is called. */
  readonly holdBody: () => () => void;
  private cancellation: Cancellation | undefined;
  private madeAbortSignal: AbortSignal | undefined;
  private isAborted = false;
  private tellTask: ((error: GatewayError | undefined) => void) | undefined;

  constructor(
    record: CallRecord,
    catalog: ServedCatalog,
    { request, user, body }: ProtectedCall,
    session: SessionLookup,
  ) {
    this.record = record;
    this.catalog = catalog;
    this.request = request;
    this.user = user;
    this.sessionId = readSessionHeader(request);
    this.session = session;
    this.stream = new ResponseStream(acceptsEventStream(request), record.id ?? null);
    this.sentText = body.text;
    this.holdBody = body.hold;
  }

  /** Aborted when the caller hangs up, or by `abort`. Made on first use: most calls never ask for it. */
  signal(): CancelSignal {
    if (this.cancellation !== undefined) return this.cancellation;
    const created = new Cancellation();
    const hangUp = this.request.signal();
    // A client that may come back for the answer has not hung up for good: `abort` says when it has.
    const noteHangUp = () => {
      if (this.tellTask === undefined && !this.stream.isKept()) created.abort();
    };
    if (this.isAborted) created.abort();
    else if (hangUp.aborted) noteHangUp();
    else hangUp.addEventListener('abort', noteHangUp);
    this.cancellation = created;
    return created;
  }

  /** The same for tools. */
  abortSignal(): AbortSignal {
    this.madeAbortSignal ??= toAbortSignal(this.signal());
    return this.madeAbortSignal;
  }

  /** Tells the tool that nobody waits for its result; with an error that is the answer. */
  abort(error?: GatewayError): void {
    this.isAborted = true;
    this.cancellation?.abort();
    if (error !== undefined) this.stream.end({ error });
    this.tellTask?.(error);
  }

  /** It goes on as a task (§29): that the caller hangs up means nothing any more; `onAbort` hears of `abort`. */
  detach(onAbort: (error: GatewayError | undefined) => void): void {
    this.tellTask = onAbort;
  }
}

const NO_SESSION: SessionInfo = {};

/** An era of the protocol: answers its messages. */
export interface EraHandler {
  /** Asks the store for the session that its request names; undefined where the era has none. */
  accessSession(request: GatewayRequest, user: UserContext | undefined): SessionAccess | undefined;
  /** @throws GatewayError that says, in the era's own terms, why the message is refused; at once, or by the promise. */
  handle(call: Call, message: JsonRpcMessage): McpResponse | Promise<McpResponse>;
}

export const readSessionHeader = (request: GatewayRequest): string | undefined =>
  getHeader(request, 'mcp-session-id');

// One message of a client, from its arrival to its end: made once, and told to all who observe calls.

export interface CallRecord {
  readonly request: GatewayRequest;
  readonly user: UserContext | undefined;
  readonly era: Era;
  readonly id: RequestId | undefined;
  /** As the client wrote it; undefined for a response. */
  readonly methodName: string | undefined;
  /** Undefined where this path does not have it in this era. */
  readonly method: Method | undefined;
  /** The name or URI that the message is about, as the client wrote it; of a call in another (§25.3) the inner one's. */
  subject: string | undefined;
  /** W3C Trace Context: of the client, or of the span that stands for the call. */
  trace: TraceContext;
  /** OAuth client ID, where it is known; from `start` on. */
  clientId: string | undefined;
  /** When it began, in milliseconds of the monotonic clock; from `start` on. */
  startedAt: number;
  /** The server at whose path it came; undefined for `/mcp`. */
  readonly ownServer: string | undefined;
  /** The view (§25) at whose path it came. */
  readonly view: string | undefined;
  /** The server that it is about, as far as that is known; undefined for the gateway's own. */
  server: string | undefined;
  /** True if observers were told that it starts. */
  hasStarted: boolean;
  /** Its tool, prompt or resource, once that is found. */
  target: Target | undefined;
  /** The policy that denied the call; undefined where none did. */
  deniedBy: string | undefined;
  /** Set at its end. */
  outcome: Outcome | undefined;
}

export function createCallRecord(
  message: JsonRpcMessage,
  { request, user }: Pick<CallRecord, 'request' | 'user'>,
  { offers, server, view }: Pick<ServedCatalog, 'offers' | 'server' | 'view'>,
  era: Era,
  hasStreams: boolean,
): CallRecord {
  const { method: methodName, params } = message.kind === 'response' ? NO_METHOD : message;
  const known = methodName === undefined ? undefined : findMethod(methodName);
  const isNotified = message.kind === 'notification';
  const isThere = known && isAvailable(known, { isNotified, era, offers, hasStreams });
  // Callers send further members as they like: the one that the method goes by counts.
  const { name, uri } = isObject(params) ? params : NO_NAMES;
  const isUri = known?.item?.param === 'uri' || methodName?.startsWith('resources/') === true;
  const subject = isUri && typeof uri === 'string' ? uri : name;
  return {
    request,
    user,
    era,
    id: message.kind === 'request' ? message.id : undefined,
    methodName,
    method: isThere ? known : undefined,
    subject: typeof subject === 'string' ? subject : undefined,
    trace: readTraceContext(readMeta(params)),
    clientId: undefined,
    startedAt: 0,
    ownServer: server,
    view,
    server,
    hasStarted: false,
    target: undefined,
    deniedBy: undefined,
    outcome: undefined,
  };
}

const NO_METHOD = { method: undefined, params: undefined };
const NO_NAMES: JsonObject = {};

// Knowledge of the rest of the gateway about those who call.

export interface Callers {
  readonly findClientId: ClientOf;
  readonly getProviderToken: GetProviderToken;
  /** Headers of a 401 at a path; undefined when nobody has to log in. */
  readonly getChallenge?: GetChallenge | undefined;
  /** As far as rules name it, for the audit log with `AUDIT_CLAIMS`. */
  readonly describeUser?: ((user: UserContext) => JsonObject | undefined) | undefined;
  /**
   * Name and e-mail of the user of a session, sealed for it; undefined where the token has neither. Undefined as a whole
   * without operators who could see it.
   */
  readonly sealPerson?:
    | ((user: UserContext, sessionId: string) => Promise<string | undefined>)
    | undefined;
  /** Called with each request of a user that needs no session; undefined without operators. */
  readonly noteStatelessUser?: ((user: UserContext) => void) | undefined;
  /** Undefined where the gateway issues no tokens of its own. */
  readonly endedGrants?: EndedGrants | undefined;
}

// §18.5: which OAuth client a token was made for.

/** Undefined where it is not known: no rule about clients holds then. */
export type ClientOf = (caller: { readonly user: UserContext | undefined }) => string | undefined;

/**
 * `ownClientId` is the client that the gateway is at the provider in broker mode: a token of the provider that was made for it does
 * not say who got it.
 */
export const createClientOf = (ownClientId: string | undefined): ClientOf =>
  function clientOf({ user }) {
    if (user === undefined) return undefined;
    if (user.grant !== undefined) return user.grant.clientId;
    const claimed = readClaimedClient(user.claims);
    return claimed === ownClientId ? undefined : claimed;
  };
