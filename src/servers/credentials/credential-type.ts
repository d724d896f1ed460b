// §18.6: the interface of a credential type: its name and members in a server's `auth`, its requirements, and its tokens or
// signatures.
import type { Config } from '../../config/config.ts';
import { nonBlank } from '../../config/file/shapes/scalar.ts';
import { defineMember, type Member, type MemberReader } from '../../config/file/shapes/shape.ts';
import { isOwnToken } from '../../http/endpoint/bearer.ts';
import type { Endpoint } from '../../http/endpoint/endpoint.ts';
import type { GetProviderToken, UserContext } from '../../http/endpoint/message.ts';
import type { ProviderMetadata } from '../../http/oauth-client/provider-metadata.ts';
import {
  type ConnectionTokens,
  type CredentialHeaders,
  type GetToken,
  type ReplaceRefusedToken,
  toBearer,
} from '../../mcp/upstream/connection-ports.ts';
import {
  CredentialError,
  type UpstreamCaller,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import type { JsonObject } from '../../platform/json.ts';

/** Each type is a file in this folder, and a row of `credentials.ts`. It parses a server's `auth` into an `Auth`. */
export interface CredentialType<Auth extends TypedAuth = TypedAuth> {
  /** The name in `auth`. */
  readonly type: Auth['type'];
  /** Shown by editors after the type and a colon; ends with a full stop. */
  readonly summary: string;
  /**
   * Members of `auth` in addition to `type`. Types with the same member share one object (`AUDIENCE`). A secret is declared by
   * its shape (`freeText({ isSecret: true })`), so it is never shown, and the file gets a warning if it is in plain text.
   */
  readonly members: readonly Member<unknown>[];
  /** Required members: `read` reports `"x" is missing` for each of these, and for no other. */
  readonly required: readonly Member<unknown>[];
  /** Why this type has no members of other types; follows a colon, and has no full stop. */
  readonly whyNoOthers: string;
  /** Additional JSON Schema for an `auth` of this type. */
  readonly schema?: JsonObject;
  /**
   * Reads all members, so that all problems are reported together. Undefined if a required member is missing, after reporting it.
   */
  read(members: MemberReader): Auth | undefined;
  /** Requirements on the settings. */
  readonly requirements: readonly Requirement<Auth>[];
  /**
   * True if the tokens or signatures identify the caller, so that each user has separate lists and a separate session, and a
   * refusal concerns that user only.
   */
  readonly isOfCaller: boolean;
  /** True if the gateway has no credentials of its own: the server only accepts users' tokens. */
  readonly needsUser?: true;
  /** True if the tokens are signed with keys in the gateway's store. */
  readonly signsTokens?: true;
  /** True if the provider issues the tokens. */
  readonly asksProvider?: true;
  /** True if users' tokens are sent, which is allowed only over https, or on this machine. */
  readonly passesTokensOn?: true;
  /** True if the tokens were issued by the server's own authorization server, possibly another gateway. */
  readonly isIssuedForServer?: true;
  /** Called once per gateway. Sends no requests yet. */
  open(runtime: UpstreamRuntime, callers: CallerTokens): OpenCredentials<Auth>;
}

export const defineCredentialType = <Auth extends TypedAuth>(
  definition: CredentialType<Auth>,
): CredentialType<Auth> => definition;

export interface TypedAuth {
  readonly type: string;
}

interface Requirement<Auth extends TypedAuth = TypedAuth> {
  /**
   * `file`: checked whenever the file is read, and reported at `auth`. `start`: checked before users are served; the problem
   * completes a sentence that begins with "Server wiki: auth forward".
   */
  readonly checkedAt: 'file' | 'start';
  isMet(settings: NeededSettings, auth: Auth): boolean;
  readonly problem: string;
}

export type NeededSettings = Pick<Config, 'admin' | 'auth' | 'oauth' | 'store'>;

/** Sources of callers' tokens. */
export interface CallerTokens {
  readonly getProviderToken: GetProviderToken;
  /** Undefined without a provider, so tokens cannot be exchanged. */
  readonly metadata: ProviderMetadata | undefined;
  /** Undefined if users cannot connect: without OAUTH_MODE=broker, and in commands. */
  readonly connections: ConnectionTokens | undefined;
}

interface OpenCredentials<Auth extends TypedAuth> {
  /** `auth` is the server's. */
  openServer(server: Pick<CredentialServer, 'name' | 'url'>, auth: Auth): ServerCredentials;
  /** `isUsed`: whether any server currently has this type. */
  createEndpoints?(isUsed: () => boolean): readonly Endpoint[];
}

/** The credentials for one server: a token of the caller, a signature for each request, or both. */
export interface ServerCredentials {
  readonly getToken?: GetToken;
  /** Undefined if a refused token cannot be replaced, and a refusal does not lead to a login. */
  readonly replaceRefusedToken?: ReplaceRefusedToken | undefined;
  readonly sign?: SignRequest | undefined;
}

/**
 * Returns headers to add to the request, which is then sent without further changes. They are secrets. None of them may already be
 * in `headers`, which include the token of `getToken` (`authorization`): it would be sent twice. Called again for each attempt.
 *
 * @throws CredentialError if the request must not be sent.
 */
export type SignRequest = (
  caller: UpstreamCaller,
  request: SignableRequest,
) => CredentialHeaders | Promise<CredentialHeaders>;

interface SignableRequest {
  readonly method: string;
  readonly url: string;
  /**
   * Alternating names and values, without the headers that the connection adds: `Host`, which is `new URL(url).host`, and
   * `Content-Length`.
   */
  readonly headers: readonly string[];
  /** Empty for a request without a body. */
  readonly body: Uint8Array;
}

/** Identifies the caller to one server, in addition to the configured headers. */
export interface ServerAccess {
  /** Undefined if no token is sent. */
  readonly getHeaders: GetHeaders | undefined;
  readonly replaceRefusedToken: ReplaceRefusedToken | undefined;
  /** Undefined if requests are not signed, which then costs nothing. */
  readonly sign: SignRequest | undefined;
}

/** The part of a server that concerns credentials. */
export interface CredentialServer {
  readonly name: string;
  readonly url: string;
  readonly auth: TypedAuth;
}

/**
 * Headers for a request on behalf of this caller; they are secrets.
 *
 * @throws CredentialError if the caller's request must not be sent.
 */
type GetHeaders = (caller: UpstreamCaller) => CredentialHeaders | Promise<CredentialHeaders>;

export const addToken = (
  getToken: GetToken,
  { isIssuedForServer }: Pick<CredentialType, 'isIssuedForServer'>,
): GetHeaders => {
  const toHeaders = isIssuedForServer ? writeHeader : writeForeignToken;
  return async (caller) => toHeaders(await getToken(caller));
};

const writeHeader = (token: string | undefined) => (token === undefined ? {} : toBearer(token));

function writeForeignToken(token: string | undefined) {
  // MCP "Token Passthrough": with a token of this gateway, a server could impersonate its user here.
  if (token !== undefined && isOwnToken(token))
    throw new CredentialError('a token of the gateway’s own is sent to no server');
  return writeHeader(token);
}

/** For a user without a provider token. */
export const describeMissingToken = ({ grant }: UserContext): string =>
  grant?.isMachine ? OF_MACHINE : NO_PROVIDER_TOKEN;

const OF_MACHINE =
  'it takes tokens of the identity provider, and a client that logs in as itself has none; only the operator of this service can change that ("auth": "identity" tells it the client)';

const NO_PROVIDER_TOKEN =
  'the identity provider gave no token for this login that is good now; log in again, or try again in a moment';

const audience = defineMember(
  'audience',
  nonBlank('the name of an audience'),
  'The audience of the token.',
);

/** `audience`, for types that require one. */
export const AUDIENCE = {
  member: audience,
  read: ({ has, read, report }: MemberReader): string | undefined =>
    has(audience)
      ? read(audience)
      : report('"audience" is missing: name the audience that the token must be for.'),
};

/** For types whose tokens are derived from the caller's own. */
export const NEEDS_LOGIN: Requirement = {
  checkedAt: 'start',
  isMet: ({ auth }) => auth.required,
  problem: 'needs the token of a caller, and with AUTH_REQUIRED=false callers have none.',
};
