// §24: a connection is what lets the gateway act for one user at one server: tokens, and where they come from. It belongs to a
// user (issuer and `sub`), never to a client or a session. And what others do with connections.

import type { ClientAuthMethod } from '../../http/oauth-client/client-authentication.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { removeUnseen } from '../../platform/invisible.ts';
import type { JsonObject } from '../../platform/json.ts';
import { nameOwner } from '../../store/keys.ts';
import type { Owner } from '../../store/store.ts';

/** The way to log in at a server: its `auth` of the type `oauth`. */
export interface ConnectionAuth {
  readonly type: 'oauth';
  /** Undefined: by the gateway's client document, or by dynamic registration. */
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  /** Undefined: what the server says of itself (RFC 9728). */
  readonly authorizationServer?: ConfiguredAuthorizationServer | undefined;
  /** Undefined: those that the server names. */
  readonly scopes?: readonly string[] | undefined;
  /** RFC 8707. Undefined: the server's own identifier. False: none is sent. */
  readonly resource?: string | false | undefined;
  /** Parameters of the authorization request, beside the gateway's own. */
  readonly parameters?: Readonly<Record<string, string>> | undefined;
  /** Extra parameters for token requests, in addition to the gateway's own. */
  readonly tokenParameters?: Readonly<Record<string, string>> | undefined;
  readonly clientAuth?: ClientAuthMethod | undefined;
  /** For whom the assertions of `private_key_jwt` are. Undefined: the issuer. */
  readonly assertionAudience?: 'issuer' | 'endpoint' | undefined;
  /** Undefined: the server’s own. `common`: the one of all servers, for a client that was made by hand. */
  readonly redirectUri?: 'server' | 'common' | undefined;
  /** False only together with a client secret. */
  readonly pkce: boolean;
  /** The owner of the connection: each user, or one that an operator makes for everybody. */
  readonly owner: 'user' | 'shared';
  /** Asks for the list that is shown before one connects; undefined: nobody does. */
  readonly list?: 'anonymous' | 'shared' | undefined;
  /** True if what the server names may have addresses that are not public. */
  readonly allowPrivate: boolean;
}

export type ConfiguredAuthorizationServer =
  | { readonly issuer: string }
  | { readonly authorizationUrl: string; readonly tokenUrl: string };

/** A server, as far as connections to it concern it. */
export interface ConnectionServer {
  readonly name: string;
  readonly url: string;
  readonly auth: ConnectionAuth;
}

/** The owner of a connection; `shared` is everybody, whose connection operators alone make and end. */
export type ConnectionOwner = Owner | 'shared';

/** No user is named so: what `nameOwner` writes as JSON has two parts. */
const SHARED = '["shared"]';

export const nameConnectionOwner = (owner: ConnectionOwner): string =>
  owner === 'shared' ? SHARED : nameOwner(owner);

export type ConnectionState = 'missing' | 'active' | 'login needed';

/** The part of a connection that its user and operators may see: never a token. */
export interface ConnectionInfo {
  readonly server: string;
  readonly state: ConnectionState;
  /** The account, as the authorization server calls it: an address or a name; undefined where it does not say. */
  readonly account: string | undefined;
  /** Epoch milliseconds; undefined where there is none. */
  readonly since: number | undefined;
  /** Those that were granted; undefined where it is not known. */
  readonly scopes: readonly string[] | undefined;
  /** Why a login is needed, or what was not ended of the login that this one replaced, in words for people. */
  readonly problem: string | undefined;
}

/** The one who ended a connection, or was the cause. */
export type EndedBy = 'user' | 'operator' | 'logout';

/** The means by which a request for this owner goes to the server. */
export type Access =
  | ActiveAccess
  /** Nothing may be sent until the user connects. `scopes` are those that the server requires in addition to the granted ones. */
  | {
      readonly kind: 'missing' | 'login needed';
      /** For people and models; says server and hop; never a secret. Undefined where there never was a connection. */
      readonly reason: string | undefined;
      readonly scopes: readonly string[] | undefined;
    }
  /** Nothing may be sent, and nothing was lost: the authorization server, or the store, gave no usable answer. */
  | { readonly kind: 'unavailable'; readonly reason: string };

