// §18.6, §24: ports between servers and the connections of their users: tokens of requests, and doors that lead to a login.
import type { Context, RawResult, RelayedClient } from '../catalog/catalog.ts';
import type { ConnectionServer, TokenRefusal } from './connections.ts';
import type { RelayedRequest } from './server-request.ts';
import type { ConnectionNeeded, Upstream, UpstreamCaller } from './upstream.ts';

/** Undefined for the gateway itself, and for callers without authentication: they have no token. */
export type GetToken = (caller: UpstreamCaller) => string | undefined | Promise<string | undefined>;

/** Keyed by lower-case name. */
export type CredentialHeaders = Readonly<Record<string, string>>;

/**
 * Called when the server has refused one of our tokens, to get another one. Resolves to whether one is now available, so that the
 * request can be sent again. `isRefusedItself` checks, independently of callers' requests, whether the server itself refuses the
 * token. Its promise rejects if there is no answer.
 *
 * @throws CredentialError if nothing may be sent any more.
 */
export type ReplaceRefusedToken = (
  caller: UpstreamCaller,
  used: CredentialHeaders,
  refusal: TokenRefusal,
  isRefusedItself: () => Promise<boolean>,
) => Promise<boolean>;

/** The tokens of users' own logins at servers. */
export interface ConnectionTokens {
  createGetToken(server: ConnectionServer): GetToken;
  createReplaceRefusedToken(server: ConnectionServer): ReplaceRefusedToken;
}

const SCHEME = 'Bearer ';

export const toBearer = (token: string): CredentialHeaders => ({
  authorization: `${SCHEME}${token}`,
});

/** The token in the headers that `toBearer` created. */
export const readBearer = ({ authorization = '' }: CredentialHeaders): string =>
  authorization.slice(SCHEME.length);

export interface Doors {
  /**
   * Resolves once the caller has logged in to the server. `mayAsk`: whether the client may be asked; otherwise it gets the link.
   *
   * @throws CallRefusedError for the client's model; GatewayError; in the stateless era, the error that ends a call that asks.
   */
  pass(
    needed: ConnectionNeeded,
    call: DoorCall,
    context: Pick<Context, 'relay'>,
    mayAsk: boolean,
  ): Promise<void>;
  /** The client without its answers to a door: they are not meant for the server behind it. */
  withoutAnswer(client: RelayedClient): RelayedClient;
}

interface DoorCall {
  readonly upstream: Upstream;
  readonly caller: UpstreamCaller;
}

/** §24.3: connecting itself, without a call that continues: `<server>__connect`, and names that are known only afterwards. */
export interface ConnectUser {
  /**
   * Resolves to undefined once the caller is connected, otherwise to the client's result.
   *
   * @throws GatewayError; in the stateless era, the error that ends a call that asks.
   */
  connect(call: ConnectCall): Promise<RawResult | undefined>;
  /** The same, followed by the connected account: the result of the tool. */
  connectAndTell(call: ConnectCall): Promise<RawResult>;
}

export interface ConnectCall extends DoorCall {
  readonly method: RelayedRequest['method'];
  readonly context: Pick<Context, 'relay'>;
}
