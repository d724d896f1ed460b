// §18.6: what a server learns of the caller: nothing, unless its `auth` says so.

import { text } from '../../config/file/shapes/scalar.ts';
import {
  defineMember,
  type Member,
  type MemberReader,
  object,
  type Shape,
} from '../../config/file/shapes/shape.ts';
import { oneOf } from '../../config/rules.ts';
import type { Endpoint } from '../../http/endpoint/endpoint.ts';
import type { UpstreamRuntime } from '../../mcp/upstream/upstream.ts';
import type { JsonObject } from '../../platform/json.ts';
import {
  addToken,
  type CallerTokens,
  type CredentialServer,
  type CredentialType,
  type ServerAccess,
  type TypedAuth,
} from './credential-type.ts';
import { forward } from './forward.ts';
import { identity } from './identity.ts';
import { oauth } from './oauth.ts';
import { tokenExchange } from './token-exchange.ts';

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