export interface ActiveAccess {
  readonly kind: 'active';
  /** Secret. */
  readonly token: string;
  /**
   * Names the connection, another after each login: sessions at the server and what is kept of it belong to it. Renewals keep it.
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

/** Keeps connections, and their tokens fresh. */
export interface Connections {
  /**
   * Not a promise where it was read in the last 30 s and is good for another minute: such calls wait for nothing.
   * Never rejects.
   */
  getAccess(owner: ConnectionOwner, server: ConnectionServer): Access | Promise<Access>;
  /**
   * The server refused a request with this token. 401: a renewal, at most once a minute. Where the new token is refused, too,
   * `isRefusedItself` asks the server itself whether it refuses the token, at most once a minute; only then a login is needed. 403
   * with `insufficient_scope`: a login is needed for the scopes. Resolves to what to go on with: where no other token is to be had,
   * by the same. Nothing of it concerns other callers, unless a login is needed. Never rejects.
   */
  noteRefusal(
    owner: ConnectionOwner,
    server: ConnectionServer,
    used: ActiveAccess,
    refusal: TokenRefusal & { isRefusedItself(): Promise<boolean> },
  ): Promise<Access>;
  /** @throws StoreUnavailable */
  describe(owner: ConnectionOwner, server: ConnectionServer): Promise<ConnectionInfo>;
  /**
   * Revokes at the authorization server and deletes here, whatever that said. `problem` says what it was that failed
   * there. False where there was none. @throws StoreUnavailable
   */
  end(
    owner: ConnectionOwner,
    server: ConnectionServer,
    by: EndedBy,
  ): Promise<{ readonly ended: boolean; readonly problem: string | undefined }>;
  /** All of one user, whatever the configuration file says now. @throws StoreUnavailable */
  endOfUser(owner: ConnectionOwner, by: EndedBy): Promise<EndedCounts>;
  /** All owners' connections to one server. @throws StoreUnavailable */
  endAtServer(server: string, by: EndedBy): Promise<EndedCounts>;
  /** For operators and metrics: costs no more where there are many. @throws StoreUnavailable */
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
  /** Asked for beside what the configuration says. */
  readonly scopes: readonly string[] | undefined;
}

export type RequestOutcome = 'connected' | 'declined' | 'expired';

/** The links of doors 1 and 2. */
export interface ConnectionRequests {
  /**
   * `<BASE_URL>/connections/<server>?request=<id>`. Good for 10 minutes. The same again for the same owner, server and
   * scopes within a minute: a model that calls in a loop does not fill the store.
   *
   * @throws StoreUnavailable
   */
  create(request: ConnectionRequest): Promise<{ readonly id: string; readonly url: string }>;
  /** Undefined for one that is not there any more. @throws StoreUnavailable */
  find(id: string): Promise<ConnectionRequest | undefined>;
  /** The person said no. */
  decline(id: string): Promise<void>;
  /**
   * Resolves when the connection of this owner and server stands, whatever replica or door made it; at the latest after 5
   * minutes. Never rejects; `expired` where the signal is aborted.
   */
  wait(
    id: string,
    request: Pick<ConnectionRequest, 'owner' | 'server'>,
    signal: CancelSignal,
  ): Promise<RequestOutcome>;
}

/** From the page to the authorization server and back. */
export interface Connecting {
  /** The host of the login, followed by the other hosts at which the authorization server has endpoints. @throws ConnectionProblem */
  findLoginHosts(server: ConnectionServer): Promise<readonly string[]>;
  /**
   * Resolves to the address that the browser is sent to. Finds the authorization server and the gateway's client there; registers if necessary.
   * Undefined if the hosts differ from those that the user has been shown: they have to be shown first.
   *
   * @throws ConnectionProblem
   */
  begin(
    request: ConnectionRequest,
    server: ConnectionServer,
    browser: {
      readonly hash: string;
      readonly requestId: string | undefined;
      /** `findLoginHosts`, with a space between them; undefined where none were shown. */
      readonly shownHosts: string | undefined;
    },
  ): Promise<string | undefined>;
  /**
   * The authorization server brings the browser back: `state` is used up whatever comes of it. The owner is that of the
   * browser's session at this moment, who must be the one that began.
   *
   * @throws ConnectionProblem
   */
  finish(
    query: ReadonlyMap<string, string>,
    back: {
      /** At which the browser came back. */
      readonly redirectUri: string;
      readonly browserHash: string | undefined;
      readonly owner: ConnectionOwner | undefined;
      readonly isOperator: boolean;
      /** Asked once the tokens have come: their coming may have taken a while. @throws StoreUnavailable */
      isStillLoggedIn(): Promise<boolean>;
    },
    findServer: (name: string) => ConnectionServer | undefined,
  ): Promise<{
    readonly info: ConnectionInfo;
    /** As `begin` was told it: of the link that it began with; undefined where it began at the page of connections. */
    readonly requestId: string | undefined;
  }>;
  /** The gateway's own client document, by which it is known where documents are taken; undefined where BASE_URL is not a public https address. */
  getClientDocument(): JsonObject | undefined;
  /**
   * RFC 7517: the keys by which the gateway logs in with `private_key_jwt`. They are served at
   * `<BASE_URL>/oauth/connections-keys.json`, the `jwks_uri` of its registrations. @throws StoreUnavailable
   */
  listPublicKeys(): Promise<JsonObject>;
}

/** Tells the person and the operator why a connection cannot be made. Never a secret. */
export class ConnectionProblem extends Error {
  override readonly name = 'ConnectionProblem';
  /** The one whose fault it is: decides the page's status and advice. */
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

/** All of it, as `connections/feature.ts` makes it. */
export interface ConnectionPorts {
  readonly connections: Connections;
  readonly requests: ConnectionRequests;
  readonly connecting: Connecting;
}
