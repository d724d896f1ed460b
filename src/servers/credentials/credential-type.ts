// §18.6: what a type of credentials is: how `auth` of a server names it, what it needs, and what it tells the server of the caller.
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
  type NoteRefusal,
  toBearer,
} from '../../mcp/upstream/connection-ports.ts';
import {
  CredentialError,
  type UpstreamCaller,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import type { JsonObject } from '../../platform/json.ts';

/** A file in this folder, and a row of `credentials.ts`. `Auth` is what `auth` of a server becomes. */
export interface CredentialType<Auth extends TypedAuth = TypedAuth> {
  /** As `auth` names it. */
  readonly type: Auth['type'];
  /** For editors: follows the type and a colon, and ends with a full stop. */
  readonly summary: string;
  /**
   * Members that `auth` may have beside `type`. Types that have the same member share it, as one object (`AUDIENCE`). A secret is
   * one by its shape (`freeText({ isSecret: true })`): then it is never shown, and the file is warned of where it stands in the clear.
   */
  readonly members: readonly Member<unknown>[];
  /** Those without which it cannot be: `read` reports `"x" is missing` of each, and of no other. */
  readonly required: readonly Member<unknown>[];
  /** Why it has none of the members of other types, whichever it was given: follows a colon, without a full stop. */
  readonly whyNoOthers: string;
  /** More JSON Schema of such an `auth`. */
  readonly schema?: JsonObject;
  /** Reads each of its members, so that all problems are told at once. Undefined where what is missing was reported. */
  read(members: MemberReader): Auth | undefined;
  /** Requirements of the settings. */
  readonly requirements: readonly Requirement<Auth>[];
  /** Its tokens or signatures say who calls: then each user has lists and a session of their own, and what one may not concerns nobody else. */
  readonly isOfCaller: boolean;
  /** The gateway itself has no credentials: the server answers nobody without a user's token. */
  readonly needsUser?: true;
  /** Its tokens are signed by keys in the gateway's store. */
  readonly signsTokens?: true;
  /** Its tokens are made by the provider. */
  readonly asksProvider?: true;
  /** Users' tokens are sent: only by https, or on this machine. */
  readonly passesTokensOn?: true;
  /** Its tokens were given for the server by its own authorization server, which may be a gateway of this kind, too. */
  readonly isIssuedForServer?: true;
  /** Once for each gateway. Asks nobody anything yet. */
  open(runtime: UpstreamRuntime, callers: CallerTokens): OpenCredentials;
}

/** `open` is told the server's own `auth`. */
interface CredentialDefinition<Auth extends TypedAuth> extends Omit<CredentialType<Auth>, 'open'> {
  open(
    runtime: UpstreamRuntime,
    callers: CallerTokens,
  ): Pick<OpenCredentials, 'createEndpoints'> & {
    openServer(server: Pick<CredentialServer, 'name' | 'url'>, auth: Auth): ServerCredentials;
  };
}

export function defineCredentialType<Auth extends TypedAuth>(
  definition: CredentialDefinition<Auth>,
): CredentialType<Auth> {
  const isOwn = (auth: TypedAuth): auth is Auth => auth.type === definition.type;

  return {
    ...definition,
    open(runtime, callers) {
      const opened = definition.open(runtime, callers);
      return {
        ...opened,
        openServer: (server) =>
          isOwn(server.auth) ? opened.openServer(server, server.auth) : undefined,
      };
    },
  };
}

export interface TypedAuth {
  readonly type: string;
}

interface Requirement<Auth extends TypedAuth = TypedAuth> {
  /**
   * `file`: wherever the file is read; told at `auth`. `start`: where users are about to be served; the problem then goes
   * on after "Server wiki: auth forward".
   */
  readonly checkedAt: 'file' | 'start';
  isMet(settings: NeededSettings, auth: Auth): boolean;
  readonly problem: string;
}

export type NeededSettings = Pick<Config, 'admin' | 'auth' | 'oauth' | 'store'>;

/** Sources of the tokens of callers. */
export interface CallerTokens {
  readonly getProviderToken: GetProviderToken;
  /** Undefined without a provider: then no token can be exchanged. */
  readonly metadata: ProviderMetadata | undefined;
  /** Undefined where nobody can connect: without OAUTH_MODE=broker, and in commands. */
  readonly connections: ConnectionTokens | undefined;
}

interface OpenCredentials {
  /** Undefined where the server has another type of credentials. */
  openServer(server: CredentialServer): ServerCredentials | undefined;
  /** `isUsed`: whether some server has this type now. */
  createEndpoints?(isUsed: () => boolean): readonly Endpoint[];
}

/** The credentials for one server: a token of the caller, a signature of each request, or both. */
interface ServerCredentials {
  readonly getToken?: GetToken;
  /** Undefined where what the server says of a token changes nothing. */
  readonly noteRefusal?: NoteRefusal | undefined;
  readonly sign?: SignRequest;
}

/**
 * Headers in addition to those of the request, which is sent with them and not changed any more. Secrets. None of them may be
 * among `headers` already, where also the token of `getToken` is (`authorization`): it would be sent twice. Made anew for each attempt.
 *
 * @throws CredentialError where it must not be sent.
 */
export type SignRequest = (
  caller: UpstreamCaller,
  request: SignableRequest,
) => CredentialHeaders | Promise<CredentialHeaders>;

interface SignableRequest {
  readonly method: string;
  readonly url: string;
  /** Names and values in turn, without those of the connection: `Host`, which is `new URL(url).host`, and `Content-Length`. */
  readonly headers: readonly string[];
  /** Empty where it has none. */
  readonly body: Uint8Array;
}

/** Tells one server who calls, beside the headers of the configuration. */
export interface ServerAccess {
  readonly getHeaders: GetHeaders;
  readonly noteRefusal: NoteRefusal | undefined;
  /** Undefined where nothing is signed, which then costs nothing. */
  readonly sign: SignRequest | undefined;
}

/** A server, as far as credentials concern it. */
export interface CredentialServer {
  readonly name: string;
  readonly url: string;
  readonly auth: TypedAuth;
}

/**
 * Headers that go with a request on this caller's behalf. Secrets. Never throws at once.
 *
 * @throws CredentialError where the caller's request must not be sent.
 */
type GetHeaders = (caller: UpstreamCaller) => CredentialHeaders | Promise<CredentialHeaders>;

/** Nothing is waited for if the token is at hand. */
export const addToken = (
  getToken: GetToken,
  { isIssuedForServer }: Pick<CredentialType, 'isIssuedForServer'>,
): GetHeaders => {
  const toHeaders = isIssuedForServer ? writeHeader : writeForeignToken;
  return function getHeaders(caller) {
    try {
      const token = getToken(caller);
      return token instanceof Promise ? token.then(toHeaders) : toHeaders(token);
    } catch (error) {
      return Promise.reject(error);
    }
  };
};

const writeHeader = (token: string | undefined) => (token === undefined ? {} : toBearer(token));

function writeForeignToken(token: string | undefined) {
  // MCP, "Token Passthrough": whatever it was taken for, no server gets by it what its user may do here.
  if (token !== undefined && isOwnToken(token))
    throw new CredentialError('a token of the gateway’s own is sent to no server');
  return writeHeader(token);
}

/** Told to a user without a token of the provider. */
export const describeMissingToken = ({ grant }: UserContext): string =>
  grant?.isMachine ? OF_MACHINE : NO_PROVIDER_TOKEN;

const OF_MACHINE =
  'it takes tokens of the identity provider, and a client that logs in as itself has none; only the operator of this service can change that ("auth": "identity" tells it the client)';

const NO_PROVIDER_TOKEN =
  'the identity provider gave no token for this login that is good now; log in again, or try again in a moment';

const audience = defineMember(
  'audience',
  nonBlank('the name of an audience'),
  'For whom the token is.',
);

/** `audience` of the types that have to be given one. */
export const AUDIENCE = {
  member: audience,
  read: ({ has, read, report }: MemberReader): string | undefined =>
    has(audience)
      ? read(audience)
      : report('"audience" is missing: name the audience that the token must be for.'),
};

/** For types whose tokens are made of a caller's own. */
export const NEEDS_LOGIN: Requirement = {
  checkedAt: 'start',
  isMet: ({ auth }) => auth.required,
  problem: 'needs the token of a caller, and with AUTH_REQUIRED=false callers have none.',
};
