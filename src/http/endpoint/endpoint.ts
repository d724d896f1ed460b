// §4.1: describes an endpoint of a feature.

import type { LimitGroup } from '../../config/groups/limits.ts';
import type { GatewayError } from '../../errors/gateway-error.ts';
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
  /** Returns true for a known value of the path's parameter; other paths are unknown. */
  readonly hasParameter?: (name: string) => boolean;
  readonly errors: ErrorFormat;
  /** Called by address, so exempt from the Host check. */
  readonly isProbe?: true;
  /** Also served while all connections are busy. */
  readonly isServedWhenBusy?: true;
  /** For browsers: errors are pages if `Accept` prefers them. */
  readonly hasErrorPages?: boolean;
  /** A failure here is not a failed login of an app: the error page does not say so. */
  readonly isPageOfUser?: true;
  /** Shows the front page, with the status of the error, to a browser that comes here by mistake. */
  readonly hasFrontPage?: boolean;
  /** Browsers reach it by navigation only: no script may read the reply, no other origin send the form. Programs may call it. */
  readonly refusesScripts?: boolean;
  /** For the gateway's own pages: refuses pages of other origins, even if they are allowed elsewhere. */
  readonly isForOwnPages?: boolean;
  /** Public: pages of any origin may read it, without credentials. */
  readonly isForAllOrigins?: true;
  /** On every reply of the endpoint, errors included. */
  readonly headers?: ReplyHeaders;
  /** Not listed in `Allow`: the endpoint only says why it is not offered. */
  readonly isUnlisted?: true;
}

/** Without a login, and not limited: documents and probes. */
export interface OpenEndpoint extends EndpointBase {
  readonly kind: 'open';
  handle(request: GatewayRequest): Reply | Promise<Reply>;
}

/** §5.1: needs a bearer token, which also determines the windows that a call is counted in. */
export interface ProtectedEndpoint extends EndpointBase {
  readonly kind: 'protected';
  readonly limit: LimitGroup;
  readonly body?: 'json';
  /** Called before the token check, and not counted. @throws GatewayError if the endpoint is not offered to any caller. */
  checkOffered?(request: GatewayRequest): void;
  /** Has no effect. @throws GatewayError for an invalid message. */
  judge(call: ProtectedCall): JudgedCall;
}

/** Without a login, and limited: its address is counted, then the request is checked, then counted among all callers, then run. */
export interface PublicEndpoint extends EndpointBase {
  readonly kind: 'public';
  readonly limit: LimitGroup;
  readonly body?: 'json' | 'json or form';
  /** Bytes, if fewer than `MAX_BODY_BYTES`. */
  readonly maxBodyBytes?: number;
  /** Chooses the limit by the body, which is then read before the request is counted. Has no effect. */
  chooseLimit?(body: RequestBody, request: GatewayRequest): ChosenLimit;
  /** Has no effect. @throws GatewayError for an invalid request. */
  judge(request: GatewayRequest, body: RequestBody): Promise<JudgedRequest>;
}

/**
 * The rest of the work for a valid request. One that any client could have sent, such as a page view without a session, is counted
 * separately, so that strangers lock out no user.
 */
export type JudgedRequest = PendingReply | { readonly runAnonymous: PendingReply };

/** The limit that a request counts towards. */
export interface ChosenLimit {
  readonly group: LimitGroup;
  /** Set if the request may belong to a login, which is then counted first, instead of the address (`KnownLogin`). */
  readonly login?: LoginSearch;
}

export interface LoginSearch {
  /** The ID of the login, if this process knows it without the store. */
  readonly knownId: string | undefined;
  /** Has no effect. */
  find(): Promise<KnownLogin | undefined>;
}

export interface KnownLogin {
  readonly id: string;
  /**
   * True if the request costs next to nothing, and reaches the provider seldom or never: the limit of the login is 100 times as
   * high. Any other request also counts against its address, in a window separate from that of requests without a login.
   */
  readonly isCheap: boolean;
  /** Set if the request has a proof that others could not have read: it never counts against its address. */
  readonly isProven?: true;
}

/** A call of a protected endpoint, past Host, Origin, token and body. */
export interface ProtectedCall {
  readonly request: GatewayRequest;
  /** Undefined without authentication. */
  readonly user: UserContext | undefined;
  readonly body: RequestBody;
}

/** The rest of the work for a call that passed its checks. */
export interface JudgedCall {
  /**
   * Tells the store how to read or extend the call's session, in the same step that counts the call; undefined if it has no
   * session.
   */
  readonly access: SessionAccess | undefined;
  /** Runs after the limits have admitted the call. `session` is what the store returned. */
  run(session: SessionLookup): Reply | Promise<Reply>;
  /** The reply for a call that could not be admitted, with the id of its message; without it, replies have no id. */
  renderFailure?(error: GatewayError): Reply;
}

// §18.2, §25.1: the paths below /mcp.

/** The names that exist at `/mcp/<name>`: servers, and views (§25.1). */
export interface NamedPaths {
  has(name: string): boolean;
  /** Returns its title for people, if the configuration has one. */
  getTitle(name: string): string | undefined;
}
