// §24: a connection lets the gateway act for one user at one server: it consists of tokens and their origin. It belongs to a user
// (issuer and `sub`), never to a client or a session. Also the interfaces that other parts use.

import type { ClientAuthMethod } from '../../http/oauth-client/client-authentication.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { removeUnseen } from '../../platform/invisible.ts';
import type { JsonObject } from '../../platform/json.ts';
import { nameOwner } from '../../store/keys.ts';
import type { Owner } from '../../store/store.ts';

/** How to log in to a server: its `auth` of type `oauth`. */
export interface ConnectionAuth {
  readonly type: 'oauth';
  /** Undefined: uses the gateway's client document, or dynamic registration. */
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  /** Undefined: uses the server's own metadata (RFC 9728). */
  readonly authorizationServer?: ConfiguredAuthorizationServer | undefined;
  /** Undefined: those that the server names. */
  readonly scopes?: readonly string[] | undefined;
  /** RFC 8707. Undefined: the server's own identifier. False: none is sent. */
  readonly resource?: string | false | undefined;
  /** Extra parameters for the authorization request, in addition to the gateway's own. */
  readonly parameters?: Readonly<Record<string, string>> | undefined;
  /** Extra parameters for token requests, in addition to the gateway's own. */
  readonly tokenParameters?: Readonly<Record<string, string>> | undefined;
  readonly clientAuth?: ClientAuthMethod | undefined;
  /** The audience of `private_key_jwt` assertions. Undefined: the issuer. */
  readonly assertionAudience?: 'issuer' | 'endpoint' | undefined;
  /** Undefined: the server’s own. `common`: the one shared by all servers, for a client that was created by hand. */
  readonly redirectUri?: 'server' | 'common' | undefined;
  /** False only together with a client secret. */
  readonly pkce: boolean;
  /** The owner of the connection: each user, or all users for a connection that an operator makes. */
  readonly owner: 'user' | 'shared';
  /** How the list that is shown before a user connects is requested; undefined: there is none. */
  readonly list?: 'anonymous' | 'shared' | undefined;
  /** True if hosts named by the server may have non-public addresses. */
  readonly allowPrivate: boolean;
}

export type ConfiguredAuthorizationServer =
  | { readonly issuer: string }
  | { readonly authorizationUrl: string; readonly tokenUrl: string };

/** The part of a server that concerns connections to it. */
export interface ConnectionServer {
  readonly name: string;
  readonly url: string;
  readonly auth: ConnectionAuth;
}

/** The owner of a connection; `shared` means all users, whose connection only operators make and end. */
export type ConnectionOwner = Owner | 'shared';

/** No user has this name: the JSON that `nameOwner` writes has two parts. */
const SHARED = '["shared"]';

export const nameConnectionOwner = (owner: ConnectionOwner): string =>
  owner === 'shared' ? SHARED : nameOwner(owner);

export type ConnectionState = 'missing' | 'active' | 'login needed';

/** The part of a connection that its user and operators may see: never a token. */
export interface ConnectionInfo {
  readonly server: string;
  readonly state: ConnectionState;
  /** The account's name at the authorization server: an address or a name; undefined if the server does not say. */
  readonly account: string | undefined;
  /** Epoch milliseconds; undefined if there is none. */
  readonly since: number | undefined;
  /** The granted scopes; undefined if unknown. */
  readonly scopes: readonly string[] | undefined;
  /** Why a login is needed, or which parts of the login that it replaced could not be ended, in words for people. */
  readonly problem: string | undefined;
}

/** Who or what ended a connection. */
export type EndedBy = 'user' | 'operator' | 'logout';

/** How a request for this owner is sent to the server. */
export type Access =
  | ActiveAccess
  /** Nothing may be sent until the user connects. `scopes` are those that the server requires in addition to the granted ones. */
  | {
      readonly kind: 'missing' | 'login needed';
      /** For people and models; names server and hop; never a secret. Undefined if there never was a connection. */
      readonly reason: string | undefined;
      readonly scopes: readonly string[] | undefined;
    }
  /** Nothing may be sent, but nothing was lost: the authorization server or the store gave no usable answer. */
  | { readonly kind: 'unavailable'; readonly reason: string };

export interface ActiveAccess {
  readonly kind: 'active';
  /** Secret. */
  readonly token: string;
  /**
   * Identifies the connection, and changes with each login: sessions at the server, and cached data about it, belong to it.
   * Renewals keep it.
   */
  readonly connectionId: string;
}

export interface TokenRefusal {
  readonly status: 401 | 403;
  /** `WWW-Authenticate`. */
  readonly challenge: string | undefined;
}

interface EndedCounts {
  readonly ended: number;
  readonly failed: number;
}

