// §18.6: what a server learns of the caller: nothing, unless its `auth` says so.

import { text } from '../../config/file/shapes/scalar.ts';
import {
  defineMember,
  type Member,
  type MemberReader,
  object,
  type Shape,
} from '../../config/file/shapes/shape.ts';
import { isSharedStore } from '../../config/groups/store.ts';
import { oneOf } from '../../config/rules.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { Endpoint } from '../../http/endpoint/endpoint.ts';
import {
  createJsonReply,
  type GetProviderToken,
  type UserContext,
} from '../../http/endpoint/message.ts';
import { JSONRPC } from '../../http/endpoint/render-error.ts';
import type { GetToken } from '../../mcp/upstream/connection-ports.ts';
import {
  CredentialError,
  GATEWAY_CALLER,
  type UpstreamCaller,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import { isSafeForTokens } from '../../platform/address.ts';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import { generateTokenId, hashSha256 } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import { buildIdentityKeyName } from '../../store/keys.ts';
import { createSigningKeys, type SigningKeys, signJwt } from '../../store/seal/signing-keys.ts';
import {
  AUDIENCE,
  addToken,
  type CallerTokens,
  type CredentialServer,
  type CredentialType,
  defineCredentialType,
  describeMissingToken,
  NEEDS_LOGIN,
  type ServerAccess,
  type TypedAuth,
} from './credential-type.ts';
import { oauth } from './oauth.ts';
import { tokenExchange } from './token-exchange.ts';

// §18.6: `identity`: a token of the gateway that says who calls.

const identity = defineCredentialType<{ readonly type: 'identity' }>({
  type: 'identity',
  summary: 'a short-lived token of the gateway.',
  members: [],
  required: [],
  whyNoOthers: 'its audience is the server’s URL, and it has no scopes',
  read: () => ({ type: 'identity' }),
  requirements: [
    {
      checkedAt: 'file',
      isMet: (config) => !isSharedStore(config.store) || config.oauth.stateSecret?.kind === 'given',
      problem:
        '"identity" with REDIS_URL needs OAUTH_STATE_SECRET, which seals the keys that all replicas share. Set it to the output of openssl rand -base64 48.',
    },
  ],
  isOfCaller: true,
  signsTokens: true,
  open(runtime) {
    const keys = createSigningKeys(runtime, runtime.getSeal, buildIdentityKeyName);
    const { server, auth, oauth: login } = runtime.config;
    const provider = auth.required ? auth.provider : login.provider;
    const issuer = createIdentityIssuer(runtime.clock, keys, server.baseUrl, provider?.issuer);
    return {
      openServer: ({ url }) => ({ getToken: createGetIdentity(issuer, url) }),
      createEndpoints: (isUsed) => [createKeySetEndpoint(issuer, isUsed)],
    };
  },
});

export const createGetIdentity =
  ({ issueToken }: Pick<IdentityIssuer, 'issueToken'>, url: string): GetToken =>
  (caller) =>
    issueToken(caller, url).catch(failToIssue);

function failToIssue(cause: unknown): never {
  throw new CredentialError('this service cannot sign now who calls', { cause });
}

/** The document in which servers find the keys. Without a server that has `identity` there is none. */
const createKeySetEndpoint = (
  { getKeySet }: Pick<IdentityIssuer, 'getKeySet'>,
  isUsed: () => boolean,
): Endpoint => ({
  kind: 'open',
  method: 'GET',
  path: '/.well-known/jwks.json',
  errors: JSONRPC,
  async handle() {
    if (!isUsed()) fail('not_found');
    return createJsonReply(200, await getKeySet(), { 'Cache-Control': 'public, max-age=300' });
  },
});

interface IdentityIssuer {
  /** A JWT (ES256, 60 s) for the server at `url`. @throws StoreUnavailable without a key. */
  issueToken(caller: UpstreamCaller, url: string): Promise<string>;
  /** RFC 7517: the keys by which servers check such tokens. */
  getKeySet(): Promise<JsonObject>;
}

const LIFETIME_SECONDS = 60;
/** A token is used again until so little of its time is left. */
const RESERVE_MS = 30_000;
const MAX_TOKENS = 5000;

/**
 * `baseUrl` is the issuer. `providerIssuer` is `OIDC_ISSUER`: a `sub` alone says nothing of whose user it is; undefined without
 * a provider.
 */
export function createIdentityIssuer(
  clock: Clock,
  keys: SigningKeys,
  baseUrl: string,
  providerIssuer: string | undefined,
): IdentityIssuer {
  const memory = createExpiringMap<string>(MAX_TOKENS, clock.now);

  return {
    async issueToken(caller, url) {
      const claims = {
        iss: baseUrl,
        aud: nameAudience(url),
        ...describeCaller(caller),
        sub: nameSubject(caller, baseUrl),
        ...(caller.user && { idp: caller.user.issuer ?? providerIssuer }),
      };
      const hash = hashSha256(JSON.stringify(claims));
      const known = memory.get(hash);
      if (known !== undefined) return known;
      const key = await keys.getSigningKey();
      const iat = Math.floor(clock.now() / 1000);
      const exp = iat + LIFETIME_SECONDS;
      const token = signJwt({ ...claims, iat, exp, jti: generateTokenId() }, key);
      memory.set(hash, token, exp * 1000 - RESERVE_MS);
      return token;
    },
    getKeySet: async () => ({ keys: await keys.listPublicKeys() }),
  };
}

/** The server's URL, without what may be a secret: a query, or a name and password. */
function nameAudience(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

/** With `AUTH_REQUIRED=false`. A server must not take such callers for the gateway itself. */
const NOBODY = 'anonymous';

function nameSubject(caller: UpstreamCaller, baseUrl: string): string {
  if (caller.user !== undefined) return caller.user.sub;
  return caller === GATEWAY_CALLER ? baseUrl : NOBODY;
}

function describeCaller({ user, clientId }: UpstreamCaller) {
  return {
    ...(user?.email !== undefined && { email: user.email }),
    ...(user?.emailVerified !== undefined && { email_verified: user.emailVerified }),
    ...(user?.groups !== undefined && { groups: user.groups }),
    ...(clientId !== undefined && { client: clientId }),
  };
}

// §18.6: `forward`: the caller's own token, for a server that it was made for.

interface ForwardAuth {
  readonly type: 'forward';
  readonly audience: string;
}

const forward = defineCredentialType<ForwardAuth>({
  type: 'forward',
  summary: 'the caller’s own token.',
  members: [AUDIENCE.member],
  required: [AUDIENCE.member],
  whyNoOthers: 'the token is passed on as it is',
  read(members) {
    const audience = AUDIENCE.read(members);
    return audience === undefined ? undefined : { type: 'forward', audience };
  },
  requirements: [NEEDS_LOGIN],
  isOfCaller: true,
  needsUser: true,
  passesTokensOn: true,
  open: (_runtime, { getProviderToken }) => ({
    openServer: ({ url }, { audience }) => ({
      getToken: createForward(url, audience, getProviderToken),
    }),
  }),
});

function createForward(
  url: string,
  audience: string,
  getProviderToken: GetProviderToken,
): GetToken {
  const isSafe = isSafeForTokens(url);

  return function forwardToken({ user }) {
    if (user === undefined) return undefined;
    if (!isSafe) {
      throw new CredentialError(
        'tokens are forwarded by https only, and its address has none; only the operator of this service can change that',
      );
    }
    // Only the server that gets the provider's token of a grant has to be able to read whom it is for.
    if (user.grant !== undefined) return requireProviderToken(user, getProviderToken);
    if (!namesAudience(user.claims.aud, audience)) {
      throw new CredentialError(
        'the token of this login was not made for it; only the operator of this service can change that',
      );
    }
    return user.token;
  };
}

async function requireProviderToken(
  user: UserContext,
  getProviderToken: GetProviderToken,
): Promise<string> {
  const token = await getProviderToken(user);
  if (token === undefined) throw new CredentialError(describeMissingToken(user));
  return token;
}

const namesAudience = (aud: unknown, audience: string): boolean =>
  Array.isArray(aud) ? aud.includes(audience) : aud === audience;

// All types of credentials.

/** In the order in which people read of them. */
const CREDENTIAL_TYPES = [identity, oauth, tokenExchange, forward] as const;

type AuthOf<Type> = Type extends CredentialType<infer Auth> ? Auth : never;

/** The credentials that a server gets: `none` where the file has no `auth`. */
export type UpstreamAuth = { readonly type: 'none' } | AuthOf<(typeof CREDENTIAL_TYPES)[number]>;

const ALL_TYPES: readonly CredentialType[] = CREDENTIAL_TYPES;

/** Undefined for `none`. */
export const findCredentialType = ({ type }: TypedAuth): CredentialType | undefined =>
  ALL_TYPES.find((one) => one.type === type);

export interface Credentials {
  openAccess(server: CredentialServer & { readonly auth: UpstreamAuth }): ServerAccess;
  /** `isUsed`: whether some server has such credentials now. */
  createEndpoints(isUsed: (type: CredentialType) => boolean): readonly Endpoint[];
}

export function openCredentials(runtime: UpstreamRuntime, callers: CallerTokens): Credentials {
  const opened = ALL_TYPES.map((type) => ({ type, ...type.open(runtime, callers) }));

  return {
    openAccess(server) {
      for (const { type, openServer } of opened) {
        const own = openServer(server);
        if (own === undefined) continue;
        const { getToken, noteRefusal, sign } = own;
        const getHeaders = getToken === undefined ? getNoHeaders : addToken(getToken, type);
        return { getHeaders, noteRefusal, sign };
      }
      return { getHeaders: getNoHeaders, noteRefusal: undefined, sign: undefined };
    },
    createEndpoints: (isUsed) =>
      opened.flatMap(({ type, createEndpoints }) => createEndpoints?.(() => isUsed(type)) ?? []),
  };
}

const NO_HEADERS = {};

const getNoHeaders = () => NO_HEADERS;

// `auth` in the configuration file: `type`, and the members of that type.

const typeRule = oneOf(...CREDENTIAL_TYPES.map(({ type }) => type));

const typeMember = defineMember(
  'type',
  text(typeRule, { schema: { enum: CREDENTIAL_TYPES.map(({ type }) => type) } }),
  CREDENTIAL_TYPES.map(({ type, summary }) => `${type}: ${summary}`).join(' '),
);

/** Members of all types, each once. */
const typedMembers: readonly Member<unknown>[] = [
  ...new Set(ALL_TYPES.flatMap(({ members }) => members)),
];

const listForeign = ({ members }: CredentialType): readonly Member<unknown>[] =>
  typedMembers.filter((member) => !members.includes(member));

export const authShape: Shape<UpstreamAuth> = object({
  allowed: 'an object such as { "type": "oauth" }',
  members: [typeMember, ...typedMembers],
  schema: { required: [typeMember.name], allOf: ALL_TYPES.map(createTypeSchema) },
  build(members) {
    if (!members.has(typeMember))
      return members.report(`"type" is missing. It must be ${typeRule.allowed}.`);
    const given = members.read(typeMember);
    const type = CREDENTIAL_TYPES.find((one) => one.type === given);
    if (type === undefined) return undefined;
    reportForeign(members, type);
    return type.read(members);
  },
});

function createTypeSchema(credential: CredentialType): JsonObject {
  const { type, required, schema } = credential;
  return {
    if: { required: ['type'], properties: { type: { const: type } } },
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
    then: {
      properties: Object.fromEntries(listForeign(credential).map(({ name }) => [name, false])),
      ...(required.length > 0 && { required: required.map(({ name }) => name) }),
      ...schema,
    },
  };
}

function reportForeign({ has, report }: MemberReader, credential: CredentialType): void {
  for (const member of listForeign(credential).filter(has))
    report(`"type": "${credential.type}" has no such member: ${credential.whyNoOthers}.`, member);
}
