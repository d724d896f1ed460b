// §24: a connection is what lets the gateway act for one user at one server: tokens, and where they come from. It belongs to a
// user (issuer and `sub`), never to a client or a session.

import type { ClientAuthMethod } from '../../http/oauth-client/client-authentication.ts';
import { nameOwner } from '../../store/owner.ts';
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
  /** Parameters of token requests, beside the gateway's own. */
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
