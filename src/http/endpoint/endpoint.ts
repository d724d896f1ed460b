// §4.1: how a feature describes an endpoint that it serves.

import type { LimitGroup } from '../../config/groups/limits.ts';
import type { SessionAccess, SessionLookup } from '../../store/store.ts';
import type {
  GatewayRequest,
  PendingReply,
  Reply,
  ReplyHeaders,
  RequestBody,
  UserContext,
} from './message.ts';
import type { ErrorFormat } from './render-error.ts';

export type Endpoint = OpenEndpoint | ProtectedEndpoint | PublicEndpoint;

interface EndpointBase {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /**
   * Exact path, or one with a segment that is a parameter (`/mcp/:server`, `/mcp/:server/server-card`); the metrics' label
   * `route`.
   */
  readonly path: string;
  /** Says if there is something of this name, for a path with a parameter. Otherwise the path is unknown. */
  readonly hasParameter?: (name: string) => boolean;
  readonly errors: ErrorFormat;
  /** Asked by address, so exempt from the Host check. */
  readonly isProbe?: true;
  /** Served also while all connections are busy. */
  readonly isServedWhenBusy?: true;
  /** A browser comes here: errors are pages where `Accept` prefers them. */
  readonly hasErrorPages?: boolean;
  /** A failure there is no login of an app: the error page does not say so. */
  readonly isPageOfUser?: true;
  /** A browser that comes here by mistake is shown the front page, with the status of the error. */
  readonly hasFrontPage?: boolean;
  /**
   * A browser comes here by itself, as the user's: no page may read the answer or send the form, be
   * its origin allowed or not.
   */
  readonly isNavigation?: boolean;
  /** For the gateway's own pages: those of other origins are refused, be they allowed elsewhere or not. */
  readonly isForOwnPages?: boolean;
  /** It is for everybody to know: pages of any origin may read it, without credentials. */
  readonly isForAllOrigins?: true;
  /** On every reply of the endpoint, errors included. */
  readonly headers?: ReplyHeaders;
  /** Not listed in `Allow`: the endpoint only says why there is nothing. */
  readonly isUnlisted?: true;
}

/** For everybody, and not limited: documents and probes. */
export interface OpenEndpoint extends EndpointBase {
  readonly kind: 'open';
  handle(request: GatewayRequest): Reply | Promise<Reply>;
}

/** §5.1: needs a bearer token, which also decides in which windows a call is counted. */
export interface ProtectedEndpoint extends EndpointBase {
  readonly kind: 'protected';
  readonly limit: LimitGroup;
  readonly body?: 'json';
  /** Before the token is looked at, and not counted. @throws GatewayError for what is not offered to anybody. */
  checkOffered?(request: GatewayRequest): void;
  /** Without effect. @throws GatewayError for a message that is not valid. */
  judge(call: ProtectedCall): JudgedCall;
}

/** For everybody, and limited: what was sent is judged first, then counted, then acted on. */
export interface PublicEndpoint extends EndpointBase {
  readonly kind: 'public';
  readonly limit: LimitGroup;
  readonly body?: 'json' | 'json or form';
  /** Bytes; where it is less than `MAX_BODY_BYTES`. */
  readonly maxBodyBytes?: number;
  /** Chooses the limit by the body, which is then read before the request is counted. Without effect. */
  chooseLimit?(body: RequestBody, request: GatewayRequest): ChosenLimit;
  /** Without effect. @throws GatewayError for what is not valid. */
  judge(request: GatewayRequest, body: RequestBody): Promise<JudgedRequest>;
}

/** The rest of the work for a valid request. */
export type JudgedRequest = PendingReply | AnonymousRequest;

/**
 * One that anybody could have sent, such as a look at a page without a session: it is counted apart, so that strangers keep
 * out nobody else.
 */
interface AnonymousRequest {
  readonly runAnonymous: PendingReply;
}

/** The same request, with `wrap` around what is left to do. */
export const wrapRun = (
  judged: JudgedRequest,
  wrap: (run: PendingReply) => PendingReply,
): JudgedRequest =>
  'runAnonymous' in judged ? { runAnonymous: wrap(judged.runAnonymous) } : wrap(judged);

/** The limit by which a request is counted. */
export interface ChosenLimit {
  readonly group: LimitGroup;
  /** Set where it may belong to a login, which is then counted in place of the address. */
  readonly login?: LoginSearch;
}

export interface LoginSearch {
  /** The id of the login, where this process knows it without a look at the store. */
  readonly knownId: string | undefined;
  /** Without effect. */
  find(): Promise<KnownLogin | undefined>;
}

export interface KnownLogin {
  readonly id: string;
  /** True if the answer is there already: the request costs the provider nothing. */
  readonly isAnswered: boolean;
  /** The request has shown whose it is by more than what others could have read: it is not counted by its address, too. */
  readonly isProven?: true;
}

/** A call of a protected endpoint, past Host, Origin, token and body. */
export interface ProtectedCall {
  readonly request: GatewayRequest;
  /** Undefined where the service runs without authentication. */
  readonly user: UserContext | undefined;
  readonly body: RequestBody;
}

/** The rest of the work for a call that is good, as far as that can be said without effect. */
export interface JudgedCall {
  /** Its use of its session, done in the step that counts it; undefined where it has none. */
  readonly access: SessionAccess | undefined;
  /** Once the limits admit it; `session` is what the store said of the session. */
  run(session: SessionLookup): Reply | Promise<Reply>;
}

// §18.2, §25.1: the paths below /mcp.

/** The names that exist at `/mcp/<name>`: servers, and views (§25.1). */
export interface NamedPaths {
  has(name: string): boolean;
  /** Its title for people, where the configuration has one. */
  getTitle(name: string): string | undefined;
}