/** Stores connections, and keeps their tokens fresh. */
export interface Connections {
  /** Synchronous if it was read in the last 30 s and is valid for another minute. Never rejects. */
  getAccess(owner: ConnectionOwner, server: ConnectionServer): Access | Promise<Access>;
  /**
   * The server refused a request with this token. 401: the token is renewed, at most once a minute. If the new token is also
   * refused, `isRefusedItself` checks whether the server itself refuses the token, at most once a minute; only then is a login
   * needed. 403 with `insufficient_scope`: a login is needed for the scopes. Resolves to the access to continue with, which is
   * the same if no other token is available. None of this affects other callers, unless a login is needed. Never rejects.
   */
  replaceRefusedToken(
    owner: ConnectionOwner,
    server: ConnectionServer,
    used: ActiveAccess,
    refusal: TokenRefusal & { isRefusedItself(): Promise<boolean> },
  ): Promise<Access>;
  /** @throws StoreUnavailable */
  describe(owner: ConnectionOwner, server: ConnectionServer): Promise<ConnectionInfo>;
  /**
   * Revokes the tokens at the authorization server, and deletes them here whatever its answer. `problem` says what failed there.
   * False if there was no connection. @throws StoreUnavailable
   */
  end(
    owner: ConnectionOwner,
    server: ConnectionServer,
    by: EndedBy,
  ): Promise<{ readonly ended: boolean; readonly problem: string | undefined }>;
  /** All connections of one user, whatever the current configuration file says. @throws StoreUnavailable */
  endOfUser(owner: ConnectionOwner, by: EndedBy): Promise<EndedCounts>;
  /** All owners' connections to one server. @throws StoreUnavailable */
  endAtServer(server: string, by: EndedBy): Promise<EndedCounts>;
  /** For operators and metrics: the cost does not grow with their number. @throws StoreUnavailable */
  count(server: string): Promise<Readonly<Record<Exclude<ConnectionState, 'missing'>, number>>>;
  /** Called on each replica when a connection was made, ended, or needs a login. */
  onChange(
    listener: (owner: ConnectionOwner, server: string, state: ConnectionState) => void,
  ): void;
}

/** A link that leads one user to a connection. */
export interface ConnectionRequest {
  readonly owner: ConnectionOwner;
  readonly server: string;
  /** Requested in addition to the configured ones. */
  readonly scopes: readonly string[] | undefined;
}

export type RequestOutcome = 'connected' | 'declined' | 'expired';

/** The links of doors 1 and 2. */
export interface ConnectionRequests {
  /**
   * `<BASE_URL>/connections/<server>?request=<id>`. Valid for 10 minutes. The same owner, server and scopes get the same link
   * again within a minute, so that a model that calls in a loop does not fill the store.
   *
   * @throws StoreUnavailable
   */
  create(request: ConnectionRequest): Promise<{ readonly id: string; readonly url: string }>;
  /** Undefined for one that no longer exists. @throws StoreUnavailable */
  find(id: string): Promise<ConnectionRequest | undefined>;
  /** The user declined. */
  decline(id: string): Promise<void>;
  /**
   * Resolves when this owner's connection to the server is established, on any replica and by any door (§24.3), or after 5
   * minutes at the latest. Never rejects; resolves to `expired` if the signal is aborted.
   */
  wait(
    id: string,
    request: Pick<ConnectionRequest, 'owner' | 'server'>,
    signal: CancelSignal,
  ): Promise<RequestOutcome>;
}

/** From the page to the authorization server and back. */
export interface Connecting {
  /** The host of the login, followed by the other hosts of the authorization server's endpoints. @throws ConnectionProblem */
  findLoginHosts(server: ConnectionServer): Promise<readonly string[]>;
  /**
   * Resolves to the address that the browser is sent to. Finds the authorization server and the gateway's client there; registers
   * if necessary. Undefined if the hosts differ from those that the user was shown: they have to be shown first.
   *
   * @throws ConnectionProblem
   */
  begin(
    request: ConnectionRequest,
    server: ConnectionServer,
    browser: {
      readonly hash: string;
      readonly requestId: string | undefined;
      /** The result of `findLoginHosts`, separated by spaces; undefined if none were shown. */
      readonly shownHosts: string | undefined;
    },
  ): Promise<string | undefined>;
  /**
   * Handles the browser's return from the authorization server: `state` is used up in any case. The owner comes from the
   * browser's current session, who must be the one who began the login.
   *
   * @throws ConnectionProblem
   */
  finish(
    query: ReadonlyMap<string, string>,
    back: {
      /** The URI that the browser came back to. */
      readonly redirectUri: string;
      readonly browserHash: string | undefined;
      readonly owner: ConnectionOwner | undefined;
      readonly isOperator: boolean;
      /** Called when the tokens have arrived, which may have taken a while. @throws StoreUnavailable */
      isStillLoggedIn(): Promise<boolean>;
    },
    findServer: (name: string) => ConnectionServer | undefined,
  ): Promise<{
    readonly info: ConnectionInfo;
    /** As passed to `begin`: the link that the login began with; undefined if it began on the connections page. */
    readonly requestId: string | undefined;
  }>;
  /**
   * The gateway's own client document, which identifies it at servers that accept documents; undefined if BASE_URL is not a
   * public https address.
   */
  getClientDocument(): JsonObject | undefined;
  /**
   * RFC 7517: the keys that the gateway authenticates with (`private_key_jwt`). They are served at
   * `<BASE_URL>/oauth/connections-keys.json`, the `jwks_uri` of its registrations. @throws StoreUnavailable
   */
  listPublicKeys(): Promise<JsonObject>;
}

/** Tells the person and the operator why a connection cannot be made. Never a secret. */
export class ConnectionProblem extends Error {
  override readonly name = 'ConnectionProblem';
  /** The party at fault: determines the page's status and advice. */
  readonly fault: 'browser' | 'person' | 'server' | 'operator' | 'gateway';

  /** `message` names server and hop, and says what to do. */
  constructor(
    fault: ConnectionProblem['fault'],
    message: string,
    options: { readonly cause?: unknown } = {},
  ) {
    // Servers write parts of it.
    super(removeUnseen(message), { cause: options.cause });
    this.fault = fault;
  }
}

/** All of it, as created by `connections/feature.ts`. */
export interface ConnectionPorts {
  readonly connections: Connections;
  readonly requests: ConnectionRequests;
  readonly connecting: Connecting;
}
